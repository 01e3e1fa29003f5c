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
    started = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=total_steps, rate="", latest="")

        def show(report: WindowReport) -> None:
            rate = report.steps / max(time.monotonic() - started, 1e-9)
            progress.update(task, completed=report.steps, rate=f"{rate:,.0f} steps/s", latest=_latest(report))

        yield show


class _Lines:
    """A line every few seconds, and one at the end."""

    def __init__(self, name: str, total_steps: int) -> None:
        self._name, self._total = name, total_steps
        self._started = self._told = time.monotonic()

    def __call__(self, report: WindowReport) -> None:
        now = time.monotonic()
        if now - self._told < SECONDS_BETWEEN_LINES and report.steps < self._total:
            return
        self._told = now
        rate = report.steps / max(now - self._started, 1e-9)
        left = (self._total - report.steps) / max(rate, 1e-9)
        done = f"{report.steps:,}/{self._total:,} steps"
        say(f"{self._name}: {done}, {rate:,.0f} steps/s, {left:,.0f} s left, {_latest(report)}")


def _latest(report: WindowReport) -> str:
    return f"{report.regimes[-1]} reward {report.mean_reward:+.4g}"
