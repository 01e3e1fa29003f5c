"""Running one cell in the process this is called in, whatever happens in it."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from skyfall_core.errors import SkyfallError
from skyfall_core.executors.base import Cell, CellOutcome, CellProgress, CellStatus
from skyfall_core.experiment import WindowReport, run_experiment

__all__ = ["SECONDS_BETWEEN_REPORTS", "run_cell", "stoppable"]

SECONDS_BETWEEN_REPORTS = 0.25
"""How often a cell says how far it is, at most."""


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Let a first SIGINT stop a cell at its window's end, with a checkpoint, and anything further at once.

    SIGTERM stops at once as well. What is yielded says whether the cell was asked to stop.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        nonlocal asked
        if asked or number != signal.SIGINT:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_cell(
    cell: Cell,
    report: Callable[[CellProgress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> CellOutcome:
    """Run one cell to its end and say how it ended; raises nothing.

    Args:
        cell: What to run.
        report: Called with the cell's progress now and then, and after its last window.
        should_stop: Asked after each window; when it says so, the cell writes a checkpoint and ends.
    """
    began = time.monotonic()
    steps = 0
    told = 0.0

    def on_window(window: WindowReport) -> None:
        nonlocal steps, told
        steps = window.steps
        now = time.monotonic()
        if report is None or (
            now - told < SECONDS_BETWEEN_REPORTS and steps < cell.config.rollout.total_steps
        ):
            return
        told = now
        report(CellProgress(cell.name, steps, window.mean_reward, window.regimes[-1]))

    def ended(status: CellStatus, error: str | None = None, detail: str | None = None) -> CellOutcome:
        return CellOutcome(cell.name, status, steps, time.monotonic() - began, error, detail)

    try:
        steps = run_experiment(
            cell.config, trace_mode=cell.mode, on_window=on_window, should_stop=should_stop
        ).steps
    except KeyboardInterrupt:
        return ended(CellStatus.INTERRUPTED)
    except SkyfallError as error:
        return ended(CellStatus.FAILED, _message(error), _foreign(error))
    except SystemExit as error:
        return ended(CellStatus.FAILED, f"what it runs called exit({error.code!r})", traceback.format_exc())
    except BaseException as error:  # noqa: BLE001 - the outcome is how it is told
        return ended(CellStatus.FAILED, f"{type(error).__name__}: {error}", traceback.format_exc())
    return ended(CellStatus.FINISHED)


def _message(error: SkyfallError) -> str:
    return "\n".join((str(error), *(f"note: {note}" for note in getattr(error, "__notes__", ()))))


def _foreign(error: SkyfallError) -> str | None:
    """The traceback of the environment's or plugin's own error behind `error`, if there is one."""
    cause = error.__cause__
    if cause is None or isinstance(cause, SkyfallError | OSError):
        return None
    return "".join(traceback.format_exception(cause))
