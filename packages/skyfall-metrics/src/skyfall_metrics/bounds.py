"""Upper bounds: the best reward possible under each configuration, and who says so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from skyfall_metrics.errors import BoundsError, TraceError
from skyfall_metrics.smoothing import part_means
from skyfall_metrics.stream import Stream
from skyfall_metrics.trace import Trace

__all__ = ["Bound", "BoundSource", "given_bounds", "recorded_bounds", "row_bounds"]


class BoundSource(str, Enum):
    """Where an upper bound comes from.

    `GIVEN`: the caller or a bounds file. `TRACE`: the run's metadata. `ROWS`: an `upper_bound` on the rows.
    `OBSERVED`: the best settled level among the compared runs, which no theory stands behind.
    """

    GIVEN = "given"
    TRACE = "trace"
    ROWS = "rows"
    OBSERVED = "observed"


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound on the mean reward per step, and its source."""

    value: float
    source: BoundSource


def given_bounds(bounds: Mapping[str, float]) -> dict[str, Bound]:
    """Bounds that a caller names.

    Raises:
        BoundsError: A bound that is no finite number.
    """
    return {name: Bound(_checked(name, value), BoundSource.GIVEN) for name, value in bounds.items()}


def recorded_bounds(trace: Trace) -> dict[str, Bound]:
    """The bounds in a run's metadata, `reward_upper_bounds`; empty without any.

    Raises:
        TraceError: They are no mapping from configuration to number.
    """
    recorded = trace.metadata.get("reward_upper_bounds")
    if recorded is None:
        return {}
    if not isinstance(recorded, Mapping):
        raise TraceError(
            f"reward_upper_bounds is {recorded!r}, expected a mapping from configuration to number",
            path=trace.path,
        )
    try:
        return {
            str(name): Bound(_checked(str(name), value), BoundSource.TRACE)
            for name, value in recorded.items()
            if value is not None
        }
    except BoundsError as error:
        raise TraceError(f"reward_upper_bounds: {error}", path=trace.path) from None


def row_bounds(stream: Stream, upper_bound: np.ndarray[Any, np.dtype[np.float64]] | None) -> dict[str, Bound]:
    """Bounds that stand on the rows: by configuration, the mean over the settled part of its last visit.

    Args:
        stream: One world's life.
        upper_bound: `(rows,)` of that world, NaN where absent; None when the trace has none.
    """
    if upper_bound is None:
        return {}
    segments = stream.segments
    means = part_means(upper_bound, stream.settled_start, segments.stop)
    last = dict(zip(segments.identity.tolist(), means.tolist(), strict=True))
    return {
        segments.names[code]: Bound(value, BoundSource.ROWS)
        for code, value in last.items()
        if not math.isnan(value)
    }


def _checked(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= 1e100:
        raise BoundsError(f"{name}: bound {value!r}, expected a finite number (reward per step)")
    return float(value)
