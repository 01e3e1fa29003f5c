"""Schedules: which configuration is active at a step, as a pure function of the step.

Looking a step up is one bisection, depends on nothing that happened before, and gives the same answer
in every process. Step 0 begins the first configuration but is no boundary: a boundary lies between
two configurations.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skyfall_core.errors import ScheduleError, suggestion

if TYPE_CHECKING:
    from skyfall_core.documents import Document

__all__ = ["Regime", "RegimeSchedule"]

SHIFT_MODES = ("abrupt", "cyclic", "linear_drift")
SCHEDULE_KEYS = ("regimes", "shift_mode", "drift_window", "seed")
ENTRY_KEYS = ("regime_id", "duration_steps", "axes", "alias_of")


@dataclass(frozen=True, slots=True)
class Regime:
    """One configuration: its label, how long it lasts and how the world behaves in it.

    Attributes:
        regime_id: The label this entry goes by.
        duration_steps: How many steps it lasts; None for until the run ends.
        axes: What it sets about the world, by name.
        origin: The configuration it repeats under another label, if it repeats one.
    """

    regime_id: str
    duration_steps: int | None = None
    axes: Mapping[str, Any] = field(default_factory=dict)
    origin: str | None = None

    @property
    def identity(self) -> str:
        """What configuration this is whatever its label; an entry shares it with what it repeats."""
        return self.regime_id if self.origin is None else self.origin

    def get(self, name: str, default: Any = None) -> Any:
        """The value of one axis, or `default` where this configuration does not set it."""
        return self.axes.get(name, default)

    def select(self, names: Collection[str] | str) -> dict[str, Any]:
        """The axes among `names` that this configuration sets."""
        wanted = {names} if isinstance(names, str) else set(names)
        return {name: value for name, value in self.axes.items() if name in wanted}

    def exclude(self, names: Collection[str] | str) -> dict[str, Any]:
        """The axes this configuration sets, without those in `names`."""
        unwanted = {names} if isinstance(names, str) else set(names)
        return {name: value for name, value in self.axes.items() if name not in unwanted}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without what is not set."""
        items = {
            "regime_id": self.regime_id,
            "duration_steps": self.duration_steps,
            "axes": dict(self.axes) or None,
            "origin": self.origin,
        }
        return {key: value for key, value in items.items() if value is not None}


class RegimeSchedule:
    """The configurations a run passes through, and when.

    Args:
        regimes: In order, as `Regime`s or as mappings with `regime_id`, `duration_steps`, `axes` and
            `alias_of`. The duration may be missing on the last entry only. `alias_of` names an
            earlier entry and copies its axes.
        shift_mode: `abrupt` switches at a boundary and stays in the last entry when all are over;
            `cyclic` starts again, so every entry needs a duration; `linear_drift` changes the label
            at once and the axes over `drift_window` steps.
        drift_window: Steps a drift takes; less than 1 counts as 1. At the k-th step of it numbers
            are k / `drift_window` of the way from old to new, and every other axis switches by one
            draw a step with that probability.
        seed: Decides those draws, with the boundary and the step and nothing else.

    Raises:
        ScheduleError: Naming the entry, the field and the remedy.
    """

    def __init__(
        self,
        regimes: Sequence[Regime | Mapping[str, Any]],
        shift_mode: str = "abrupt",
        drift_window: int = 1,
        seed: int = 0,
    ) -> None:
        if shift_mode not in SHIFT_MODES:
            raise ScheduleError("shift_mode", f"{shift_mode!r}: {suggestion(str(shift_mode), SHIFT_MODES)}")
        self.shift_mode = shift_mode
        self.drift_window = max(_integer("drift_window", drift_window), 1)
        self.seed = _integer("seed", seed)
        if self.seed < 0:
            raise ScheduleError("seed", f"{self.seed} is negative; seeds start at 0")
        self._regimes = _entries(regimes)
        _check_durations(self._regimes, shift_mode, self.drift_window)
        durations = [regime.duration_steps or 0 for regime in self._regimes]
        self._starts = list(accumulate(durations[:-1], initial=0))
        self._total = sum(durations) if durations[-1] else 0

    @property
    def regimes(self) -> tuple[Regime, ...]:
        """Every entry in order, aliases resolved."""
        return self._regimes

    @property
    def total_steps(self) -> int:
        """Steps all entries last together, or 0 when the last one runs until the end."""
        return self._total

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> RegimeSchedule:
        """Build a schedule from a document's mapping.

        Raises:
            ScheduleError: For an unknown key, no `regimes` list, or an entry that cannot hold.
        """
        if not isinstance(config, Mapping):
            raise ScheduleError("", f"a schedule is a mapping with 'regimes', not {type(config).__name__}")
        _check_keys("", config, SCHEDULE_KEYS)
        if "regimes" not in config:
            raise ScheduleError("regimes", "missing; list at least one entry with a regime_id")
        return cls(**config)

    @classmethod
    def from_yaml_file(cls, path: str | Path) -> RegimeSchedule:
        """Read a schedule document.

        Raises:
            ConfigError: Naming the file, the entry and the field.
        """
        from skyfall_core.documents import read_document  # noqa: PLC0415 - YAML only where a file is read

        return cls.from_document(read_document(path))

    @classmethod
    def from_document(cls, document: Document) -> RegimeSchedule:
        """Build a schedule from a document that was read.

        Raises:
            ScheduleError: Naming the file, the entry and the field.
        """
        try:
            return cls.from_dict(document.content)
        except ScheduleError as error:
            raise ScheduleError(document.place(error.where), error.problem) from None

    def regime_at(self, step: int) -> Regime:
        """The configuration active at `step`, its axes as they are at that step."""
        index, start = self._locate(step)
        if self.shift_mode == "linear_drift" and index and step - start < self.drift_window:
            share = (step - start) / self.drift_window
            switched = bool(_uniform(self.seed, start, step) < share)
            return _between(self._regimes[index - 1], self._regimes[index], share, switched)
        return self._regimes[index]

    def regime_id(self, step: int) -> str:
        """Label of the configuration active at `step`."""
        return self._regimes[self._locate(step)[0]].regime_id

    def is_boundary(self, step: int) -> bool:
        """Whether another configuration begins at `step`; never so at step 0."""
        return step > 0 and len(self._regimes) > 1 and self._locate(step)[1] == step

    def next_boundary(self, step: int) -> int | None:
        """The first step after `step` at which another configuration begins, or None."""
        index, start = self._locate(step)
        last = index + 1 == len(self._regimes)
        if len(self._regimes) == 1 or (last and self.shift_mode != "cyclic"):
            return None
        return start + (self._regimes[index].duration_steps or 0)

    def _locate(self, step: int) -> tuple[int, int]:
        """Index of the entry active at `step`, and the step at which it began this time round."""
        if step < 0:
            raise ValueError(f"step {step!r} is negative; a run's steps start at 0")
        offset = step - step % self._total if self.shift_mode == "cyclic" else 0
        index = bisect_right(self._starts, step - offset) - 1
        return index, self._starts[index] + offset


def _entries(regimes: Any) -> tuple[Regime, ...]:
    if isinstance(regimes, str | Mapping) or not isinstance(regimes, Sequence) or not regimes:
        raise ScheduleError("regimes", f"{regimes!r}: expected a list with at least one entry")
    known: dict[str, Regime] = {}
    for index, given in enumerate(regimes):
        where = f"regimes[{index}]"
        regime = given if isinstance(given, Regime) else _entry(where, given, known)
        _check_duration(where, regime.duration_steps)
        if regime.regime_id in known:
            raise ScheduleError(
                f"{where}.regime_id",
                f"{regime.regime_id!r} stands twice; give the revisit its own label and alias_of",
            )
        known[regime.regime_id] = regime
    return tuple(known.values())


def _entry(where: str, given: Mapping[str, Any], known: Mapping[str, Regime]) -> Regime:
    if not isinstance(given, Mapping):
        raise ScheduleError(where, f"{given!r}: expected a mapping with a regime_id")
    _check_keys(where, given, ENTRY_KEYS)
    label, axes, alias = given.get("regime_id"), given.get("axes"), given.get("alias_of")
    if not isinstance(label, str) or not label:
        raise ScheduleError(f"{where}.regime_id", f"{label!r}: expected a non-empty string")
    if axes is not None and not isinstance(axes, Mapping):
        raise ScheduleError(f"{where}.axes", f"{axes!r}: expected a mapping of axis to value")
    for name in axes or ():
        if not isinstance(name, str):
            raise ScheduleError(f"{where}.axes.{name}", f"the key {name!r} is not text; put it in quotes")
    duration = given.get("duration_steps")
    if alias is None:
        return Regime(label, duration, dict(axes or {}))
    if not isinstance(alias, str) or alias not in known:
        raise ScheduleError(
            f"{where}.alias_of", f"{alias!r} is no earlier entry; {suggestion(str(alias), known)}"
        )
    if axes:
        raise ScheduleError(f"{where}.axes", f"an alias copies the axes of {alias!r}; leave them out")
    return Regime(label, duration, known[alias].axes, known[alias].identity)


def _check_keys(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            place = f"{where}.{key}" if where else str(key)
            raise ScheduleError(place, f"unknown key; {suggestion(str(key), known)}")


def _integer(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ScheduleError(where, f"{value!r}: expected an integer")
    return value


def _check_duration(where: str, duration: Any) -> None:
    place = f"{where}.duration_steps"
    if duration is not None and _integer(place, duration) < 1:
        raise ScheduleError(place, f"{duration} is no duration; at least 1 step, or none on the last entry")


def _check_durations(regimes: Sequence[Regime], shift_mode: str, drift_window: int) -> None:
    for index, regime in enumerate(regimes):
        place, duration = f"regimes[{index}].duration_steps", regime.duration_steps
        last = index + 1 == len(regimes)
        if duration is None and not last:
            gap = f"missing, which leaves a gap before {regimes[index + 1].regime_id!r}"
            raise ScheduleError(place, f"{gap}; only the last entry may go without")
        if duration is None and shift_mode == "cyclic":
            raise ScheduleError(place, "missing; a cyclic schedule needs every duration")
        drifts = shift_mode == "linear_drift" and index > 0 and not last
        if drifts and duration is not None and duration < drift_window:
            problem = (
                f"{duration} is shorter than drift_window {drift_window}, so the drift would never arrive"
            )
            raise ScheduleError(place, f"{problem}; lengthen the entry or shorten the window")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _uniform(seed: int, boundary: int, step: int) -> float:
    """A number in [0, 1) that depends on the three arguments alone."""
    return float(np.random.SeedSequence((seed, boundary, step)).generate_state(1)[0]) / 2**32


def _between(old: Regime, new: Regime, share: float, switched: bool) -> Regime:
    """`new` as it is while `share` of the way from `old` is behind it."""
    axes: dict[str, Any] = {}
    side = new if switched else old
    for name in dict.fromkeys((*old.axes, *new.axes)):
        before, after = old.get(name), new.get(name)
        if _is_number(before) and _is_number(after):
            axes[name] = before + share * (after - before)
        elif name in side.axes:
            axes[name] = side.axes[name]
    return Regime(new.regime_id, new.duration_steps, axes, new.origin)
