"""`skyfall run`: what goes where, and what each ending exits with."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from typer.testing import CliRunner

from skyfall_core import plugins
from skyfall_core.cli.app import build_app
from skyfall_core.cli.run import shown
from skyfall_core.plugins import Group
from skyfall_core.run_directory import CONFIG_FILE

DOCUMENT = """
environment: {{id: "parts:World", kwargs: {{fails_at: {fails_at}}}}}
algorithm: {{name: random}}
rollout: {{window_steps: 4, total_steps: 10}}
run: {{name: one, output_dir: runs}}
"""


class World(gymnasium.Env[Any, Any]):
    observation_space = spaces.Box(-1, 1, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, fails_at: int) -> None:
        self.fails_at, self.count = fails_at, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        if self.count == self.fails_at:
            raise LookupError("the cable is out")
        self.count += 1
        return np.zeros(1, np.float32), 1.0, False, False, {}

    def describe_run(self) -> dict[str, Any]:
        return {"path": Path("worlds/7"), "load": np.float32(0.5), "limit": float("nan")}


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("parts")
    vars(module)["World"] = World
    monkeypatch.setitem(sys.modules, "parts", module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doc.yaml").write_text(DOCUMENT.format(fails_at=-1))
    (tmp_path / "bad.yaml").write_text(DOCUMENT.format(fails_at=6))


def skyfall(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), ["run", *arguments])


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("runs/one/traces.jsonl").read_text().splitlines()]


def test_a_run_ends_in_its_scorecard() -> None:
    done = skyfall("doc.yaml")
    assert done.exit_code == 0
    assert "10/10 steps" in done.stderr
    assert "recorded runs/one/traces.jsonl" in done.stderr
    assert "Reward per configuration" in done.stdout
    assert len(rows()) == 10


def test_the_resolved_document_runs_again() -> None:
    skyfall("doc.yaml", "-q")
    first = rows()
    again = skyfall(f"runs/one/{CONFIG_FILE}", "--overwrite", "-q")
    assert again.exit_code == 0
    assert rows() == first


def test_quiet_leaves_the_result_alone() -> None:
    done = skyfall("doc.yaml", "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Reward per configuration" in done.stdout


def test_json_is_one_strict_object_whatever_the_environment_reports() -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    done = skyfall("doc.yaml", "--json")
    result = json.loads(done.stdout, parse_constant=refuse)
    assert result == {
        "run_id": "one",
        "steps": 10,
        "regimes": ["baseline"],
        "stationary": True,
        "trace_path": str(Path.cwd() / "runs" / "one" / "traces.jsonl"),
        "export_path": None,
        "provenance": {"path": "worlds/7", "load": 0.5, "limit": None},
        "last_window": {},
    }


def test_without_an_output_dir_it_says_so() -> None:
    Path("doc.yaml").write_text(DOCUMENT.format(fails_at=-1).replace(", output_dir: runs", ""))
    done = skyfall("doc.yaml")
    assert done.exit_code == 0
    assert "nothing was recorded" in done.stderr


def test_without_a_scorer_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = plugins.catalogue

    def without_commands(group: Group) -> Mapping[str, plugins.Plugin]:
        return {} if group is Group.COMMANDS else real(group)

    monkeypatch.setattr(plugins, "catalogue", without_commands)
    done = skyfall("doc.yaml")
    assert done.exit_code == 0
    assert "pip install skyfall-metrics, then: skyfall score runs/one" in done.stderr


@pytest.mark.parametrize("code", [0, 3, None])
def test_an_environment_that_exits_fails_the_run(monkeypatch: pytest.MonkeyPatch, code: int | None) -> None:
    def leave(self: World, action: Any) -> Any:
        sys.exit(code)

    monkeypatch.setattr(World, "step", leave)
    done = skyfall("doc.yaml")
    assert done.exit_code == 1
    assert f"error: one: what it runs called exit({code})" in done.stderr


def test_a_wrong_document_exits_2() -> None:
    done = skyfall("doc.yaml", "--set", "rollout.total_stepz=3")
    assert done.exit_code == 2
    assert "total_steps" in done.stderr
    assert done.stdout == ""
    assert not Path("runs").exists()


def test_an_existing_trace_exits_2_and_stays() -> None:
    skyfall("doc.yaml", "-q")
    done = skyfall("doc.yaml", "--set", "rollout.total_steps=3")
    assert done.exit_code == 2
    assert "--overwrite" in done.stderr
    assert len(rows()) == 10
    assert skyfall("doc.yaml", "-q", "--overwrite", "--set", "rollout.total_steps=3").exit_code == 0
    assert len(rows()) == 3


def test_an_environment_that_raises_exits_1_with_its_own_traceback_and_every_step() -> None:
    done = skyfall("bad.yaml")
    assert done.exit_code == 1
    assert "LookupError: the cable is out" in done.stderr
    assert "in step" in done.stderr
    assert "error: World failed at step 6: LookupError: the cable is out" in done.stderr
    assert done.stdout == ""
    assert [row["step"] for row in rows()] == list(range(6))


def test_a_file_in_the_output_dirs_place_exits_1_with_one_line() -> None:
    Path("runs").write_text("")
    done = skyfall("doc.yaml")
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert "runs is not a directory; choose another output_dir" in done.stderr


def test_paths_are_shown_as_short_as_they_can_be_typed(tmp_path: Path) -> None:
    assert shown(tmp_path / "runs" / ".." / "runs" / "one") == "runs/one"
    assert shown(Path("/")) == "/"


def test_overwriting_and_resuming_at_once_is_wrong_usage_and_touches_nothing() -> None:
    skyfall("doc.yaml")
    before = Path("runs/one/traces.jsonl").read_bytes()
    done = skyfall("doc.yaml", "--overwrite", "--resume")
    assert done.exit_code == 2
    assert done.stderr == "error: --overwrite and --resume exclude each other; give one of them\n"
    assert Path("runs/one/traces.jsonl").read_bytes() == before


def test_a_boundary_that_is_neither_true_nor_false_is_named_with_step_and_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def step(self: World, action: Any) -> Any:
        regime = {"id": "a", "boundary": np.array([True, False])}
        return np.zeros(1, np.float32), 1.0, False, False, {"regime": regime}

    monkeypatch.setattr(World, "step", step)
    done = skyfall("doc.yaml")
    assert done.exit_code == 1
    assert "step 0: info['regime']['boundary'] is array([ True, False])" in done.stderr
    assert "report True or False" in done.stderr
    assert "Traceback" not in done.stderr
