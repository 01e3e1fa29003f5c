"""Which configuration a world runs under: providers, and the schedules they follow.

A provider answers for a run which configuration is active at a step. `ConstantRegime` never shifts,
which makes a control and no continual-learning setting; `ScheduledRegime` follows a
`RegimeSchedule`. Both are plugins of the group `skyfall.regimes`, as `constant` and `scheduled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from skyfall_core.errors import ScheduleError
from skyfall_core.protocols import DEFAULT_REGIME_ID
from skyfall_core.schedule import Regime, RegimeSchedule

__all__ = [
    "DEFAULT_REGIME_ID",
    "ConstantRegime",
    "Regime",
    "RegimeProvider",
    "RegimeSchedule",
    "ScheduledRegime",
]


@runtime_checkable
class RegimeProvider(Protocol):
    """Says which configuration is active. Only `regime_id` is required.

    Optional, probed: `regime_at(step) -> Regime` gives axes and origin; `is_boundary(step) -> bool`;
    `next_boundary(step) -> int | None` spares the question on every step; `regimes` lists all that
    may occur, so that an environment can check their axes before the run.
    """

    def regime_id(self, step: int) -> str:
        """Label of the configuration active at `step`."""


class ConstantRegime:
    """A world whose configuration never changes.

    Args:
        regime_id: The label of its one configuration.

    Raises:
        ScheduleError: If the label is no text or empty.
    """

    def __init__(self, regime_id: str = DEFAULT_REGIME_ID) -> None:
        if not (regime_id and isinstance(regime_id, str)):
            raise ScheduleError("regime_id", f"{regime_id!r}: expected a non-empty string")
        self.regimes = (Regime(regime_id),)

    def regime_id(self, step: int) -> str:  # noqa: ARG002 - the same at every step
        """The one label."""
        return self.regimes[0].regime_id

    def regime_at(self, step: int) -> Regime:  # noqa: ARG002
        """The one configuration, without axes."""
        return self.regimes[0]

    def is_boundary(self, step: int) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def next_boundary(self, step: int) -> None:
        """None: it never ends."""


class ScheduledRegime:
    """Follows a schedule written in advance.

    Args:
        schedule: A `RegimeSchedule`, the mapping one is built from, or the path of a YAML file that
            holds the mapping, because a document can name no object.

    Raises:
        ConfigError: If the mapping or the file makes no schedule.
    """

    def __init__(self, schedule: RegimeSchedule | Mapping[str, Any] | str | Path) -> None:
        if isinstance(schedule, str | Path):
            schedule = RegimeSchedule.from_yaml_file(schedule)
        elif not isinstance(schedule, RegimeSchedule):
            schedule = RegimeSchedule.from_dict(schedule)
        self.schedule = schedule

    @classmethod
    def from_yaml_file(cls, path: str | Path) -> ScheduledRegime:
        """Follow the schedule in a YAML file."""
        return cls(RegimeSchedule.from_yaml_file(path))

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> ScheduledRegime:
        """Follow the schedule a mapping describes."""
        return cls(RegimeSchedule.from_dict(config))

    @property
    def regimes(self) -> tuple[Regime, ...]:
        """Every configuration the schedule can reach."""
        return self.schedule.regimes

    def regime_id(self, step: int) -> str:
        """Label of the configuration active at `step`."""
        return self.schedule.regime_id(step)

    def regime_at(self, step: int) -> Regime:
        """The configuration active at `step`, its axes as they are at that step."""
        return self.schedule.regime_at(step)

    def is_boundary(self, step: int) -> bool:
        """Whether another configuration begins at `step`; never so at step 0."""
        return self.schedule.is_boundary(step)

    def next_boundary(self, step: int) -> int | None:
        """The first step after `step` at which another configuration begins, or None."""
        return self.schedule.next_boundary(step)
