"""Window metrics and shifts as a run of Weights & Biases, on this machine unless asked otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyfall_core.errors import ConfigError, suggestion
from skyfall_core.trackers.base import TrackedRun, library, metrics_of

if TYPE_CHECKING:
    from skyfall_core.reports import RunResult, WindowReport

__all__ = ["WandbTracker"]

MODES = ("disabled", "offline", "online")


class WandbTracker:
    """Logs to Weights & Biases. The key is read by that library, from where it keeps it.

    Args:
        run: The run to follow.
        project: The project there.
        entity: The user or team there; the account's own when None.
        mode: `offline` writes files that `wandb sync` uploads, `online` uploads at once, `disabled`
            does neither.
        directory: Where its files go; the run's directory when None, else the working directory.
        tags: Words to find the run by.

    Raises:
        MissingExtraError: If the library is not installed.
        ConfigError: If the mode is unknown.
    """

    def __init__(
        self,
        run: TrackedRun,
        project: str = "skyfall",
        entity: str | None = None,
        mode: str = "offline",
        directory: str | None = None,
        tags: list[str] | None = None,
    ) -> None:
        if mode not in MODES:
            raise ConfigError(f"mode: {mode!r} is none; {suggestion(mode, MODES)}")
        self._library = library("wandb", "wandb")
        folder = directory if directory is not None else run.directory
        self._folder = None if folder is None else Path(folder)
        self._options = {"project": project, "entity": entity, "mode": mode, "tags": tags}
        self._run: Any = None

    def begin(self, run: TrackedRun) -> None:
        """Begin a run there, with the document as its config."""
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._run = self._library.init(
            **self._options,
            name=run.run_id,
            group=run.task,
            job_type=run.algorithm_id,
            dir=self._folder,
            config={**(run.config or {}), "resumed_at": run.resumed_at},
            reinit="create_new",  # several runs may be followed at once
            settings=self._library.Settings(console="off", silent=True),
        )

    def window(self, report: WindowReport) -> None:
        """Log the window's numbers at its last step."""
        self._run.log({**metrics_of(report), "regime/current": report.regimes[-1]}, step=report.steps)

    def shift(self, event: Mapping[str, Any]) -> None:
        """Log the labels at the first step of the new configuration."""
        told = {
            f"shift/{name}": value for name, value in event.items() if name != "step" and value is not None
        }
        self._run.log(told, step=int(event["step"]))

    def finish(self, result: RunResult | None) -> None:
        """End the run there: as done, or as failed."""
        if self._run is not None:
            self._run.finish(exit_code=0 if result is not None else 1)
