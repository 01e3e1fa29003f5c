"""Cells as jobs: what SLURM would be asked for, and the whole way through submitit's own processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from skyfall_core.config import ExperimentConfig
from skyfall_core.errors import ConfigError
from skyfall_core.executors.base import Cell, CellEvent, CellOutcome, CellStatus, Resources
from skyfall_core.executors.slurm import SlurmCell, SlurmExecutor
from skyfall_core.experiment import run_experiment

submitit = pytest.importorskip("submitit", reason="needs the extra 'slurm'")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    here = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))


def cell(tmp_path: Path, name: str, does: str | None = None, steps: int = 10) -> Cell:
    document = {
        "environment": {"id": "executor_world:World", "kwargs": {"here": str(tmp_path), "does": does}},
        "algorithm": {"name": "random", "kwargs": {"seed": 1}},
        "rollout": {"window_steps": 5, "total_steps": steps},
        "run": {"name": name, "seed": 1, "output_dir": str(tmp_path / "runs")},
    }
    return Cell(ExperimentConfig.model_validate(document))


def outcomes(executor: SlurmExecutor, cells: list[Cell]) -> dict[str, CellOutcome]:
    events: list[CellEvent] = []
    executor.run(cells, events.append)
    return {event.name: event for event in events if isinstance(event, CellOutcome)}


def test_cells_run_as_jobs_with_the_traces_of_this_process(tmp_path: Path) -> None:
    cells = [cell(tmp_path, "a"), cell(tmp_path, "bad", "raises"), cell(tmp_path, "dead", "killed")]
    found = outcomes(SlurmExecutor(output_dir=tmp_path / "runs", cluster="local"), cells)
    assert (found["a"].status, found["a"].steps) == (CellStatus.FINISHED, 10)
    assert "World failed at step 5: ValueError: broken" in str(found["bad"].error)
    assert found["dead"].status is CellStatus.FAILED
    assert "see " in str(found["dead"].error)
    alone = tmp_path / "alone.jsonl"
    run_experiment(cells[0].config, trace_path=alone)
    assert (tmp_path / "runs" / "a" / "traces.jsonl").read_bytes() == alone.read_bytes()


SBATCH = """#!/bin/sh
for last; do :; done
cp "$last" "{folder}/submitted.sh"
echo "Submitted batch job 4711"
"""


@pytest.fixture
def login_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose `sbatch` keeps what it is given."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("sbatch", SBATCH.format(folder=tmp_path)), ("srun", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def submitted(login_node: Path, **how: Any) -> list[str]:
    executor = SlurmExecutor(output_dir=login_node / "runs", **how)
    with executor._submitit.batch():
        for name in "abcd":
            executor._submitit.submit(SlurmCell(cell(login_node, name), 1))
    return (login_node / "submitted.sh").read_text().splitlines()


def test_all_cells_are_one_array_of_as_many_at_a_time_as_jobs(login_node: Path) -> None:
    resources = Resources(cpus=3, gpus=1.0, memory_mb=2048)
    script = submitted(
        login_node, jobs=2, resources=resources, minutes=90, options={"partition": "long", "account": "lab"}
    )
    asked = {line.removeprefix("#SBATCH --") for line in script if line.startswith("#SBATCH ")}
    assert asked >= {
        "array=0-3%2",
        "cpus-per-task=3",
        "gpus-per-node=1",
        "mem=2GB",
        "time=90",
        "partition=long",
        "account=lab",
        "job-name=skyfall",
    }


def test_job_whose_time_runs_out_goes_on_where_it_stopped(tmp_path: Path) -> None:
    before = SlurmCell(cell(tmp_path, "a", steps=5), 1)
    assert before().status is CellStatus.FINISHED
    longer = SlurmCell(cell(tmp_path, "a", steps=15), 1)
    again = longer.checkpoint()
    assert again.result().steps == 15
    assert (tmp_path / "runs" / "a" / "traces.jsonl").read_bytes().count(b"\n") == 15
    with pytest.raises(SystemExit):  # how submitit's own handler ends the job that was put back
        longer()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"cluster": "slurmm"}, "executor.params.cluster: 'slurmm' is none of 'slurm', 'local', 'debug'"),
        ({"resources": Resources(gpus=0.5), "cluster": "local"},
         "executor.resources.gpus: 0.5 accelerators; SLURM gives whole ones, so give an integer"),
        ({"cluster": "slurm"},
         ("executor.params.cluster: Could not detect \"srun\", are you indeed on a slurm cluster?; "
          "run this on a login node, or give cluster: local")),
    ],
)  # fmt: skip
def test_what_slurm_cannot_do_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], message: str
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(ConfigError) as caught:
        SlurmExecutor(output_dir=tmp_path, **how)
    assert str(caught.value) == message


def test_option_that_sbatch_does_not_know_is_refused(login_node: Path) -> None:
    with pytest.raises(ConfigError, match=r"executor.params: submitit refuses them: .*partitoin"):
        SlurmExecutor(output_dir=login_node, options={"partitoin": "x"})
