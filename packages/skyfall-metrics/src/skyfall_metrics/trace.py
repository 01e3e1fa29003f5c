"""One run's record in memory: columns as NumPy arrays, what the run said about itself apart.

A `Trace` comes from a file (`skyfall_metrics.reader.read_trace`) or from arrays that a program already holds
(`trace_from_arrays`). Both end in the same checks, so whatever reaches the metrics has steps in order
within each world and rewards that are finite or missing (NaN), never infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfall_metrics.errors import TraceError

__all__ = [
    "DEFAULT_REGIME",
    "LARGEST_VALUE",
    "NO_ORIGIN",
    "Note",
    "Trace",
    "WorldName",
    "trace_from_arrays",
]

WorldName: TypeAlias = str | int | None

DEFAULT_REGIME = "baseline"
"""Label of every row of a trace that has no regime labels at all."""

NO_ORIGIN = -1
"""Code of a row that repeats no earlier configuration."""

LARGEST_VALUE = 1e100
"""Largest size of a number that can be averaged and squared without overflow."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a trace that its reader should know and that did not stop the scoring.

    Attributes:
        code: A stable word for programs (`torn_line`, `step_gaps`, …).
        message: The same for people.
    """

    code: str
    message: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Trace:
    """The rows of one run, in the order they were lived.

    Attributes:
        step: `(rows,)` int64, strictly increasing within a world.
        reward: `(rows,)` float64, NaN where the trace has null, NaN or an infinity.
        regime: `(rows,)` int32, codes into `labels`.
        origin: `(rows,)` int32, codes into `labels`, `NO_ORIGIN` where nothing is repeated.
        boundary: `(rows,)` bool.
        world: `(rows,)` int32, codes into `worlds`.
        labels: Configuration names, by code.
        worlds: World names, by code; `(None,)` when the trace knows only one.
        effective_rank: `(rows,)` float64 with NaN where absent; None when the trace has none.
        upper_bound: Likewise, the best reward possible at that row.
        metadata: What the run recorded about itself.
        path: Where the trace came from.
        notes: What was odd about it.
    """

    step: NDArray[np.int64]
    reward: NDArray[np.float64]
    regime: NDArray[np.int32]
    origin: NDArray[np.int32]
    boundary: NDArray[np.bool_]
    world: NDArray[np.int32]
    labels: tuple[str, ...]
    worlds: tuple[WorldName, ...] = (None,)
    effective_rank: NDArray[np.float64] | None = None
    upper_bound: NDArray[np.float64] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    path: str | None = None
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.step)

    def world_rows(self, code: int) -> NDArray[np.intp] | slice:
        """Positions of one world's rows, in order; the whole trace when there is only one world."""
        if len(self.worlds) == 1:
            return slice(None)
        return np.flatnonzero(self.world == code)


def trace_from_arrays(  # noqa: PLR0913 - one a column of the format
    reward: ArrayLike,
    regime: Sequence[object],
    *,
    origin: Sequence[object] | None = None,
    boundary: ArrayLike | None = None,
    step: ArrayLike | None = None,
    world: Sequence[Any] | None = None,
    effective_rank: ArrayLike | None = None,
    upper_bound: ArrayLike | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Trace:
    """A trace from what a program already holds, for scoring without a file.

    Args:
        reward: `(rows,)`; NaN, ±Inf and None are missing rewards.
        regime: `(rows,)` configuration labels.
        origin: `(rows,)` the label that a row's configuration repeats, or None.
        boundary: `(rows,)` whether a row begins a new configuration; label changes count without it.
        step: `(rows,)` increasing within a world; default: counted within each world.
        world: `(rows,)` which world a row belongs to.
        effective_rank: `(rows,)`, None or NaN where it was not measured.
        upper_bound: `(rows,)` the best reward possible at that row.
        metadata: `run_id`, `algorithm_id`, `task`, `seed`, `reward_upper_bounds`, …

    Raises:
        TraceError: Lengths differ, there are no rows, steps go backwards, or a number is too large to
            average.
    """
    rewards = finite_column(np.asarray(reward, dtype=np.float64), "reward")
    rows = len(rewards)
    labels = Codebook(as_text=True)
    worlds = Codebook(as_text=False)
    world_codes = _codes(worlds, [None] * rows if world is None else world)
    trace = Trace(
        step=_counted_steps(world_codes) if step is None else np.asarray(step, dtype=np.int64),
        reward=rewards,
        regime=_codes(labels, regime),
        origin=_origin_codes(labels, origin, rows),
        boundary=np.zeros(rows, dtype=bool) if boundary is None else np.asarray(boundary, dtype=bool),
        world=world_codes,
        labels=tuple(labels.names),
        worlds=tuple(worlds.names),
        effective_rank=_optional_column(effective_rank, "effective_rank"),
        upper_bound=_optional_column(upper_bound, "upper_bound"),
        metadata=dict(metadata or {}),
    )
    _check_lengths(trace)
    _check_steps(trace)
    return trace


class Codebook(dict[Any, int]):
    """Small integers for names, handed out in order of first use.

    Args:
        as_text: Whether a name that is no string is the same name as its text (label 3 and label "3").
    """

    def __init__(self, *, as_text: bool) -> None:
        super().__init__()
        self.names: list[Any] = []
        self._as_text = as_text

    def __missing__(self, name: Any) -> int:
        if self._as_text and not isinstance(name, str):
            code = self[str(name)]
        else:
            code = len(self.names)
            self.names.append(name)
        self[name] = code
        return code


def finite_column(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """`values` with infinities made missing.

    Raises:
        TraceError: A value that could not be averaged in double precision.
    """
    if values.ndim != 1:
        raise TraceError(f"{name} has shape {values.shape}: expected one value a row")
    infinite = np.isinf(values)
    if infinite.any():
        values = np.where(infinite, np.nan, values)
    row = oversized(values)
    if row is not None:
        raise TraceError(f"row {row}: {oversized_problem(name, values[row])}")
    return values


def oversized(values: NDArray[np.float64]) -> int | None:
    """The first row whose value is too large to average in double precision, if there is one."""
    if not len(values) or not np.fmax(np.fmax.reduce(values), -np.fmin.reduce(values)) > LARGEST_VALUE:
        return None
    return int(np.argmax(np.nan_to_num(np.abs(values)) > LARGEST_VALUE))


def oversized_problem(name: str, value: float) -> str:
    """What to say about such a value."""
    return f"{name} is {value:g}: beyond ±{LARGEST_VALUE:g} double precision cannot average; rescale it"


def counted(count: int, noun: str) -> str:
    """`1 row`, `2 rows`: a count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _optional_column(values: ArrayLike | None, name: str) -> NDArray[np.float64] | None:
    return None if values is None else finite_column(np.asarray(values, dtype=np.float64), name)


def _codes(book: Codebook, names: Sequence[Any]) -> NDArray[np.int32]:
    return np.fromiter((book[name] for name in np.asarray(names, dtype=object).tolist()), dtype=np.int32)


def _origin_codes(labels: Codebook, origin: Sequence[object] | None, rows: int) -> NDArray[np.int32]:
    if origin is None:
        return np.full(rows, NO_ORIGIN, dtype=np.int32)
    return np.fromiter((NO_ORIGIN if name is None else labels[name] for name in origin), dtype=np.int32)


def _counted_steps(world: NDArray[np.int32]) -> NDArray[np.int64]:
    steps = np.empty(len(world), dtype=np.int64)
    for code in np.unique(world):
        rows = np.flatnonzero(world == code)
        steps[rows] = np.arange(len(rows))
    return steps


def _check_lengths(trace: Trace) -> None:
    if not len(trace.reward):
        raise TraceError("a trace needs at least one row", path=trace.path)
    for name in ("step", "regime", "origin", "boundary", "world", "effective_rank", "upper_bound"):
        column = getattr(trace, name)
        if column is not None and len(column) != len(trace.reward):
            raise TraceError(
                f"{len(trace.reward)} rewards but {len(column)} values of {name}", path=trace.path
            )


def _check_steps(trace: Trace) -> None:
    for code in range(len(trace.worlds)):
        step = trace.step[trace.world_rows(code)]
        back = np.flatnonzero(np.diff(step) <= 0)
        if len(back):
            at = int(back[0]) + 1
            raise TraceError(
                f"step {step[at]} after step {step[at - 1]}: steps must increase within a world",
                path=trace.path,
            )
