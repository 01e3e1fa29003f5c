"""Progress over all cells: counts, rate and time left, in a terminal and without one."""

from __future__ import annotations

import io
import sys
import time

import pytest

from skyfall_core.cli.progress import SECONDS_BETWEEN_LINES
from skyfall_core.cli.sweep_progress import SweepProgress, progress_of_sweep
from skyfall_core.config import ExperimentConfig
from skyfall_core.executors.base import (
    Cell,
    CellBegan,
    CellEvent,
    CellOutcome,
    CellProgress,
    CellStatus,
    Remark,
)


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


def cells(*steps: int, window: int = 256) -> list[Cell]:
    return [
        Cell(
            ExperimentConfig.model_validate(
                {
                    "environment": {"id": "CartPole-v1"},
                    "algorithm": {"name": "random"},
                    "rollout": {"total_steps": count, "window_steps": window},
                    "run": {"name": f"cell{number}"},
                }
            )
        )
        for number, count in enumerate(steps)
    ]


EVENTS: list[CellEvent] = [
    CellBegan("cell0"),
    CellBegan("cell1"),
    CellProgress("cell0", 100, 0.5, "baseline"),
    CellProgress("cell1", 50, -0.25, "reversed"),
    Remark("cell1: a line that it printed [with brackets]"),
    CellOutcome("cell0", CellStatus.FINISHED, 400, 8.0),
    CellOutcome("cell1", CellStatus.FAILED, 50, 9.0, "first line\nsecond"),
]


def tell_all(progress: SweepProgress | None, clock: Clock, outcomes: list[CellOutcome]) -> None:
    tell = SweepProgress.telling(progress, outcomes)
    for event in EVENTS:
        clock.now += SECONDS_BETWEEN_LINES / 2
        tell(event)


def test_lines_tell_every_end_and_now_and_then_how_far_all_are(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes: list[CellOutcome] = []
    with progress_of_sweep(cells(400, 100, 500), quiet=False) as progress:
        tell_all(progress, clock, outcomes)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "0/3 cells, 0/1,000 steps, 0 steps/s",
        "0/3 cells, 150/1,000 steps, 15 steps/s, 57 s left",
        "cell1: a line that it printed [with brackets]",
        "[1/3] cell0 finished in 8.0 s",
        "1/3 cells, 450/1,000 steps, 30 steps/s, 18 s left",
        "[2/3] cell1 failed in 9.0 s: first line",
    ]
    assert [outcome.name for outcome in outcomes] == ["cell0", "cell1"]


def test_what_a_resumed_cell_had_done_before_does_not_count_as_speed(clock: Clock) -> None:
    with progress_of_sweep(cells(1000), quiet=False) as progress:
        assert progress is not None
        clock.now += 10
        progress(CellProgress("cell0", 800, 0.0, "a"))  # of which 256, a window, were taken now
        assert (progress.steps, progress.rate) == (800, 25.6)
        clock.now += 10
        progress(CellProgress("cell0", 944, 0.0, "a"))
        assert (progress.rate, progress.seconds_left) == (20.0, 56 / 20)


def test_a_terminal_gets_a_bar_over_all_cells_and_the_lines_above_it(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    with progress_of_sweep(cells(400, 100, 500), quiet=False) as progress:
        tell_all(progress, clock, [])
    shown = screen.getvalue()
    assert "all cells" in shown
    assert "2/3 cells, 500/1,000 steps" in shown
    assert "[2/3] cell1 failed in 9.0 s: first line" in shown
    assert "a line that it printed [with brackets]" in shown


def test_quiet_says_nothing_and_keeps_the_outcomes(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes: list[CellOutcome] = []
    with progress_of_sweep(cells(400, 100, 500), quiet=True) as progress:
        tell_all(progress, clock, outcomes)
    assert capsys.readouterr() == ("", "")
    assert len(outcomes) == 2
