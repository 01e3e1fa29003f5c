"""The contract of an executor: cells in, events out.

An executor is a class or factory named in the entry-point group `skyfall.executors`. It is called with
the document's `executor.params`, and with those of `jobs` and `resources` that it names. What it gives
back runs cells anywhere it likes and tells what happens to them as it happens.

Guarantees that every executor keeps: each cell ends in exactly one `CellOutcome`; a cell that fails,
crashes or is killed stops no other; an interruption reaches every running cell, whose outcome is told
before the interruption goes on; and no process outlives `run`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from skyfall_core.errors import MissingExtraError

if TYPE_CHECKING:
    from skyfall_core.config import ExperimentConfig

__all__ = [
    "Cell",
    "CellBegan",
    "CellEvent",
    "CellOutcome",
    "CellProgress",
    "CellStatus",
    "Executor",
    "Remark",
    "Resources",
    "Tell",
    "needed",
]


class CellStatus(str, Enum):
    """How a cell ended."""

    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Cell:
    """One experiment of a sweep, ready to be run.

    Attributes:
        config: What to run.
        mode: What to do about a trace that is already there; a value of `TraceMode`.
    """

    config: ExperimentConfig
    mode: str = "create"

    @property
    def name(self) -> str:
        """The run's name, which no other cell of the sweep has."""
        return str(self.config.run.name)


@dataclass(frozen=True, slots=True)
class Resources:
    """What one cell takes.

    Attributes:
        cpus: Processor cores, and so many threads for its linear algebra; None leaves it to the executor.
        gpus: Accelerators, or a share of one.
        memory_mb: Main memory in MiB; None when unknown.
    """

    cpus: int | None = None
    gpus: float = 0.0
    memory_mb: int | None = None


@dataclass(frozen=True, slots=True)
class CellBegan:
    """A cell has been given to a process."""

    name: str


@dataclass(frozen=True, slots=True)
class CellProgress:
    """How far a cell is.

    Attributes:
        name: The cell.
        steps: Steps so far, those before a resumption included; each world's own.
        mean_reward: Mean reward over the latest window.
        regime: Label of the configuration at that window's end.
    """

    name: str
    steps: int
    mean_reward: float
    regime: str


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """How one cell ended.

    Attributes:
        name: The cell.
        status: Finished, failed or interrupted.
        steps: Steps taken; each world's own.
        seconds: Wall-clock time it took, start-up included; None where nobody measured it.
        error: One message, for a cell that failed.
        detail: The traceback of foreign code, or the last lines the cell's process printed, if any.
    """

    name: str
    status: CellStatus
    steps: int = 0
    seconds: float | None = None
    error: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Something worth a line that is no cell's end, such as what a cell printed."""

    text: str


CellEvent: TypeAlias = CellBegan | CellProgress | CellOutcome | Remark
Tell: TypeAlias = Callable[[CellEvent], None]


class Executor(Protocol):
    """Runs cells somewhere."""

    def run(self, cells: Sequence[Cell], tell: Tell) -> None:
        """Run every cell once.

        Args:
            cells: In the order they should begin.
            tell: Called with each event, in the caller's thread; a `CellOutcome` for every cell that
                began.

        Raises:
            InputError: If no cell can be begun, such as where no cluster answers. No cell's own failure
                raises.
            KeyboardInterrupt: Once every running cell has ended, if the caller was interrupted.
        """
        ...


def needed(module: str, executor: str, extra: str) -> Any:
    """An optional dependency of an executor, imported now.

    Raises:
        MissingExtraError: Saying which extra brings it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        problem = f"executor {executor!r} needs {module}, which is not installed"
        raise MissingExtraError(f"{problem}: pip install 'skyfall-crl[{extra}]'") from None
