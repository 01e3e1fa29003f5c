"""Progress: a bar in a terminal, now and then a line elsewhere, nothing when quiet."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import pytest

from skyfall_core.cli.progress import SECONDS_BETWEEN_LINES, progress_of
from skyfall_core.experiment import WindowReport


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def report(steps: int) -> WindowReport:
    return WindowReport(steps, -0.25, ("a", "b"), {})


def test_lines_come_now_and_then_and_at_the_end(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_of("run", 1000, quiet=False) as show:
        for steps in range(100, 1001, 100):
            clock.now += SECONDS_BETWEEN_LINES / 2
            show(report(steps))
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert lines[0] == "run: 200/1,000 steps, 40 steps/s, 20 s left, b reward -0.25"
    assert [line.split()[1] for line in lines] == [f"{steps}/1,000" for steps in (200, 400, 600, 800)] + [
        "1,000/1,000"
    ]
    assert "0 s left" in lines[-1]


def test_a_short_run_says_one_line_even_without_time_passing(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_of("run", 20, quiet=False) as show:
        show(report(10))
        show(report(20))
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_neither_starting_up_nor_an_earlier_life_counts_for_the_rate(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_of("run", 1000, quiet=False) as show:
        clock.now += 60.0  # imports, and a checkpoint's 500 steps
        show(report(510))
        clock.now += SECONDS_BETWEEN_LINES
        show(report(512))
    assert capsys.readouterr().err.splitlines() == [
        "run: 510/1,000 steps, b reward -0.25",
        "run: 512/1,000 steps, 0.4 steps/s, 1,220 s left, b reward -0.25",
    ]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_of("run", 20, quiet=True) as show:
        show(report(20))
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_that_ends_with_the_run(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")

    def interrupted() -> None:
        with progress_of("cart", 20, quiet=False) as show:
            show(report(10))
            show(report(20))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    drawn = terminal.getvalue()
    assert "cart" in drawn
    assert "20/20" in drawn
    assert "b reward -0.25" in drawn
    assert drawn.endswith("\x1b[?25h")  # the cursor is back
    assert capsys.readouterr().out == ""
