"""Progress of a run on standard error: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skyfall_core.cli.reporting import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from skyfall_core.reports import WindowReport

__all__ = ["progress_of"]

SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def progress_of(name: str, total_steps: int, *, quiet: bool) -> Iterator[Callable[[WindowReport], None]]:
    """A function to call with each window's report, showing rate and time left."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(name, total_steps) as show:
            yield show
    else:
        yield _Lines(name, total_steps)


@contextmanager
def _bar(name: str, total_steps: int) -> Iterator[Callable[[WindowReport], None]]:
    from rich.console import Console  # noqa: PLC0415 - only for a terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[latest]}"),
    )
    pace = _Pace()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=total_steps, rate="", latest="")

        def show(report: WindowReport) -> None:
            rate = pace(report.steps)
            shown = "" if rate is None else f"{_rate(rate)} steps/s"
            progress.update(task, completed=report.steps, rate=shown, latest=_latest(report))

        yield show


class _Lines:
    """A line every few seconds, and one at the end."""

    def __init__(self, name: str, total_steps: int) -> None:
        self._name, self._total = name, total_steps
        self._pace = _Pace()
        self._told = time.monotonic()

    def __call__(self, report: WindowReport) -> None:
        now, rate = time.monotonic(), self._pace(report.steps)
        if now - self._told < SECONDS_BETWEEN_LINES and report.steps < self._total:
            return
        self._told = now
        parts = [f"{self._name}: {report.steps:,}/{self._total:,} steps"]
        if rate is not None:
            parts += [f"{_rate(rate)} steps/s", f"{(self._total - report.steps) / rate:,.0f} s left"]
        say(", ".join([*parts, _latest(report)]))


class _Pace:
    """Steps a second since the first window, so that neither starting up nor an earlier life counts."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def __call__(self, steps: int) -> float | None:
        """The rate when so many steps are done; None at the first window."""
        now = time.monotonic()
        if self._first is None:
            self._first = now, steps
        began, before = self._first
        return (steps - before) / (now - began) if steps > before and now > began else None


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _latest(report: WindowReport) -> str:
    return f"{report.regimes[-1]} reward {report.mean_reward:+.4g}"
