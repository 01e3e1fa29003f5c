"""What lies in a run's directory, and real documents interrupted and resumed."""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import skyfall_metrics.api
from skyfall_core import plugins
from skyfall_core.config import ExperimentConfig, load_config
from skyfall_core.experiment import RunState, WindowReport, run_experiment, run_state
from skyfall_core.plugins import Group
from skyfall_core.trace import TraceMode

ROOT = Path(__file__).parents[1]
THERMOSTAT = """
environment: {{id: "skyfall_thermostat.environment:Thermostat"}}
algorithm: {{name: house-q, kwargs: {{seed: 0}}}}
regime: {{provider: house-days, params: {{day_steps: 15, night_steps: 15}}}}
rollout: {{window_steps: 10, total_steps: 60}}
run: {{name: {name}, seed: 0, output_dir: runs, checkpoint_every: 20}}
"""
opened: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if opened is not None and event == "open":
        opened.append(str(arguments[0]))


def document(source: str, name: str, folder: Path, **values: Any) -> ExperimentConfig:
    settings = [f"run.name={name}", f"run.output_dir={folder}"]
    settings += [f"{key.replace('__', '.')}={value}" for key, value in values.items()]
    return load_config(ROOT / "examples" / source, settings)


def cut_and_resumed(config: ExperimentConfig, at: int) -> None:
    def power_cut(report: WindowReport) -> None:
        if report.steps >= at:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        run_experiment(config, on_window=power_cut)
    assert run_state(config) is RunState.UNFINISHED
    run_experiment(config, trace_mode=TraceMode.RESUME)


def trace(folder: Path, name: str) -> bytes:
    return (folder / name / "traces.jsonl").read_bytes().replace(f'"{name}"'.encode(), b'"run"')


def test_a_run_leaves_its_provenance_and_the_scorecard_that_the_trace_gives(tmp_path: Path) -> None:
    config = document("quickstart.yaml", "one", tmp_path, rollout__total_steps=1024)
    run_experiment(config)
    record = json.loads((tmp_path / "one" / "environment.json").read_bytes())
    assert record["python"] == platform.python_version()
    assert record["packages"]["skyfall-core"] == version("skyfall-core")
    assert record["packages"]["gymnasium"] == version("gymnasium")
    assert record["seeds"]["run.seed"] == 0
    assert "HOME" not in json.dumps(record)
    card = json.loads((tmp_path / "one" / "scorecard.json").read_bytes())
    own = skyfall_metrics.api.score(
        skyfall_metrics.api.read_trace(tmp_path / "one" / "traces.jsonl")
    ).to_dict()
    assert {**card, "run": None} == {**json.loads(json.dumps(own)), "run": None}
    assert card["run"]["run_id"] == "one"


def test_asking_how_far_a_run_is_opens_its_result_alone(tmp_path: Path) -> None:
    global opened  # noqa: PLW0603 - an audit hook cannot be taken back, only silenced
    config = document("quickstart.yaml", "one", tmp_path, rollout__total_steps=512)
    run_experiment(config)
    sys.addaudithook(_note)
    opened = []
    try:
        state = run_state(config)
        seen = [path for path in opened if path.startswith(str(tmp_path))]
    finally:
        opened = None
    assert state is RunState.FINISHED
    assert seen == [str(tmp_path / "one" / "result.json")]
    assert (tmp_path / "one" / "result.json").stat().st_size < (
        tmp_path / "one" / "traces.jsonl"
    ).stat().st_size


def test_the_quickstart_resumed_equals_the_quickstart(tmp_path: Path) -> None:
    values = {"rollout__total_steps": 10_240, "run__checkpoint_every": 1000}
    run_experiment(document("quickstart.yaml", "whole", tmp_path, **values))
    cut_and_resumed(document("quickstart.yaml", "cut", tmp_path, **values), 8_448)
    assert trace(tmp_path, "cut") == trace(tmp_path, "whole")


def test_a_world_with_resume_tokens_goes_on_through_a_run(tmp_path: Path) -> None:
    values = {
        "rollout__total_steps": 120,
        "rollout__window_steps": 10,
        "run__checkpoint_every": 20,
        "regime__params__duration_steps": 50,
        "environment__kwargs__episode_steps": 30,
    }
    run_experiment(document("morpheus_random.yaml", "whole", tmp_path, **values))
    cut_and_resumed(document("morpheus_random.yaml", "cut", tmp_path, **values), 70)
    rows = [json.loads(line) for line in trace(tmp_path, "cut").splitlines()]
    assert [row["step"] for row in rows] == list(range(120))
    assert not any("resumed" in row for row in rows)
    assert trace(tmp_path, "cut") == trace(tmp_path, "whole")


def test_a_third_partys_world_without_tokens_says_that_it_was_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "tests" / "plugin_package" / "src")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doc.yaml").write_text(THERMOSTAT.format(name="house"))
    names = {
        (Group.ALGORITHMS, "house-q"): "skyfall_thermostat.algorithm:TableQ",
        (Group.REGIMES, "house-days"): "skyfall_thermostat.regime:DayNight",
    }
    for (group, name), target in names.items():
        plugins.register(group, name, target)
    try:
        cut_and_resumed(load_config(tmp_path / "doc.yaml"), 40)
    finally:
        for group, name in names:
            plugins.unregister(group, name)
    rows = [json.loads(line) for line in trace(tmp_path / "runs", "house").splitlines()]
    assert [row["step"] for row in rows] == list(range(60))
    assert [row["step"] for row in rows if row.get("resumed")] == [40]
