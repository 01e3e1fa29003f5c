"""What a command says when it cannot go on, and the status it exits with."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import typer

from skyfall_core.cli.reporting import Interrupted, guarded, interruptible, say
from skyfall_core.errors import ConfigError, RunError, SkyfallError


def ended(error: BaseException) -> int:
    @guarded
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as caught:
        command()
    return caught.value.exit_code


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError("x"), 2),
        (RunError("x"), 1),
        (SkyfallError("x"), 1),
        (KeyboardInterrupt(), 130),
        (Interrupted(), 130),
        (Interrupted(signal.SIGTERM), 143),
    ],
    ids=repr,
)
def test_each_ending_has_its_status(error: BaseException, status: int) -> None:
    assert ended(error) == status


def test_a_command_that_ends_well_gives_its_result() -> None:
    @guarded
    def command(number: int, *, plus: int) -> int:
        """Add."""
        return number + plus

    assert command(1, plus=2) == 3
    assert command.__doc__ == "Add."


def test_what_nobody_meant_to_raise_comes_through() -> None:
    @guarded
    def command() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        command()


def test_every_line_and_note_is_said_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError("a.yaml: one\na.yaml: two")
    error.add_note("and that")
    ended(error)
    assert capsys.readouterr() == ("", "error: a.yaml: one\nerror: a.yaml: two\nnote: and that\n")


@pytest.mark.parametrize(
    ("cause", "traceback"),
    [(ValueError("foreign"), True), (OSError(2, "no"), False), (ConfigError("own"), False)],
)
def test_foreign_code_gets_its_traceback(
    capsys: pytest.CaptureFixture[str], cause: Exception, traceback: bool
) -> None:
    ended(caused(RunError("stopped"), cause))
    said = capsys.readouterr().err
    assert said.endswith("error: stopped\n")
    assert ("ValueError: foreign" in said) is traceback
    assert (said != "error: stopped\n") is traceback


def test_a_terminating_signal_unwinds_and_the_handler_comes_back() -> None:
    unwound: list[Any] = []
    before = signal.getsignal(signal.SIGTERM)

    def terminated() -> None:
        with interruptible():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                signal.pause()
            finally:
                unwound.append(True)

    with pytest.raises(Interrupted) as caught:
        terminated()
    assert caught.value.exit_status == 143
    assert unwound == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_is_said_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    say("hello")
    assert capsys.readouterr() == ("", "hello\n")
