"""Trackers: what each of them keeps, and that none can stop a run."""

from __future__ import annotations

import csv
import json
import logging
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from skyfall_core import plugins
from skyfall_core.config import ExperimentConfig, TrackerConfig, parse_config
from skyfall_core.documents import Document
from skyfall_core.errors import ConfigError, MissingExtraError, UnknownPluginError
from skyfall_core.experiment import RunResult, WindowReport
from skyfall_core.plugins import Group
from skyfall_core.trackers.base import HIDDEN, TrackedRun, Tracker, metrics_of, without_secrets
from skyfall_core.trackers.csv_tables import CsvTracker
from skyfall_core.trackers.tracking import Tracking, build_trackers

SHIFT = {"previous": "day", "current": "night", "origin": "dusk", "step": 150}
DOCUMENT = {
    "environment": {"id": "CartPole-v1", "kwargs": {"api_key": "hunter2", "max_new_tokens": 8}},
    "algorithm": {"name": "random"},
    "rollout": {"total_steps": 300},
    "run": {"name": "followed", "seed": 4, "task": "cart"},
}


def report(steps: int, mean: float = 1.0, *regimes: str, **metrics: float) -> WindowReport:
    return WindowReport(steps, mean, regimes or ("day",), metrics)


def run_in(folder: Path | None, resumed_at: int | None = None) -> TrackedRun:
    return TrackedRun.of(ExperimentConfig.model_validate(DOCUMENT), folder, resumed_at)


def follow(name: str, run: TrackedRun, **params: Any) -> Tracker:
    """A life with one shift, as a run tells it."""
    plugin = plugins.resolve(Group.TRACKERS, name)
    tracker = plugin(run=run, **params)
    tracker.begin(run)
    tracker.window(report(100, 1.5, loss=0.25))
    tracker.shift(SHIFT)
    tracker.window(report(200, -0.5, "day", "night", loss=0.5))
    tracker.finish(RunResult("followed", 200))
    assert isinstance(tracker, Tracker)
    return tracker


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# CSV


def test_csv_has_a_row_a_window_and_a_row_a_shift(tmp_path: Path) -> None:
    follow("csv", run_in(tmp_path))
    assert table(tmp_path / "windows.csv") == [
        {"step": "100", "regimes": "day", "reward/mean": "1.5", "update/loss": "0.25"},
        {"step": "200", "regimes": "day night", "reward/mean": "-0.5", "update/loss": "0.5"},
    ]
    assert table(tmp_path / "shifts.csv") == [
        {"step": "150", "previous": "day", "current": "night", "origin": "dusk", "world": ""}
    ]


def test_a_metric_that_comes_late_adds_a_column_and_loses_no_row(tmp_path: Path) -> None:
    tracker, run = CsvTracker(run_in(tmp_path)), run_in(tmp_path)
    tracker.begin(run)
    for each in (report(1, a=1.0), report(2, b=2.0), report(3), report(4, c=4.0, a=math.nan)):
        tracker.window(each)
    rows = table(tmp_path / "windows.csv")
    assert [[row[f"update/{name}"] for name in "abc"] for row in rows] == [
        ["1.0", "", ""],
        ["", "2.0", ""],
        ["", "", ""],
        ["nan", "", "4.0"],
    ]


def test_a_resumed_run_cuts_what_it_will_tell_again(tmp_path: Path) -> None:
    follow("csv", run_in(tmp_path))
    tracker, run = CsvTracker(run_in(tmp_path)), run_in(tmp_path, resumed_at=100)
    tracker.begin(run)
    tracker.window(report(200, 9.0, other=1.0))
    rows = table(tmp_path / "windows.csv")
    assert [(row["step"], row["reward/mean"]) for row in rows] == [("100", "1.5"), ("200", "9.0")]
    assert table(tmp_path / "shifts.csv") == []


def test_a_run_from_its_beginning_replaces_its_own_tables_only(tmp_path: Path) -> None:
    follow("csv", run_in(tmp_path))
    follow("csv", run_in(tmp_path))
    assert len(table(tmp_path / "windows.csv")) == 2
    (tmp_path / "windows.csv").write_text("name,score\nme,1\n")
    with pytest.raises(ConfigError, match="is no table of this tracker's and is left alone"):
        CsvTracker(run_in(tmp_path))
    assert (tmp_path / "windows.csv").read_text() == "name,score\nme,1\n"


@pytest.mark.parametrize("name", ["csv", "tensorboard", "mlflow"])
def test_without_a_place_to_write_to_the_document_is_wrong(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(ConfigError, match=r"trackers\[0\]\.params: .*names no run.output_dir"):
        build_trackers([TrackerConfig(name=name)], run_in(None))


# TensorBoard


def events(folder: Path) -> Iterator[Any]:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader  # noqa: PLC0415

    for path in sorted(folder.iterdir()):
        yield from EventFileLoader(str(path)).Load()


def test_tensorboards_own_reader_finds_numbers_and_shifts_by_step(tmp_path: Path) -> None:
    follow("tensorboard", run_in(tmp_path))
    found = {
        (value.tag, event.step): value.tensor.float_val[0]
        if value.tensor.float_val
        else value.tensor.string_val[0]
        for event in events(tmp_path / "tensorboard")
        for value in event.summary.value
    }
    assert found == {
        ("reward/mean", 100): 1.5,
        ("update/loss", 100): 0.25,
        ("regime/shift", 150): "day → night (repeats dusk)".encode(),
        ("regime/shifts", 150): 1.0,
        ("reward/mean", 200): -0.5,
        ("update/loss", 200): 0.5,
    }


def test_tensorboard_drops_what_a_resumed_run_tells_again(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: PLC0415

    follow("tensorboard", run_in(tmp_path), directory=str(tmp_path / "events"))
    run = run_in(tmp_path, resumed_at=150)
    tracker = plugins.resolve(Group.TRACKERS, "tensorboard")(run=run, directory=str(tmp_path / "events"))
    tracker.begin(run)
    tracker.window(report(200, 7.0))
    tracker.finish(None)
    first, second = sorted(
        (tmp_path / "events").iterdir(), key=lambda path: path.stat().st_size, reverse=True
    )
    first.rename(tmp_path / "events/events.out.tfevents.1.a")  # two files of one second have no order
    second.rename(tmp_path / "events/events.out.tfevents.2.a")
    accumulator = EventAccumulator(str(tmp_path / "events"), purge_orphaned_data=True)
    accumulator.Reload()
    values = [(scalar.step, scalar.value) for scalar in accumulator.Scalars("reward/mean")]
    assert values == [(100, 1.5), (200, 7.0)]


NO_TORCH = """
import sys
from skyfall_core.trackers.tracking import build_trackers
from skyfall_core.trackers.base import TrackedRun
from skyfall_core.config import TrackerConfig
from skyfall_core.experiment import WindowReport
from pathlib import Path
run = TrackedRun("r", "a", directory=Path(sys.argv[1]))
with build_trackers([TrackerConfig(name=name) for name in ("csv", "tensorboard")], run) as tracking:
    tracking.begin()
    tracking.window(WindowReport(1, 1.0, ("a",), {"x": 1.0}))
print(sorted({"torch", "tensorflow"} & set(sys.modules)), len(list(Path(sys.argv[1]).iterdir())))
"""


def test_csv_and_tensorboard_import_neither_torch_nor_tensorflow(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_TORCH, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[] 3", done.stderr


# MLflow


def test_mlflow_keeps_numbers_parameters_and_shifts_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    follow("mlflow", run_in(tmp_path))
    import mlflow  # noqa: PLC0415

    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("skyfall")
    (run,) = client.search_runs([experiment.experiment_id])
    history = client.get_metric_history(run.info.run_id, "reward/mean")
    assert [(metric.step, metric.value) for metric in history] == [(100, 1.5), (200, -0.5)]
    assert (run.info.run_name, run.info.status) == ("followed", "FINISHED")
    assert run.data.params["environment.id"] == "CartPole-v1"
    assert run.data.params["environment.kwargs.api_key"] == HIDDEN
    assert run.data.tags["shift.0001"] == "previous day, current night, origin dusk, step 150"


def test_mlflow_marks_a_run_that_did_not_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with build_trackers(
        [TrackerConfig(name="mlflow", params={"experiment": "x"})], run_in(tmp_path)
    ) as tracking:
        tracking.begin()
    import mlflow  # noqa: PLC0415

    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("x").experiment_id])
    assert run.info.status == "FAILED"


# Weights & Biases


def test_wandb_writes_an_offline_run_with_numbers_shifts_and_no_secret(tmp_path: Path) -> None:
    follow("wandb", run_in(tmp_path))
    import wandb  # noqa: PLC0415

    wandb.teardown()  # its own process writes behind us
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    (log,) = folder.glob("*.wandb")
    content = log.read_bytes()
    for told in (b"reward/mean", b"update/loss", b"shift/current", b"night", b"followed", HIDDEN.encode()):
        assert told in content
    assert b"hunter2" not in content


def test_wandb_refuses_an_unknown_mode(tmp_path: Path) -> None:
    config = TrackerConfig(name="wandb", params={"mode": "ofline"})
    with pytest.raises(ConfigError, match=r"trackers\[0\]\.params: mode: 'ofline' .*did you mean 'offline'"):
        build_trackers([config], run_in(tmp_path))


# All of them


class Breaks:
    """Fails in one method, and remembers what it was told."""

    def __init__(self, where: str, error: BaseException) -> None:
        self.where, self.error, self.told = where, error, []

    def __getattr__(self, name: str) -> Any:
        if name not in {"begin", "window", "shift", "finish"}:
            raise AttributeError(name)

        def hear(about: Any) -> None:
            self.told.append(name)
            if name == self.where:
                raise self.error

        return hear


@pytest.mark.parametrize(
    "error", [RuntimeError("no route to https://me:hunter2@host/x"), SystemExit(3)], ids=str
)
@pytest.mark.parametrize(("where", "step"), [("begin", 0), ("window", 100), ("shift", 150), ("finish", 200)])
def test_a_tracker_that_fails_is_told_once_and_the_others_hear_on(
    caplog: pytest.LogCaptureFixture, where: str, step: int, error: BaseException
) -> None:
    broken, whole = Breaks(where, error), Breaks("nowhere", error)
    with (
        caplog.at_level(logging.WARNING),
        Tracking(run_in(None), [("theirs", broken), ("ours", whole)]) as tracking,
    ):
        tracking.begin()
        tracking.window(report(100))
        tracking.shift(SHIFT)
        tracking.window(report(200))
        tracking.finish(RunResult("followed", 200))
    assert whole.told == ["begin", "window", "shift", "window", "finish"]
    heard = whole.told[: whole.told.index(where) + 1]
    assert broken.told == (heard if where == "finish" else [*heard, "finish"])
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith(f"tracker 'theirs' failed in {where} at step {step}: {type(error).__name__}: ")
    assert "hunter2" not in message


def test_an_interruption_in_a_tracker_is_still_an_interruption() -> None:
    broken = Breaks("window", KeyboardInterrupt())
    tracking = Tracking(run_in(None), [("theirs", broken)])
    tracking.begin()
    with pytest.raises(KeyboardInterrupt), tracking:
        tracking.window(report(100))
    assert broken.told == ["begin", "window", "finish"]


def test_a_run_that_never_began_tells_trackers_nothing() -> None:
    tracker = Breaks("nowhere", RuntimeError())
    with Tracking(run_in(None), [("ours", tracker)]):
        pass
    assert tracker.told == []


def test_names_are_checked_without_loading_anything() -> None:
    trackers = [
        {"name": "wandb"},
        {"name": "csv", "params": {"directory": "x"}},
        {"name": "my.module:Tracker"},
    ]
    assert len(parse_config(Document({**DOCUMENT, "trackers": trackers})).trackers) == 3
    with pytest.raises(
        ConfigError, match=r"trackers\[0\].name: unknown tracker 'tensorbord': did you mean 'tensorboard'"
    ):
        parse_config(Document({**DOCUMENT, "trackers": [{"name": "tensorbord"}]}))
    with pytest.raises(ConfigError, match=r"trackers\[0\].parms: unknown key; did you mean 'params'"):
        parse_config(Document({**DOCUMENT, "trackers": [{"name": "csv", "parms": {}}]}))


@pytest.mark.parametrize(
    ("name", "module"), [("tensorboard", "tensorboard"), ("wandb", "wandb"), ("mlflow", "mlflow")]
)
def test_a_tracker_whose_library_is_absent_says_which_extra_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"tracker '{name}' .*pip install 'skyfall-crl\[{name}\]'"):
        build_trackers([TrackerConfig(name=name)], run_in(tmp_path))


def test_wrong_parameters_are_input_errors_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"trackers\[1\].params.directry: .*did you mean 'directory'"):
        build_trackers(
            [TrackerConfig(name="csv"), TrackerConfig(name="csv", params={"directry": "x"})], run_in(tmp_path)
        )
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(
        ConfigError, match=r"trackers\[0\].name: 'builtins:dict' gave .*, which has no begin\(\)"
    ):
        build_trackers([TrackerConfig(name="builtins:dict")], run_in(tmp_path))
    with pytest.raises(UnknownPluginError, match="unknown tracker"):
        plugins.find(Group.TRACKERS, "nobody")


def test_secrets_are_hidden_by_the_names_of_their_keys() -> None:
    document: Mapping[str, Any] = {
        "kwargs": {
            "api_key": "k",
            "AUTH-TOKEN": "t",
            "password": ["p", "q"],
            "url": "https://me:pw@host/path",
        },
        "max_new_tokens": 8,
        "tokenizer": "t",
        "keyboard": "k",
        "secret": None,
    }
    assert without_secrets(document) == {
        "kwargs": {
            "api_key": HIDDEN,
            "AUTH-TOKEN": HIDDEN,
            "password": [HIDDEN, HIDDEN],
            "url": "https://host/path",
        },
        "max_new_tokens": 8,
        "tokenizer": "t",
        "keyboard": "k",
        "secret": None,
    }


def test_a_run_is_described_with_plain_data(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    assert (run.run_id, run.algorithm_id, run.task, run.seed) == ("followed", "random", "cart", 4)
    assert json.loads(json.dumps(run.config))["environment"]["kwargs"] == {
        "api_key": HIDDEN,
        "max_new_tokens": 8,
    }


def test_metrics_have_one_name_everywhere() -> None:
    assert metrics_of(report(5, 2.0, loss=1.0)) == {"reward/mean": 2.0, "update/loss": 1.0}
