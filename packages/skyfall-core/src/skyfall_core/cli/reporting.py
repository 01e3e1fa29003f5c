"""What a command prints when it cannot go on, and the status it exits with.

Results go to standard output, everything else to standard error. Status 0: done. 1: the run failed.
2: the input was wrong. 130 or 143: interrupted.
"""

from __future__ import annotations

import functools
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ParamSpec, TypeVar

import typer

from skyfall_core.errors import SkyfallError

__all__ = ["Interrupted", "guarded", "interruptible", "say"]

P = ParamSpec("P")
T = TypeVar("T")


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to stop; `exit_status` is the shell's number for it."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_status = 128 + number


def say(message: str) -> None:
    """Print a line to standard error."""
    typer.echo(message, err=True)


def guarded(command: Callable[P, T]) -> Callable[P, T]:
    """`command`, with deliberate errors as one message and their exit status instead of a traceback.

    Where an error was caused by foreign code (an environment, a plugin), that code's own traceback
    comes first, because its author needs it.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except SkyfallError as error:
            _explain(error)
            raise typer.Exit(error.exit_status) from None
        except KeyboardInterrupt as interruption:
            say("interrupted")
            raise typer.Exit(getattr(interruption, "exit_status", 130)) from None

    return run


@contextmanager
def interruptible(grace_seconds: float = 0.0) -> Iterator[Callable[[], bool]]:
    """Let SIGTERM and SIGINT unwind the stack, so that environment and trace are closed.

    Args:
        grace_seconds: How long after a first signal the block may go on, to end what it is at. A
            second signal ends it at once. Without a timer, as on Windows, there is no grace.

    Yields:
        What says whether a signal has come.
    """
    asked: list[int] = []
    patient = grace_seconds > 0 and hasattr(signal, "setitimer")

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        first = not asked
        asked.append(number)
        if not (patient and first):
            raise Interrupted(asked[0])
        signal.setitimer(signal.ITIMER_REAL, grace_seconds)

    numbers = [signal.SIGTERM, *((signal.SIGINT, signal.SIGALRM) if patient else ())]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield lambda: bool(asked)
    except KeyboardInterrupt as error:
        if asked and not isinstance(error, Interrupted):
            raise Interrupted(asked[0]) from None
        raise
    finally:
        if patient:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _explain(error: SkyfallError) -> None:
    cause = error.__cause__
    if cause is not None and not isinstance(cause, SkyfallError | OSError):
        sys.stderr.writelines(traceback.format_exception(cause))
    for line in str(error).splitlines():
        say(f"error: {line}")
    for note in getattr(error, "__notes__", ()):
        say(f"note: {note}")
