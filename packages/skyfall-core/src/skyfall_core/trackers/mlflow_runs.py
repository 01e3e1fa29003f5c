"""Window metrics and shifts as a run of MLflow, on a server or in a folder."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skyfall_core.documents import with_leaves
from skyfall_core.errors import ConfigError
from skyfall_core.trackers.base import TrackedRun, library, metrics_of

if TYPE_CHECKING:
    from skyfall_core.reports import RunResult, WindowReport

__all__ = ["MlflowTracker"]

LONGEST_VALUE = 500
BATCH = 100
"""How many parameters MLflow takes at once."""


class MlflowTracker:
    """Logs to MLflow. Where a server asks for credentials, that library reads them from its own place.

    Args:
        run: The run to follow.
        tracking_uri: A server's address or `file:` and a folder. When None: the environment variable
            `MLFLOW_TRACKING_URI`, and without it `mlruns` in the run's directory.
        experiment: The experiment there; made where it is missing.

    Raises:
        MissingExtraError: If MLflow is not installed.
        ConfigError: If there is nowhere to log to.
    """

    def __init__(self, run: TrackedRun, tracking_uri: str | None = None, experiment: str = "skyfall") -> None:
        uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
        if uri is None and run.directory is None:
            raise ConfigError("tracking_uri: the document names no run.output_dir; say where to log to")
        self._uri = uri or (run.directory.absolute() / "mlruns").as_uri()  # type: ignore[union-attr]  # as checked
        self._experiment = experiment
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing leaves the machine unasked
        if self._uri.startswith("file:"):
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # refused otherwise since MLflow 3.7
        self._library = library("mlflow", "mlflow")
        self._entities = library("mlflow.entities", "mlflow")
        self._client: Any = None
        self._run_id: str | None = None
        self._shifts = 0

    def begin(self, run: TrackedRun) -> None:
        """Begin a run there, with the document's values as its parameters."""
        self._client = self._library.MlflowClient(tracking_uri=self._uri)
        found = self._client.get_experiment_by_name(self._experiment)
        place = self._client.create_experiment(self._experiment) if found is None else found.experiment_id
        tags = {"algorithm_id": run.algorithm_id, "task": run.task, "resumed_at": run.resumed_at}
        told = {name: str(value) for name, value in tags.items() if value is not None}
        self._run_id = self._client.create_run(place, run_name=run.run_id, tags=told).info.run_id
        parameters = [
            self._entities.Param(_name(dotted), str(value)[:LONGEST_VALUE])
            for dotted, value in _leaves(run.config or {}).items()
        ]
        for start in range(0, len(parameters), BATCH):
            self._client.log_batch(self._run_id, params=parameters[start : start + BATCH])

    def window(self, report: WindowReport) -> None:
        """Log the window's numbers at its last step."""
        self._log(metrics_of(report), report.steps)

    def shift(self, event: Mapping[str, Any]) -> None:
        """Log the number of shifts so far, and the labels as a tag, which MLflow keeps no steps for."""
        self._shifts += 1
        self._log({"regime/shifts": float(self._shifts)}, int(event["step"]))
        told = ", ".join(f"{name} {value}" for name, value in event.items() if value is not None)
        self._client.set_tag(self._run_id, f"shift.{self._shifts:04d}", told)

    def finish(self, result: RunResult | None) -> None:
        """End the run there: as finished, or as failed."""
        if self._run_id is not None:
            self._client.set_terminated(self._run_id, "FAILED" if result is None else "FINISHED")

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        metrics = [self._entities.Metric(_name(name), value, now, step) for name, value in numbers.items()]
        self._client.log_batch(self._run_id, metrics=metrics)


def _name(text: str) -> str:
    """`text` without the characters that MLflow takes in no name."""
    return re.sub(r"[^\w\-. /]", "_", text)


def _leaves(document: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with_leaves(document, found.__setitem__)
    return found
