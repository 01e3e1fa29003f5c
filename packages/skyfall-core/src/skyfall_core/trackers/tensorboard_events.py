"""Window metrics and shifts as TensorBoard event files, written by TensorBoard's own writer.

The better known `SummaryWriter`s of torch and tensorboardX import torch, which this package never does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyfall_core.errors import ConfigError
from skyfall_core.trackers.base import TrackedRun, library, metrics_of

if TYPE_CHECKING:
    from skyfall_core.reports import RunResult, WindowReport

__all__ = ["TensorBoardTracker"]

EXTRA = "tensorboard"


class TensorBoardTracker:
    """Writes scalars by step, and shifts as texts and as the number of configurations seen.

    Args:
        run: The run to follow.
        directory: Where the event files go; `tensorboard` in the run's directory when None.

    Raises:
        MissingExtraError: If TensorBoard is not installed.
        ConfigError: If there is no directory.
    """

    def __init__(self, run: TrackedRun, directory: str | None = None) -> None:
        if directory is None and run.directory is None:
            raise ConfigError("directory: the document names no run.output_dir; say where the events go")
        self._folder = Path(directory) if directory is not None else Path(str(run.directory)) / "tensorboard"
        self._make_writer = library("tensorboard.summary.writer.event_file_writer", EXTRA).EventFileWriter
        self._events = library("tensorboard.compat.proto.event_pb2", EXTRA)
        self._summaries = library("tensorboard.compat.proto.summary_pb2", EXTRA)
        self._tensors = library("tensorboard.compat.proto.tensor_pb2", EXTRA)
        self._writer: Any = None
        self._shifts = 0

    def begin(self, run: TrackedRun) -> None:
        """Open an event file; for a resumed run, one that replaces later steps of those before."""
        self._writer = self._make_writer(str(self._folder))
        if run.resumed_at is not None:
            log = self._events.SessionLog(status=self._events.SessionLog.START)
            self._add(run.resumed_at, session_log=log)

    def window(self, report: WindowReport) -> None:
        """Write the window's numbers."""
        value = self._summaries.Summary.Value
        values = [value(tag=name, simple_value=number) for name, number in metrics_of(report).items()]
        self._add(report.steps, summary=self._summaries.Summary(value=values))
        self._writer.flush()

    def shift(self, event: Mapping[str, Any]) -> None:
        """Write from what to what, and how many shifts there have been."""
        self._shifts += 1
        told = f"{event['previous']} → {event['current']}"
        told += f" (repeats {event['origin']})" if event.get("origin") else ""
        told += f", world {event['world']}" if event.get("world") is not None else ""
        plugin = self._summaries.SummaryMetadata.PluginData(plugin_name="text")
        value = self._summaries.Summary.Value
        text = value(
            tag="regime/shift",
            metadata=self._summaries.SummaryMetadata(plugin_data=plugin),
            tensor=self._tensors.TensorProto(dtype="DT_STRING", string_val=[told.encode()]),
        )
        count = value(tag="regime/shifts", simple_value=float(self._shifts))
        self._add(int(event["step"]), summary=self._summaries.Summary(value=[text, count]))

    def finish(self, result: RunResult | None) -> None:  # noqa: ARG002 - event files know no end of a run
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()

    def _add(self, step: int, **what: Any) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, **what))
