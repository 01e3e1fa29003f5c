"""A diary: one sentence a shift and one at the end, in a text file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skyfall_core.errors import ConfigError
from skyfall_core.experiment import RunResult, WindowReport
from skyfall_core.trackers.base import TrackedRun

__all__ = ["Diary"]


class Diary:
    """Keeps the best window in mind and writes the rest down.

    Args:
        run: The run to follow; whoever builds the tracker supplies it.
        path: The diary; `diary.txt` in the run's directory when None.
    """

    def __init__(self, run: TrackedRun, path: str | None = None) -> None:
        if path is None and run.directory is None:
            raise ConfigError("path: the document names no run.output_dir; say where the diary lies")
        self._path = Path(path) if path is not None else Path(str(run.directory)) / "diary.txt"
        self._best = float("-inf")

    def begin(self, run: TrackedRun) -> None:
        """Open a new page."""
        self._path.write_text(f"{run.run_id} begins.\n", encoding="utf-8")

    def window(self, report: WindowReport) -> None:
        """Remember the best window."""
        self._best = max(self._best, report.mean_reward)

    def shift(self, event: Mapping[str, Any]) -> None:
        """Note what changed and when."""
        self._note(f"Step {event['step']}: {event['previous']} gives way to {event['current']}.")

    def finish(self, result: RunResult | None) -> None:
        """Note how it ended."""
        ended = "stopped early" if result is None else f"lasted {result.steps} steps"
        self._note(f"It {ended}; the best window earned {self._best:.3f} a step.")

    def _note(self, sentence: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(sentence + "\n")
