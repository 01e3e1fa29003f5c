"""A run's directory while the run lives: what is found there, what is added, and how it ends."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from skyfall_core.checkpoints import (
    CHECKPOINTS,
    Checkpoint,
    differing_keys,
    newest_checkpoint,
    write_checkpoint,
)
from skyfall_core.config import ExperimentConfig
from skyfall_core.errors import CheckpointError, TraceError
from skyfall_core.reports import RunResult
from skyfall_core.run_directory import (
    SCORECARD_FILE,
    WINDOWS_FILE,
    Result,
    RunState,
    cut_back,
    forget_results,
    read_result,
    run_state,
    window_line,
    write_document,
    write_environment,
    write_result,
    write_scorecard,
)
from skyfall_core.trace import TraceMode, TraceWriter

if TYPE_CHECKING:
    from skyfall_core.life import Life

__all__ = ["RunDirectory"]

_log = logging.getLogger(__name__)


class RunDirectory:
    """The files around one run's trace.

    Args:
        trace: The trace.
        config: The run's document.
        mode: What to do about what is already there.
    """

    def __init__(self, trace: Path, config: ExperimentConfig, mode: TraceMode) -> None:
        self.trace = trace
        self.windows = trace.with_name(WINDOWS_FILE)
        self._config, self._mode = config, mode
        self._document = config.model_dump(mode="json", exclude_none=True, fallback=repr)
        self._writer: TraceWriter | None = None
        self._file: BinaryIO | None = None
        self._length = 0
        self._every = config.run.checkpoint_every
        self._due = self._every
        self._troubles: set[str] = set()

    def finished(self) -> RunResult | None:
        """The recorded result of a finished run that is to be resumed; else None.

        Raises:
            CheckpointError: If it was another document's run.
        """
        if self._mode is not TraceMode.RESUME or run_state(self._config) is not RunState.FINISHED:
            return None
        result, metrics = read_result(self.trace)
        self._refuse_other(result.config)
        name = str(self._config.run.name)
        return RunResult(name, result.steps, metrics, tuple(result.regimes), result.provenance, self.trace)

    def checkpoint(self) -> Checkpoint | None:
        """Where to go on from, or None to begin.

        Raises:
            CheckpointError: If no checkpoint is whole, or the newest is another document's.
        """
        if self._mode is not TraceMode.RESUME:
            return None
        lengths = {name: _length(path) for name, path in self._records().items()}
        found = newest_checkpoint(self.trace.parent, lengths)
        if found is not None:
            self._refuse_other(found.state["config"])
        elif self.trace.exists():
            _log.warning("%s has no checkpoint yet: the run begins again at step 0", self.trace.parent)
        return found

    def cut_back(self, found: Checkpoint | None) -> None:
        """Take from the records what a checkpoint does not know, and from the directory what has ended."""
        forget_results(self.trace)
        if found is None and self._mode in {TraceMode.RESUME, TraceMode.OVERWRITE}:
            folder = self.trace.parent / CHECKPOINTS
            if folder.is_dir():
                shutil.rmtree(folder)
        if self._mode is TraceMode.RESUME:
            for name, path in self._records().items():
                cut_back(path, 0 if found is None else int(found.state["lengths"][name]))

    @contextmanager
    def begin(
        self, writer: TraceWriter, config: ExperimentConfig, found: Checkpoint | None
    ) -> Iterator[None]:
        """Write what is known at the start, and keep the record of updates open for the block."""
        self._writer = writer
        write_document(self.trace, config)
        write_environment(self.trace, config)
        if found is not None:
            self._due = found.step + self._every
        going_on = self._mode in {TraceMode.RESUME, TraceMode.APPEND}
        try:
            with self.windows.open("ab" if going_on else "wb", buffering=0) as file:
                self._file, self._length = file, _length(self.windows)
                yield
        except OSError as error:
            raise TraceError(f"{self.windows}: cannot be written: {error.strerror}") from error

    def report(self, report: Mapping[str, Any]) -> None:
        """Add one update to the record.

        Raises:
            TraceError: If it cannot be written.
        """
        assert self._file is not None  # noqa: S101 - begin() has opened it
        line = window_line(report)
        try:
            self._file.write(line)
        except OSError as error:
            raise TraceError(f"{self.windows}: cannot be written: {error.strerror}") from error
        self._length += len(line)

    def checkpoint_if_due(self, life: Life, regimes: list[str], *, at_once: bool) -> None:
        """Write a checkpoint where one is due, at the end, or when the run is about to stop.

        What keeps one from being written is said once and stops nothing: the run is worth more.
        """
        if not self._every:
            return
        last = life.step >= self._config.rollout.total_steps
        if life.step < self._due and not last and not at_once:
            return
        assert self._writer is not None  # noqa: S101 - begin() has set it
        self._due = life.step + self._every
        if life.save_algorithm is None:
            self._say(f"{type(life.algorithm).__name__} has no save_checkpoint: resumed, it begins afresh")
        try:
            lengths = {"trace": self._writer.safe_length(), "windows": self._length}
            state = life.state() | {"lengths": lengths, "regimes": regimes, "config": self._document}
            keep = self._config.run.checkpoints_kept
            write_checkpoint(self.trace.parent, life.step, state, life.save_algorithm, keep)
        except Exception as error:  # noqa: BLE001 - foreign code writes itself down here
            self._say(f"no checkpoint could be written: {type(error).__name__}: {error}")

    def score(self) -> None:
        """Score the trace, unless this run has."""
        if not self.trace.with_name(SCORECARD_FILE).exists():  # that of an earlier run is gone by now
            write_scorecard(self.trace)

    def finish(self, result: RunResult) -> None:
        """Score the trace and say that the run is finished, in this order."""
        self.score()
        provenance = dict(result.provenance)
        write_result(self.trace, Result(result.steps, list(result.regimes), provenance, self._document))

    def _records(self) -> dict[str, Path]:
        return {"trace": self.trace, "windows": self.windows}

    def _say(self, trouble: str) -> None:
        if trouble not in self._troubles:
            self._troubles.add(trouble)
            _log.warning("%s", trouble)

    def _refuse_other(self, recorded: Mapping[str, Any]) -> None:
        differing = differing_keys(recorded, self._document)
        if differing:
            where = f"{self.trace.parent} was recorded with another document"
            remedy = "put it back, choose another run.name, or begin again with --overwrite"
            raise CheckpointError("\n".join([f"{where}; {remedy}", *differing]))


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
