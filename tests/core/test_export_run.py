"""Exporting and tracking as parts of a run: what happens when, and what keeps a run from beginning."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest
from typer.testing import CliRunner

from skyfall_core import plugins
from skyfall_core.bundle import load_bundle
from skyfall_core.cli.app import build_app
from skyfall_core.config import ExperimentConfig, TrackerConfig
from skyfall_core.errors import BundleError, ConfigError, RunError
from skyfall_core.experiment import run_experiment
from skyfall_core.plugins import Group
from skyfall_core.trackers.base import TrackedRun

CONTENT = {
    "environment": {"id": "CartPole-v1"},
    "algorithm": {"name": "actor-critic", "kwargs": {"seed": 1}},
    "rollout": {"window_steps": 40, "total_steps": 100, "auto_reset": True},
    "regime": {
        "provider": "scheduled",
        "params": {
            "schedule": {
                "regimes": [
                    {"regime_id": "a", "duration_steps": 50},
                    {"regime_id": "b", "duration_steps": 90},
                ]
            }
        },
    },
    "run": {"name": "run", "seed": 3},
}


def experiment(folder: Path | None = None, **sections: Any) -> ExperimentConfig:
    run = {**CONTENT["run"], **({} if folder is None else {"output_dir": folder})}
    return ExperimentConfig.model_validate({**CONTENT, "run": run, **sections})


class Watched(gym.Wrapper[Any, Any, Any, Any]):
    """Says whether it is closed."""

    closed = False

    def close(self) -> None:
        self.closed = True
        super().close()


def test_a_run_exports_what_it_learned_before_the_environment_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = Watched(gym.make("CartPole-v1"))
    closed_while_asked = []
    spaces_asked = type(env).observation_space.fget

    def observe(self: Any) -> Any:
        closed_while_asked.append(self.closed)
        return spaces_asked(self)

    monkeypatch.setattr(Watched, "observation_space", property(observe), raising=False)
    result = run_experiment(experiment(tmp_path), env=env, export_dir=tmp_path / "bundle")
    assert result.export_path == tmp_path / "bundle"
    assert closed_while_asked
    assert not any(closed_while_asked)
    assert env.closed
    opened = load_bundle(tmp_path / "bundle")
    assert opened.manifest.steps == 100
    assert opened.provenance["seeds"]["run.seed"] == 3
    assert opened.policy.weights.any()


def test_weights_can_stay_outside(tmp_path: Path) -> None:
    run_experiment(experiment(), export_dir=tmp_path / "bundle", export_external=tmp_path / "weights")
    assert load_bundle(tmp_path / "bundle").manifest.weights.external
    assert (tmp_path / "weights/baseline.npz").is_file()


def test_without_an_export_there_is_no_path() -> None:
    assert run_experiment(experiment()).export_path is None


def test_a_bundle_in_the_way_is_told_before_the_environment_is_built(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/mine").write_text("")
    never = experiment(tmp_path, environment={"id": "somebody:never_imported"})
    with pytest.raises(BundleError, match="no bundle and is left alone"):
        run_experiment(never, export_dir=tmp_path / "bundle")
    assert not (tmp_path / "run").exists()


def test_a_policy_that_cannot_be_exported_is_told_before_a_step_is_taken(tmp_path: Path) -> None:
    algorithm = SimpleNamespace(policy=SimpleNamespace(act=lambda observation: 0), update=lambda window: {})
    with pytest.raises(BundleError, match="cannot be saved"):
        run_experiment(experiment(tmp_path), algorithm=algorithm, export_dir=tmp_path / "bundle")
    assert not (tmp_path / "run").exists()


def test_an_export_that_fails_at_the_end_leaves_the_trace_and_fails_the_run(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        raise RuntimeError("no room")

    policy = SimpleNamespace(act=lambda observation: 0)
    algorithm = SimpleNamespace(
        policy=policy, update=lambda window: {}, save_checkpoint=fail, load_checkpoint=fail
    )
    with pytest.raises(RunError, match=r"done and recorded, but its export failed: .*no room"):
        run_experiment(experiment(tmp_path), algorithm=algorithm, export_dir=tmp_path / "bundle")
    assert len((tmp_path / "run/traces.jsonl").read_text().splitlines()) == 100
    assert not (tmp_path / "bundle").exists()


# Trackers


class Notebook:
    """Writes down what it hears, and may fail."""

    heard: list[Any]

    def __init__(self, run: TrackedRun, fails_in: str | None = None) -> None:
        self.run, self.fails_in = run, fails_in
        Notebook.heard = []

    def _hear(self, what: str, about: Any) -> None:
        Notebook.heard.append((what, about))
        if what == self.fails_in:
            raise OSError("the notebook is wet")

    def begin(self, run: TrackedRun) -> None:
        self._hear("begin", (run.run_id, run.directory))

    def window(self, report: Any) -> None:
        self._hear("window", report.steps)

    def shift(self, event: Mapping[str, Any]) -> None:
        self._hear("shift", (event["step"], event["current"]))

    def finish(self, result: Any) -> None:
        self._hear("finish", result and result.steps)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(sys.modules, "somebodys_notebook", SimpleNamespace(Notebook=Notebook))
    return "somebodys_notebook:Notebook"


def test_trackers_hear_of_every_window_and_shift_in_order(notebook: str, tmp_path: Path) -> None:
    run_experiment(experiment(tmp_path, trackers=[{"name": notebook}]))
    assert Notebook.heard == [
        ("begin", ("run", tmp_path / "run")),
        ("window", 40),
        ("shift", (50, "b")),
        ("window", 80),
        ("window", 100),
        ("finish", 100),
    ]


@pytest.mark.parametrize("where", ["begin", "window", "shift", "finish"])
def test_a_run_with_a_broken_tracker_is_the_run_without_it(
    notebook: str, tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken = [{"name": notebook, "params": {"fails_in": where}}, {"name": "csv"}]
    first = run_experiment(experiment(tmp_path / "with", trackers=broken))
    second = run_experiment(experiment(tmp_path / "without"))
    assert first.window_metrics == second.window_metrics
    traces = [tmp_path / name / "run/traces.jsonl" for name in ("with", "without")]
    assert traces[0].read_bytes() == traces[1].read_bytes()
    assert [record.getMessage().count("the notebook is wet") for record in caplog.records] == [1]
    assert len((tmp_path / "with/run/windows.csv").read_text().splitlines()) == 4


def test_trackers_hear_that_a_run_failed(notebook: str) -> None:
    def fail(report: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(trackers=[{"name": notebook}]), on_window=fail)
    assert Notebook.heard[-1] == ("finish", None)


def test_wrong_parameters_of_a_tracker_keep_the_run_from_beginning(tmp_path: Path) -> None:
    wrong = experiment(tmp_path, trackers=[{"name": "csv", "params": {"folder": "x"}}])
    with pytest.raises(ConfigError, match=r"trackers\[0\].params.folder: .*takes no 'folder'"):
        run_experiment(wrong)
    assert not (tmp_path / "run").exists()


def test_every_shipped_tracker_can_be_found() -> None:
    assert {"csv", "mlflow", "tensorboard", "wandb"} <= set(plugins.catalogue(Group.TRACKERS))


# Commands


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(json.dumps(CONTENT).replace('"seed": 3', '"seed": 3, "output_dir": "runs"'))
    return path


def skyfall(*words: str | Path) -> Any:
    return CliRunner().invoke(build_app(), list(map(str, words)))


def test_run_exports_on_request(document: Path, tmp_path: Path) -> None:
    done = skyfall("run", document, "--export", tmp_path / "bundle", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["export_path"] == str(tmp_path / "bundle")
    assert load_bundle(tmp_path / "bundle").act([0.0, 0.0, 0.0, 0.0]) in {0, 1}


def test_run_refuses_a_place_for_weights_without_a_bundle(document: Path, tmp_path: Path) -> None:
    done = skyfall("run", document, "--external", tmp_path / "weights")
    assert done.exit_code == 2
    assert "give --export too" in done.stderr


def test_export_writes_a_finished_run_without_its_environment(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert skyfall("run", document, "--export", tmp_path / "first", "--quiet").exit_code == 0
    monkeypatch.setattr(gym, "make", lambda *_, **__: pytest.fail("the environment was built"))
    done = skyfall("export", tmp_path / "runs/run", "-o", tmp_path / "second", "--external", tmp_path / "w")
    assert done.exit_code == 0, done.output
    first, second = load_bundle(tmp_path / "first"), load_bundle(tmp_path / "second")
    assert second.manifest.steps == first.manifest.steps == 100
    assert second.manifest.weights.external
    assert second.manifest.files["config.yaml"] == first.manifest.files["config.yaml"]
    observations = [[x, -x, x, -x] for x in (0.01 * step for step in range(50))]
    assert [first.act(row) for row in observations] == [second.act(row) for row in observations]
    again = skyfall("export", tmp_path / "runs/run", "-o", tmp_path / "first")
    assert again.exit_code == 2
    assert "replace it with --overwrite" in again.stderr
    assert skyfall("export", tmp_path / "runs/run", "-o", tmp_path / "first", "--overwrite").exit_code == 0


def test_a_bundle_of_a_run_holds_its_provenance_and_its_scorecard(document: Path, tmp_path: Path) -> None:
    assert skyfall("run", document, "--export", tmp_path / "bundle", "--quiet").exit_code == 0
    run = tmp_path / "runs/run"
    opened = load_bundle(tmp_path / "bundle")
    assert opened.provenance == json.loads((run / "environment.json").read_text())
    assert opened.scorecard == json.loads((run / "scorecard.json").read_text())
    assert (run / "spaces.json").read_bytes() == (tmp_path / "bundle/spaces.json").read_bytes()


def test_a_run_that_kept_no_checkpoint_says_what_to_do(document: Path, tmp_path: Path) -> None:
    assert skyfall("run", document, "--set", "run.checkpoint_every=0", "--quiet").exit_code == 0
    done = skyfall("export", tmp_path / "runs/run", "-o", tmp_path / "bundle")
    assert done.exit_code == 2
    assert "holds no checkpoint, so what it learned is gone; run it again with run.checkpoint" in done.stderr
    assert not (tmp_path / "bundle").exists()


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    done = skyfall("export", tmp_path, "-o", tmp_path / "bundle")
    assert done.exit_code == 2
    assert "config.yaml: missing; give the directory of a run" in done.stderr


def test_resuming_a_finished_run_exports_it(tmp_path: Path) -> None:
    run_experiment(experiment(tmp_path))
    result = run_experiment(experiment(tmp_path), trace_mode="resume", export_dir=tmp_path / "bundle")
    assert result.export_path == tmp_path / "bundle"
    assert load_bundle(tmp_path / "bundle").manifest.steps == 100


def test_a_resumed_runs_tables_are_those_of_a_run_that_was_never_stopped(tmp_path: Path) -> None:
    run = {**CONTENT["run"], "checkpoint_every": 40}

    def config(folder: str) -> ExperimentConfig:
        return experiment(
            run={**run, "output_dir": tmp_path / folder},
            trackers=[{"name": "csv"}],
        )

    def stop(report: Any) -> None:
        if report.steps == 80:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(config("stopped"), on_window=stop)
    another = TrackerConfig(name="csv", params={"directory": str(tmp_path / "tables")})
    watched = config("stopped").model_copy(update={"trackers": [TrackerConfig(name="csv"), another]})
    run_experiment(watched, trace_mode="resume")  # who follows a run is no part of what it does
    run_experiment(config("whole"))
    for name in ("windows.csv", "shifts.csv"):
        stopped, whole = (tmp_path / folder / "run" / name for folder in ("stopped", "whole"))
        assert stopped.read_text() == whole.read_text()
