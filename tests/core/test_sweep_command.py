"""`skyfall sweep`: the matrix printed, run, refused, continued."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from skyfall_core.cli.app import build_app
from skyfall_core.errors import MissingExtraError
from skyfall_core.executors.base import needed

SWEEP = """\
base:
  environment: {id: CartPole-v1}
  algorithm: {name: random, kwargs: {seed: SEED}}
  rollout: {total_steps: 8, window_steps: 4, auto_reset: true}
families: {one: {}, two: {algorithm: {name: frozen}}}
tasks: [balance]
seeds: [0, 1]
output_dir: runs
"""
NAMES = [f"{family}-balance-seed{seed}" for family in ("one", "two") for seed in (0, 1)]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "sweep.yaml"


def sweep(file: Path, text: str, *arguments: str) -> Result:
    file.write_text(text)
    return CliRunner().invoke(build_app(), ["sweep", str(file), *arguments])


# ---------------------------------------------------------------- before anything runs


def test_dry_run_prints_every_cell_and_runs_nothing(file: Path, tmp_path: Path) -> None:
    done = sweep(file, SWEEP, "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        (
            f"cell={family}-balance-seed{seed}  algorithm_id={family}  algorithm={algorithm}  task=balance  "
            f"seed={seed}  total_steps=8  state=absent  trace=runs/{family}-balance-seed{seed}/traces.jsonl  "
            f"overrides={overrides}"
        )
        for family, algorithm, overrides in (
            ("one", "random", "{}"),
            ("two", "frozen", '{"algorithm": {"name": "frozen"}}'),
        )
        for seed in (0, 1)
    ]
    assert done.stderr == "4 cells, 32 steps in all, by executor 'local'\n"
    assert not (tmp_path / "runs").exists()


def test_dry_run_for_machines_is_one_object_a_cell_and_one_for_all(file: Path, tmp_path: Path) -> None:
    done = sweep(file, SWEEP, "--dry-run", "--json", "--set", "seeds=[5]", "--jobs", "3")
    assert (done.exit_code, done.stderr) == (0, "")
    *cells, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert cells == [
        {
            "cell": f"{family}-balance-seed5",
            "algorithm_id": family,
            "algorithm": algorithm,
            "task": "balance",
            "seed": 5,
            "total_steps": 8,
            "state": "absent",
            "trace": f"runs/{family}-balance-seed5/traces.jsonl",
            "overrides": overrides,
        }
        for family, algorithm, overrides in (
            ("one", "random", {}),
            ("two", "frozen", {"algorithm": {"name": "frozen"}}),
        )
    ]
    executor = {"name": "local", "jobs": 3}
    assert summary == {"cells": 2, "total_steps": 16, "executor": executor, "warnings": []}
    assert not (tmp_path / "runs").exists()


def test_dry_run_warns_of_families_whose_seeds_reach_the_environment_alone(file: Path) -> None:
    text = SWEEP.replace("{name: frozen}", "{kwargs: {}}").replace(
        "id: CartPole-v1", "id: CartPole-v1, kwargs: {x: SEED}"
    )
    done = sweep(file, text, "--dry-run")
    assert done.exit_code == 0
    assert [line for line in done.stderr.splitlines() if "warning" in line] == [
        (
            "warning: family 'two': its seeds reach run.seed, environment.kwargs.x and nothing of the "
            "algorithm; write SEED where the algorithm or its policy takes a seed, "
            "unless neither draws anything"
        )
    ]


def test_bad_cell_exits_2_before_any_cell_runs(file: Path, tmp_path: Path) -> None:
    done = sweep(file, SWEEP.replace("frozen", "frozn"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert [line.partition(": FILE")[0].split(": ")[1] for line in done.stderr.splitlines()] == [
        "cell two-balance-seed0"
    ]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--executor", "lokal"],
         "error: unknown executor 'lokal': did you mean 'local'? known: 'local', 'ray', 'slurm'\n"),
        (["--resume", "--overwrite"],
         "error: --resume keeps what is recorded and --overwrite replaces it; give one of them\n"),
        (["--set", "executor={name: ray, params: {address: '127.0.0.1:1'}}"],
         ("error: executor.params.address: no Ray cluster answers at '127.0.0.1:1': Connection refused; "
          "start one with 'ray start --head', or leave the address out for one on this machine\n")),
        (["--set", "executor={name: ray, params: {address: nowhere}}"],
         ("error: executor.params.address: 'nowhere' is not of the form 'host:port'; "
          "it is what 'ray start --head' prints\n")),
    ],
)  # fmt: skip
def test_executor_that_cannot_work_exits_2_before_any_cell_runs(
    file: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    if "ray" in arguments[-1]:
        pytest.importorskip("ray", reason="needs the extra 'ray'")
    done = sweep(file, SWEEP, *arguments)
    assert (done.exit_code, done.stderr) == (2, message)
    assert not (tmp_path / "runs").exists()


def test_jobs_below_one_exit_2(file: Path) -> None:
    done = sweep(file, SWEEP, "--jobs", "0")
    assert done.exit_code == 2
    assert "'--jobs' / '-j'" in done.stderr


@pytest.mark.parametrize(("executor", "module"), [("ray", "ray"), ("slurm", "submitit")])
def test_executor_that_is_not_installed_says_its_extra(
    file: Path, monkeypatch: pytest.MonkeyPatch, executor: str, module: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Hides(module), *sys.meta_path])
    done = sweep(file, SWEEP, "--executor", executor)
    assert (done.exit_code, done.stderr) == (
        2,
        (
            f"error: executor {executor!r} needs {module}, which is not installed: "
            f"pip install 'skyfall-crl[{executor}]'\n"
        ),
    )


class _Hides:
    """A machine without one package."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self._name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_what_a_dependency_of_an_executor_lacks_is_not_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_there.py").write_text("import not_there_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        needed("half_there", "mine", "mine")
    with pytest.raises(MissingExtraError):
        needed("not_there_at_all", "mine", "mine")


# ---------------------------------------------------------------- running


def test_every_cell_is_run_and_recorded_in_a_place_of_its_own(file: Path, tmp_path: Path) -> None:
    done = sweep(file, SWEEP, "--quiet", "--json", "--jobs", "2")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"cells": 4, "finished": 4, "skipped": 0, "failed": {}}
    for family in ("one", "two"):
        for seed in (0, 1):
            trace = tmp_path / "runs" / f"{family}-balance-seed{seed}" / "traces.jsonl"
            rows = [json.loads(line) for line in trace.read_text().splitlines()]
            assert [row["step"] for row in rows] == list(range(8))
            assert {(row["algorithm_id"], row["task"], row["seed"]) for row in rows} == {
                (family, "balance", seed)
            }


def test_cell_that_fails_is_told_with_its_error_at_the_end_and_does_not_stop_the_others(
    file: Path, tmp_path: Path
) -> None:
    broken = SWEEP.replace("two: {algorithm: {name: frozen}}", "two: {environment: {kwargs: {y: 1}}}")
    done = sweep(file, broken, "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["cells"], told["finished"]) == (4, 2)
    assert list(told["failed"]) == ["two-balance-seed0", "two-balance-seed1"]
    assert "unexpected keyword argument 'y'" in told["failed"]["two-balance-seed0"]
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "error: 2 of 4 cells failed: two-balance-seed0, two-balance-seed1"
    )
    assert sorted(path.parent.name for path in tmp_path.glob("runs/*/config.yaml")) == NAMES[:2]


def test_progress_names_every_cell_that_ends_and_sums_up(file: Path) -> None:
    lines = sweep(file, SWEEP).stderr.splitlines()
    assert [line.split(" in ")[0] for line in lines[:4]] == [
        f"[{number}/4] {name} finished" for number, name in enumerate(NAMES, start=1)
    ]
    assert lines[-1] == "4 of 4 cells done"


# ---------------------------------------------------------------- what is there already


def test_recorded_cells_are_refused_before_anything_runs(file: Path, tmp_path: Path) -> None:
    assert sweep(file, SWEEP.replace("[0, 1]", "[0]"), "-q").exit_code == 0
    done = sweep(file, SWEEP, "-q")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {tmp_path / 'runs'}: 2 of 4 cells are recorded already: one-balance-seed0, "
        "two-balance-seed0; go on with --resume, or replace them with --overwrite\n"
    )
    assert len(list(tmp_path.glob("runs/*"))) == 2


def test_resume_skips_what_is_finished_and_begins_what_is_not_there(file: Path, tmp_path: Path) -> None:
    sweep(file, SWEEP.replace("[0, 1]", "[0]"), "-q")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*")}
    done = sweep(file, SWEEP, "-q", "--json", "--resume")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"cells": 4, "finished": 2, "skipped": 2, "failed": {}}
    assert {path: path.stat().st_mtime_ns for path in before} == before
    again = sweep(file, SWEEP, "--resume")
    assert again.stderr == "4 of 4 cells are finished already\n4 of 4 cells done\n"


def test_resume_goes_on_with_what_was_cut_short(file: Path, tmp_path: Path) -> None:
    sweep(file, SWEEP.replace("rollout: {", "rollout: {").replace("total_steps: 8", "total_steps: 4"), "-q")
    done = sweep(file, SWEEP, "-q", "--json", "--resume")
    assert json.loads(done.stdout) == {"cells": 4, "finished": 4, "skipped": 0, "failed": {}}
    for trace in tmp_path.glob("runs/*/traces.jsonl"):
        assert [json.loads(line)["step"] for line in trace.read_text().splitlines()] == list(range(8))


def test_resume_refuses_finished_cells_of_another_document(file: Path) -> None:
    sweep(file, SWEEP, "-q")
    done = sweep(file, SWEEP.replace("window_steps: 4", "window_steps: 2"), "-q", "--resume")
    assert (done.exit_code, done.stderr.splitlines()) == (
        2,
        [
            (
                "error: cell one-balance-seed0 was recorded with another document; put it back, "
                "choose another output_dir, or begin again with --overwrite"
            ),
            "error: rollout.window_steps: 4 in the checkpoint, 2 now",
        ],
    )


def test_overwrite_begins_every_cell_again(file: Path, tmp_path: Path) -> None:
    sweep(file, SWEEP, "-q")
    done = sweep(file, SWEEP.replace("total_steps: 8", "total_steps: 4"), "-q", "--json", "--overwrite")
    assert json.loads(done.stdout) == {"cells": 4, "finished": 4, "skipped": 0, "failed": {}}
    for trace in tmp_path.glob("runs/*/traces.jsonl"):
        assert len(trace.read_text().splitlines()) == 4


def test_dry_run_says_how_far_each_cell_is(file: Path) -> None:
    sweep(file, SWEEP.replace("[0, 1]", "[0]"), "-q")
    done = sweep(file, SWEEP, "--dry-run", "--json")
    states = [json.loads(line).get("state") for line in done.stdout.splitlines()]
    assert states == ["finished", "absent", "finished", "absent", None]
