"""`skyfall sweep`: the matrix printed, or run cell by cell."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from skyfall_core.cli.app import build_app

SWEEP = """\
base:
  environment: {id: CartPole-v1}
  algorithm: {name: random}
  rollout: {total_steps: 8, window_steps: 4, auto_reset: true}
families: {one: {}, two: {algorithm: {name: frozen}}}
tasks: [balance]
seeds: [0, 1]
output_dir: runs
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "sweep.yaml"


def sweep(file: Path, text: str, *arguments: str) -> Result:
    file.write_text(text)
    return CliRunner().invoke(build_app(), ["sweep", str(file), *arguments])


def test_dry_run_prints_every_cell_and_runs_nothing(file: Path, tmp_path: Path) -> None:
    done = sweep(file, SWEEP, "--dry-run")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        (
            f"cell={family}-balance-seed{seed}  algorithm_id={family}  algorithm={algorithm}  task=balance  "
            f"seed={seed}  total_steps=8  trace=runs/{family}-balance-seed{seed}/traces.jsonl"
        )
        for family, algorithm in (("one", "random"), ("two", "frozen"))
        for seed in (0, 1)
    ]
    assert not (tmp_path / "runs").exists()


def test_dry_run_for_machines_is_one_json_object_a_line(file: Path, tmp_path: Path) -> None:
    done = sweep(file, SWEEP, "--dry-run", "--json", "--set", "seeds=[5]")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "cell": f"{family}-balance-seed5",
            "algorithm_id": family,
            "algorithm": algorithm,
            "task": "balance",
            "seed": 5,
            "total_steps": 8,
            "trace": f"runs/{family}-balance-seed5/traces.jsonl",
        }
        for family, algorithm in (("one", "random"), ("two", "frozen"))
    ]
    assert not (tmp_path / "runs").exists()


def test_bad_cell_exits_2_before_any_cell_runs(file: Path, tmp_path: Path) -> None:
    done = sweep(file, SWEEP.replace("frozen", "frozn"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert [line.partition(": FILE")[0].split(": ")[1] for line in done.stderr.splitlines()] == [
        "cell two-balance-seed0"
    ]
    assert not (tmp_path / "runs").exists()


def test_every_cell_is_run_and_recorded_in_a_place_of_its_own(file: Path, tmp_path: Path) -> None:
    done = sweep(file, SWEEP, "--quiet", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"cells": 4, "failed": {}}
    for family in ("one", "two"):
        for seed in (0, 1):
            trace = tmp_path / "runs" / f"{family}-balance-seed{seed}" / "traces.jsonl"
            rows = [json.loads(line) for line in trace.read_text().splitlines()]
            assert [row["step"] for row in rows] == list(range(8))
            assert {(row["algorithm_id"], row["task"], row["seed"]) for row in rows} == {
                (family, "balance", seed)
            }


def test_cell_that_fails_is_named_and_does_not_stop_the_others(file: Path, tmp_path: Path) -> None:
    taken = tmp_path / "runs" / "one-balance-seed0" / "traces.jsonl"
    taken.parent.mkdir(parents=True)
    taken.write_text("")
    done = sweep(file, SWEEP, "--quiet", "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["cells"] == 4
    assert list(told["failed"]) == ["one-balance-seed0"]
    assert done.stderr.splitlines()[-1] == "error: 1 of 4 cells failed: one-balance-seed0"
    assert sorted(path.parent.name for path in tmp_path.glob("runs/*/config.yaml")) == [
        "one-balance-seed1",
        "two-balance-seed0",
        "two-balance-seed1",
    ]
    assert sweep(file, SWEEP, "--quiet", "--overwrite").exit_code == 0
