"""Progress of a sweep on standard error: bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from skyfall_core.cli.progress import SECONDS_BETWEEN_LINES
from skyfall_core.cli.reporting import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skyfall_core.executors.base import Cell, CellEvent, CellOutcome, Tell

__all__ = ["SweepProgress", "progress_of_sweep"]


@contextmanager
def progress_of_sweep(cells: Sequence[Cell], *, quiet: bool) -> Iterator[SweepProgress | None]:
    """What to tell of each event; None when quiet."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _SweepBars(cells) as bars:
            yield bars
    else:
        yield _SweepLines(cells)


class SweepProgress(ABC):
    """How far all cells of a sweep are: cells and steps done, rate and time left.

    Args:
        cells: Those that will be run.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = len(cells)
        self.total = sum(cell.config.rollout.total_steps for cell in cells)
        self._budgets = {cell.name: cell.config.rollout.total_steps for cell in cells}
        self._windows = {cell.name: cell.config.rollout.window_steps for cell in cells}
        self._steps: dict[str, int] = {}
        self._taken: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self.running: dict[str, str] = {}
        self.ended = 0
        self._started = time.monotonic()

    @property
    def steps(self) -> int:
        """Steps that are done, those of ended cells counted whole."""
        return sum(self._steps.values())

    @property
    def rate(self) -> float:
        """Steps a second since the start; what a resumed cell had done before does not count."""
        return sum(self._taken.values()) / max(time.monotonic() - self._started, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Time left at that rate; None as long as there is none."""
        return (self.total - self.steps) / self.rate if self.rate else None

    def __call__(self, event: CellEvent) -> None:
        """Take in what an executor tells."""
        from skyfall_core.executors.base import CellBegan, CellOutcome, CellProgress, Remark  # noqa: PLC0415

        match event:
            case CellBegan(name):
                self.running[name] = ""
            case CellProgress(name, steps, mean_reward, regime):
                self._steps[name] = steps
                self._take(name, steps)
                self.running[name] = f"{regime} reward {mean_reward:+.4g}"
            case CellOutcome(name):
                self.running.pop(name, None)
                self.ended += 1
                self._steps[name] = self._budgets[name]
                self._take(name, event.steps)
                self._end(event)
            case Remark(text):
                self._remark(text)
        self._show()

    @staticmethod
    def telling(progress: SweepProgress | None, outcomes: list[CellOutcome]) -> Tell:
        """A function that keeps every outcome and passes each event on to `progress`."""
        from skyfall_core.executors.base import CellOutcome  # noqa: PLC0415

        def tell(event: CellEvent) -> None:
            if isinstance(event, CellOutcome):
                outcomes.append(event)
            if progress is not None:
                progress(event)

        return tell

    def share_of(self, name: str) -> float:
        """How much of a cell is done, between 0 and 1."""
        return self._steps.get(name, 0) / self._budgets[name]

    def summary(self) -> str:
        """All of it in a line."""
        left = self.seconds_left
        time_left = "" if left is None else f", {left:,.0f} s left"
        done = f"{self.ended:,}/{self.cells:,} cells, {self.steps:,}/{self.total:,} steps"
        return f"{done}, {self.rate:,.0f} steps/s{time_left}"

    def _take(self, name: str, steps: int) -> None:
        """Count what a cell has done since this sweep began; the first word comes after one window."""
        before = self._before.setdefault(name, max(steps - self._windows[name], 0))
        self._taken[name] = max(steps - before, 0)

    def _end(self, outcome: CellOutcome) -> None:
        took = "" if outcome.seconds is None else f" in {outcome.seconds:,.1f} s"
        why = "" if outcome.error is None else f": {outcome.error.splitlines()[0]}"
        self._remark(f"[{self.ended}/{self.cells}] {outcome.name} {outcome.status.value}{took}{why}")

    def _remark(self, text: str) -> None:
        say(text)

    @abstractmethod
    def _show(self) -> None:
        """Bring what is on the screen up to date."""


class _SweepLines(SweepProgress):
    """A line for every cell that ends, and one over all of them every few seconds."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        super().__init__(cells)
        self._told = time.monotonic()

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            say(self.summary())


class _SweepBars(SweepProgress):
    """A bar over all cells, and one for each that is running."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        from rich.console import Console  # noqa: PLC0415 - only for a terminal
        from rich.progress import BarColumn, Progress, TaskID, TextColumn  # noqa: PLC0415

        super().__init__(cells)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[latest]}"),
            console=Console(stderr=True),
        )
        self._all = self._progress.add_task("all cells", total=self.total, latest="")
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _show(self) -> None:
        self._progress.update(self._all, completed=self.steps, latest=self.summary())
        for name in self._bars.keys() - self.running.keys():
            self._progress.remove_task(self._bars.pop(name))
        for name, latest in self.running.items():
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=1.0, latest="")
            self._progress.update(self._bars[name], completed=self.share_of(name), latest=latest)

    def _remark(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False)
