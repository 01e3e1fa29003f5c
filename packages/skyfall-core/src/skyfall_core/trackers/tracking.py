"""Following a run with several trackers, none of which can stop it.

A tracker that fails is named once, with what it failed at and at which step, and hears nothing more
until the run is over. What is wrong with its parameters is an input error before the run begins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from skyfall_core import plugins
from skyfall_core.config import TrackerConfig
from skyfall_core.errors import ConfigError
from skyfall_core.factories import call_factory
from skyfall_core.plugins import Group
from skyfall_core.trackers.base import TrackedRun, Tracker, without_secrets

if TYPE_CHECKING:
    from skyfall_core.reports import RunResult, WindowReport

__all__ = ["Tracking", "build_trackers"]

_LOGGER = logging.getLogger(__name__)


def build_trackers(configs: Sequence[TrackerConfig], run: TrackedRun) -> Tracking:
    """The trackers a document names, ready to follow `run`.

    Raises:
        InputError: If one is not installed, or its parameters are wrong.
    """
    built = []
    for index, config in enumerate(configs):
        place = f"trackers[{index}]"
        factory = plugins.resolve(Group.TRACKERS, config.name)
        tracker = call_factory(factory, config.params, f"{place}.params", run=run)
        lacking = [
            name
            for name in ("begin", "window", "shift", "finish")
            if not callable(getattr(tracker, name, None))
        ]
        if lacking:
            raise ConfigError(f"{place}.name: {config.name!r} gave {tracker!r}, which has no {lacking[0]}()")
        built.append((config.name, tracker))
    return Tracking(run, built)


class Tracking:
    """Tells every tracker what happens; leaving the context tells them that it is over.

    Args:
        run: The run that is followed.
        trackers: Names, for messages, and trackers.
    """

    def __init__(self, run: TrackedRun, trackers: Sequence[tuple[str, Tracker]]) -> None:
        self._run = run
        self._trackers = list(trackers)
        self._silenced: set[int] = set()
        self._steps = run.resumed_at or 0
        self._begun = self._over = False

    def begin(self) -> None:
        """The run begins."""
        self._begun = True
        self._tell("begin", self._steps, self._run)

    def shift(self, event: Mapping[str, Any]) -> None:
        """One configuration gave way to another."""
        self._tell("shift", int(event["step"]), event)

    def window(self, report: WindowReport) -> None:
        """A window was learned from."""
        self._steps = report.steps
        self._tell("window", report.steps, report)

    def finish(self, result: RunResult | None) -> None:
        """The run is over; only the first call counts, and none if it has not begun."""
        if self._begun and not self._over:
            self._over = True
            self._tell("finish", self._steps, result)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.finish(None)

    def _tell(self, what: str, step: int, about: Any) -> None:
        for index, (name, tracker) in enumerate(self._trackers):
            silent = index in self._silenced
            if silent and what != "finish":  # but a silenced one lets go of what it holds
                continue
            try:
                getattr(tracker, what)(about)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - nothing a tracker does may end a run
                self._silenced.add(index)
                if not silent:
                    problem = without_secrets(f"{type(error).__name__}: {error}")
                    rest = "the run is over" if what == "finish" else "it hears no more, and the run goes on"
                    _LOGGER.warning(
                        "tracker %r failed in %s at step %d: %s; %s", name, what, step, problem, rest
                    )
