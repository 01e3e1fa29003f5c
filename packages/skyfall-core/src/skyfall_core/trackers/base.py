"""What a tracker is, and what it is told about the run it follows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from skyfall_core.config import ExperimentConfig
from skyfall_core.documents import with_leaves
from skyfall_core.errors import MissingExtraError

if TYPE_CHECKING:
    from skyfall_core.reports import RunResult, WindowReport

__all__ = ["TrackedRun", "Tracker", "library", "metrics_of", "without_secrets"]

HIDDEN = "(hidden)"
"""Stands for a value that may be a secret."""

_SECRET_WORDS = frozenset(
    {"apikey", "authorization", "credential", "credentials", "passwd", "password", "secret", "token"}
)
_SECRET_ENDS = ("api_key", "access_key", "private_key", "secret_key")
_USER_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]+@")


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """The run a tracker follows.

    Attributes:
        run_id: Its name.
        algorithm_id: The family it belongs to.
        task: What comparisons group on; None where the document names none.
        seed: None where the document names none.
        directory: The run's own directory; None where nothing is recorded.
        config: The resolved document as plain data, what may be a secret left out.
        resumed_at: The step a resumed run goes on from; None for a run from its beginning.
    """

    run_id: str
    algorithm_id: str
    task: str | None = None
    seed: int | None = None
    directory: Path | None = None
    config: Mapping[str, Any] | None = None
    resumed_at: int | None = None

    @classmethod
    def of(
        cls, config: ExperimentConfig, directory: Path | None = None, resumed_at: int | None = None
    ) -> TrackedRun:
        """What trackers are told about a run of `config`."""
        run, document = config.run, without_secrets(config.model_dump(exclude_none=True))
        return cls(str(run.name), str(run.algorithm_id), run.task, run.seed, directory, document, resumed_at)


@runtime_checkable
class Tracker(Protocol):
    """Follows one run. Whatever it raises is told once, and the run goes on without it.

    A factory of trackers is called with the document's `params`; one that names `run` among its
    parameters is given the `TrackedRun`. What is wrong with the parameters it should say there, by
    raising an `InputError`: nothing has begun yet.
    """

    def begin(self, run: TrackedRun) -> None:
        """The run begins."""

    def window(self, report: WindowReport) -> None:
        """A window was collected and learned from."""

    def shift(self, event: Mapping[str, Any]) -> None:
        """One configuration gave way to another, before the window it happened in is told.

        Args:
            event: `previous`, `current`, `origin`, `step`, and `world` where only one world shifted.
        """

    def finish(self, result: RunResult | None) -> None:
        """The run is over; let go of everything.

        Args:
            result: What it produced; None where it failed or was interrupted.
        """


def library(module: str, extra: str) -> Any:
    """A module that an extra brings, imported now.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        remedy = f"pip install 'skyfall-crl[{extra}]'"
        raise MissingExtraError(
            f"tracker {extra!r} needs {module.partition('.')[0]}: {error}; {remedy}"
        ) from error


def metrics_of(report: WindowReport) -> dict[str, float]:
    """A window's numbers by name: `reward/mean`, and what the update measured under `update/`."""
    measured = {f"update/{name}": float(value) for name, value in report.metrics.items()}
    return {"reward/mean": float(report.mean_reward), **measured}


def without_secrets(document: Any) -> Any:
    """`document` as plain values, those of keys that name a secret hidden, names cut out of addresses."""

    def leaf(dotted: str, value: Any) -> Any:
        key = re.sub(r"\[\d+\]$", "", dotted).rpartition(".")[2].lower().replace("-", "_")
        if value is not None and (key.endswith(_SECRET_ENDS) or set(key.split("_")) & _SECRET_WORDS):
            return HIDDEN
        if isinstance(value, bool | int | float | None):
            return value
        return _USER_IN_ADDRESS.sub("", str(value))  # what is no plain value is told as text

    return with_leaves(document, leaf)
