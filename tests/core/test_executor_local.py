"""Cells in processes of this machine: nothing one does reaches another, and no process is left."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skyfall_core.config import ExperimentConfig
from skyfall_core.errors import ConfigError
from skyfall_core.executors import local
from skyfall_core.executors.base import (
    Cell,
    CellBegan,
    CellEvent,
    CellOutcome,
    CellProgress,
    CellStatus,
    Remark,
    Resources,
)
from skyfall_core.executors.local import THREAD_VARIABLES, LocalExecutor, thread_budget
from skyfall_core.experiment import run_experiment

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="cells run in forks of a worker")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(local, "SECONDS_TO_CHECKPOINT", 0.3)


def cell(tmp_path: Path, name: str, does: str | None = None, steps: int = 10, **rollout: Any) -> Cell:
    document = {
        "environment": {"id": "executor_world:World", "kwargs": {"here": str(tmp_path), "does": does}},
        "algorithm": {"name": "random", "kwargs": {"seed": 1}},
        "rollout": {"window_steps": 5, "total_steps": steps},
        "run": {"name": name, "seed": 1, "output_dir": str(tmp_path / "runs")},
    }
    return Cell(ExperimentConfig.model_validate(document))


def run(cells: list[Cell], **how: Any) -> list[CellEvent]:
    events: list[CellEvent] = []
    LocalExecutor(**how).run(cells, events.append)
    return events


def outcomes(events: list[CellEvent]) -> dict[str, CellOutcome]:
    return {event.name: event for event in events if isinstance(event, CellOutcome)}


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not yet waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def interrupting(tmp_path: Path, waiting: int, number: signal.Signals = signal.SIGINT) -> Callable[..., None]:
    """An event handler that interrupts this process once so many cells wait."""
    told = threading.Event()

    def look() -> None:
        while len(list(tmp_path.glob("waiting-*[0-9]"))) < waiting:
            if told.wait(0.02):
                return
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return lambda: (told.set(), thread.join())


# ---------------------------------------------------------------- what a cell's end is called


def test_cell_tells_that_it_began_how_far_it_is_and_how_it_ended(tmp_path: Path) -> None:
    began, *progress, ended = run([cell(tmp_path, "a")])
    assert began == CellBegan("a")
    assert progress[-1] == CellProgress("a", 10, 1.0, "baseline")
    assert isinstance(ended, CellOutcome)
    assert (ended.name, ended.status, ended.steps, ended.error) == ("a", CellStatus.FINISHED, 10, None)
    assert ended.seconds is not None


@pytest.mark.parametrize(
    ("does", "error", "detail"),
    [
        ("raises", "World failed at step 5: ValueError: broken", 'raise ValueError("broken")'),
        ("exits", "what it runs called exit(3)", "sys.exit(3)"),
        ("exits_hard", "its process ended with status 7 before the run did", "last words"),
        ("aborts", "its process crashed with SIGABRT", "Fatal Python error: Aborted"),
        ("killed", "killed by SIGKILL, as the system does when memory runs out; it had taken ", None),
    ],
)
def test_whatever_happens_to_a_cell_is_its_outcome_and_stops_no_other(
    tmp_path: Path, does: str, error: str, detail: str | None
) -> None:
    found = outcomes(run([cell(tmp_path, "bad", does), cell(tmp_path, "good"), cell(tmp_path, "last")]))
    assert found["bad"].status is CellStatus.FAILED
    assert found["bad"].error is not None
    assert error in found["bad"].error
    assert detail is None or detail in str(found["bad"].detail)
    assert [found[name].status for name in ("good", "last")] == [CellStatus.FINISHED] * 2


def test_a_kill_says_how_much_the_cell_had_taken_and_what_to_do(tmp_path: Path) -> None:
    error = outcomes(run([cell(tmp_path, "a", "killed")]))["a"].error
    assert error is not None
    assert int(error.partition("it had taken ")[2].partition(" MiB")[0]) > 10
    assert error.endswith("; give fewer --jobs, or executor.resources.memory_mb what a cell needs")


def test_a_worker_that_is_killed_takes_its_cell_along_and_no_other(tmp_path: Path) -> None:
    """As when the system picks the worker itself to free memory."""
    cells = [cell(tmp_path, "a", "waits"), cell(tmp_path, "b"), cell(tmp_path, "c")]
    found: dict[str, CellOutcome] = {}

    def tell(event: CellEvent) -> None:
        if isinstance(event, CellOutcome):
            found[event.name] = event
            if event.name == "c":
                (waiting,) = tmp_path.glob("waiting-*")
                parent = Path(f"/proc/{waiting.read_text()}/stat").read_text().rpartition(")")[2].split()[1]
                os.kill(int(parent), signal.SIGKILL)

    LocalExecutor(jobs=2).run(cells, tell)
    assert found["a"].status is CellStatus.FAILED
    assert "killed by SIGKILL" in str(found["a"].error)
    assert [found[name].status for name in "bc"] == [CellStatus.FINISHED] * 2
    (waiting,) = tmp_path.glob("waiting-*")
    assert not alive(int(waiting.read_text()))


def test_what_a_cell_prints_is_told_with_its_name(tmp_path: Path) -> None:
    assert Remark("a: hello from a cell") in run([cell(tmp_path, "a", "prints")])


def test_cell_that_cannot_be_rebuilt_in_another_process_fails_alone(tmp_path: Path) -> None:
    taken = cell(tmp_path, "taken")
    (tmp_path / "runs" / "taken").mkdir(parents=True)
    (tmp_path / "runs" / "taken" / "traces.jsonl").write_text("")
    found = outcomes(run([taken, cell(tmp_path, "b")]))
    assert "already holds a trace" in str(found["taken"].error)
    assert found["b"].status is CellStatus.FINISHED


def test_no_cells_are_no_work() -> None:
    assert run([]) == []


def test_traces_are_those_of_a_run_in_this_process(tmp_path: Path) -> None:
    cells = [cell(tmp_path, name) for name in ("a", "b", "c")]
    run(cells, jobs=2)
    for one in cells:
        alone = tmp_path / f"{one.name}.jsonl"
        run_experiment(one.config, trace_path=alone)
        assert (tmp_path / "runs" / one.name / "traces.jsonl").read_bytes() == alone.read_bytes()


# ---------------------------------------------------------------- no process is left


def test_no_process_of_a_cell_outlives_it(tmp_path: Path) -> None:
    found = outcomes(run([cell(tmp_path, "a", "leaves_a_child")]))
    assert found["a"].status is CellStatus.FINISHED
    assert not alive(int((tmp_path / "child").read_text()))


def test_interruption_closes_every_running_world_and_begins_no_further_cell(tmp_path: Path) -> None:
    cells = [cell(tmp_path, name, "waits_with_a_child") for name in ("a", "b", "c")]
    events: list[CellEvent] = []
    done = interrupting(tmp_path, waiting=2)
    with pytest.raises(KeyboardInterrupt):
        LocalExecutor(jobs=2).run(cells, events.append)
    done()
    assert {name: outcome.status for name, outcome in outcomes(events).items()} == {
        "a": CellStatus.INTERRUPTED,
        "b": CellStatus.INTERRUPTED,
    }
    assert [path.read_text() for path in tmp_path.glob("closed-*")] == ["5", "5"]
    for path in (*tmp_path.glob("waiting-*"), tmp_path / "child"):
        assert not alive(int(path.read_text()))


def test_interrupted_cell_ends_its_window_and_leaves_a_checkpoint_to_go_on_from(tmp_path: Path) -> None:
    long = cell(tmp_path, "a", "waits_a_little", steps=1_000_000)
    events: list[CellEvent] = []
    done = interrupting(tmp_path, waiting=1)
    with pytest.raises(KeyboardInterrupt):
        LocalExecutor().run([long], events.append)
    done()
    ended = outcomes(events)["a"]
    assert (ended.status, ended.error) == (CellStatus.INTERRUPTED, None)
    assert ended.steps % 5 == 0
    trace = tmp_path / "runs" / "a" / "traces.jsonl"
    assert trace.read_bytes().count(b"\n") == ended.steps
    (checkpoint,) = (trace.parent / "checkpoints").iterdir()
    assert checkpoint.name.lstrip("step-0") == str(ended.steps).lstrip("0")


def test_cell_that_does_not_stop_in_time_is_killed_and_said_to_be(tmp_path: Path) -> None:
    events: list[CellEvent] = []
    done = interrupting(tmp_path, waiting=1)
    with pytest.raises(KeyboardInterrupt):
        LocalExecutor(seconds_to_stop=0.3).run([cell(tmp_path, "a", "will_not_stop")], events.append)
    done()
    ended = outcomes(events)["a"]
    assert ended.status is CellStatus.INTERRUPTED
    assert "did not stop in time" in str(ended.error)
    (waiting,) = tmp_path.glob("waiting-*")
    assert not alive(int(waiting.read_text()))


# ---------------------------------------------------------------- sharing the machine


@pytest.mark.parametrize(
    ("cores", "jobs", "cpus", "given", "expected"),
    [
        (8, 2, None, {}, {"4"}),
        (8, 3, None, {}, {"2"}),
        (2, 5, None, {}, {"1"}),
        (8, 2, 3, {}, {"3"}),
        (8, 2, None, {"OMP_NUM_THREADS": "1"}, {"1"}),
        (8, 2, None, {"OMP_NUM_THREADS": "16"}, {"4"}),
        (8, 2, None, {"OMP_NUM_THREADS": "0"}, {"4"}),
        (8, 2, None, {"OMP_NUM_THREADS": "many"}, {"4"}),
        (8, 2, None, {"MKL_NUM_THREADS": "1"}, {"1", "4"}),
    ],
)
def test_threads_are_shared_fairly_and_never_more_than_the_user_allows(
    monkeypatch: pytest.MonkeyPatch, cores: int, jobs: int, cpus: int | None, given: Any, expected: set[str]
) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(local, "_cores", lambda: cores)
    budget = thread_budget(jobs, cpus)
    assert set(budget) == set(THREAD_VARIABLES)
    assert set(budget.values()) == expected


def test_threads_are_set_before_a_cell_loads_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    run([cell(tmp_path, "a", "tells_threads")], resources=Resources(cpus=3))
    assert (tmp_path / "threads").read_text() == "3 3"


def test_no_further_cell_begins_while_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "available_mb", lambda: 900)
    cells = [cell(tmp_path, name) for name in ("a", "b")]
    events = run(cells, jobs=2, resources=Resources(memory_mb=500))
    order = [type(event).__name__ for event in events if isinstance(event, CellBegan | CellOutcome)]
    assert order == ["CellBegan", "CellOutcome"] * 2
    (remark,) = [event.text for event in events if isinstance(event, Remark)]
    assert remark.startswith("memory is short: a cell needs 500 MiB and 900 MiB are available, ")


@pytest.mark.parametrize("free", [1000, None], ids=["enough", "unknown"])
def test_cells_run_beside_each_other_where_memory_is_enough_or_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int | None
) -> None:
    monkeypatch.setattr(local, "available_mb", lambda: free)
    events = run([cell(tmp_path, name) for name in "ab"], jobs=2, resources=Resources(memory_mb=500))
    assert events[:2] == [CellBegan("a"), CellBegan("b")]


@pytest.mark.parametrize("jobs", [0, -1])
def test_jobs_below_one_are_refused(jobs: int) -> None:
    with pytest.raises(ConfigError) as caught:
        LocalExecutor(jobs=jobs)
    assert str(caught.value) == f"executor.jobs: {jobs} cells at a time run nothing; give at least 1"
