"""Cells as Ray tasks, on a Ray instance that runs for this file's tests."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skyfall_core.config import ExperimentConfig
from skyfall_core.errors import ConfigError
from skyfall_core.executors.base import Cell, CellBegan, CellEvent, CellOutcome, CellStatus, Resources
from skyfall_core.executors.ray import RayExecutor
from skyfall_core.experiment import run_experiment

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")

HERE = str(Path(__file__).parent)


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Ray instance of two cores without dashboard, and without a token in the user's home."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")]))
        warnings.simplefilter("ignore", ResourceWarning)  # Ray leaves files of its processes open
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
        )
        try:
            yield
        finally:
            ray.shutdown()


def cell(tmp_path: Path, name: str, does: str | None = None, steps: int = 10) -> Cell:
    document = {
        "environment": {"id": "executor_world:World", "kwargs": {"here": str(tmp_path), "does": does}},
        "algorithm": {"name": "random", "kwargs": {"seed": 1}},
        "rollout": {"window_steps": 5, "total_steps": steps},
        "run": {"name": name, "seed": 1, "output_dir": str(tmp_path / "runs")},
    }
    return Cell(ExperimentConfig.model_validate(document))


def run(cells: list[Cell], **how: Any) -> list[CellEvent]:
    events: list[CellEvent] = []
    RayExecutor(**how).run(cells, events.append)
    return events


def outcomes(events: list[CellEvent]) -> dict[str, CellOutcome]:
    return {event.name: event for event in events if isinstance(event, CellOutcome)}


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


def test_traces_are_those_of_a_run_in_this_process(tmp_path: Path, importable: None) -> None:
    cells = [cell(tmp_path, name) for name in ("a", "b")]
    found = outcomes(run(cells))
    for one in cells:
        assert (found[one.name].status, found[one.name].steps) == (CellStatus.FINISHED, 10)
        alone = tmp_path / f"{one.name}.jsonl"
        run_experiment(one.config, trace_path=alone)
        assert (tmp_path / "runs" / one.name / "traces.jsonl").read_bytes() == alone.read_bytes()


def test_cells_that_fail_or_crash_are_told_and_stop_no_other(tmp_path: Path) -> None:
    cells = [cell(tmp_path, "bad", "raises"), cell(tmp_path, "dead", "killed"), cell(tmp_path, "good")]
    found = outcomes(run(cells))
    assert "World failed at step 5: ValueError: broken" in str(found["bad"].error)
    assert 'raise ValueError("broken")' in str(found["bad"].detail)
    assert found["dead"].status is CellStatus.FAILED
    assert "crashed or was killed, as the system does when memory runs out" in str(found["dead"].error)
    assert found["good"].status is CellStatus.FINISHED


def test_threads_are_those_of_the_cores_a_cell_takes(tmp_path: Path) -> None:
    run([cell(tmp_path, "a", "tells_threads")], resources=Resources(cpus=2))
    assert (tmp_path / "threads").read_text() == "2 2"


def test_no_more_cells_than_jobs_run_at_a_time(tmp_path: Path) -> None:
    events = run([cell(tmp_path, name) for name in ("a", "b")], jobs=1)
    kinds = [type(event) for event in events if isinstance(event, CellBegan | CellOutcome)]
    assert kinds == [CellBegan, CellOutcome] * 2


def test_interruption_lets_the_cell_end_its_window_and_closes_its_world(tmp_path: Path) -> None:
    def interrupt() -> None:
        while not list(tmp_path.glob("waiting-*[0-9]")) and not told.wait(0.05):
            pass
        os.kill(os.getpid(), 2)

    told, events = threading.Event(), list[CellEvent]()
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        RayExecutor().run([cell(tmp_path, "a", "waits_a_little", 10_000_000)], events.append)
    with contextlib.suppress(RuntimeError):
        thread.join()
    ended = outcomes(events)["a"]
    assert (ended.status, ended.error) == (CellStatus.INTERRUPTED, None)
    assert len(list(tmp_path.glob("closed-*"))) == 1
    assert list((tmp_path / "runs" / "a" / "checkpoints").iterdir())


def test_what_no_machine_has_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        run([cell(tmp_path, "a")], resources=Resources(cpus=64, gpus=1))
    assert str(caught.value) == (
        "executor.resources: a cell takes 64 CPU, 1 GPU, and the largest machine has 2 CPU, 0 GPU; "
        "ask for less, or add such a machine"
    )
