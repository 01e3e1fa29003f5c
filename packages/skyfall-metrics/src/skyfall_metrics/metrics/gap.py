"""Performance gap: how far each configuration's last visit stays below the best possible there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skyfall_metrics.bounds import Bound
from skyfall_metrics.stream import ROUNDING, Stream
from skyfall_metrics.values import Value, mean_of, number

__all__ = ["GapResult", "IdentityGap", "performance_gap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityGap:
    """The gap of one configuration.

    Attributes:
        configuration: Its name.
        bound: U, the best reward possible; None when nobody said.
        source: Who said so (`given`, `trace`, `rows`, `observed`).
        settled: S, settled level of its last visit.
        gap: U − S.
        share: (U − S) / |U|; None for a bound of 0.
        above_bound: Whether S exceeds U. Then the bound is wrong; the gap stays negative, it is not clipped.
        reason: Why there is no gap.
    """

    configuration: str
    bound: float | None
    source: str | None
    settled: float | None
    gap: float | None
    share: float | None
    above_bound: bool
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GapResult:
    """Performance gap of one world: means over the configurations that have a bound, and one by one."""

    gap: Value
    share: Value
    configurations: tuple[IdentityGap, ...]


def performance_gap(stream: Stream, bounds: Mapping[str, Bound]) -> GapResult:
    """$U_c - S$ over the last visit of each configuration with a known bound.

    Args:
        stream: One world's life.
        bounds: Upper bounds by configuration.
    """
    gaps = tuple(_of_one(stream, code, bounds) for code in stream.segments.identities())
    reason = "; ".join(gap.reason for gap in gaps if gap.reason)
    zero = "every known bound is 0" if any(gap.gap is not None for gap in gaps) else reason
    return GapResult(
        gap=mean_of((gap.gap for gap in gaps), reason),
        share=mean_of((gap.share for gap in gaps), zero),
        configurations=gaps,
    )


def _of_one(stream: Stream, code: int, bounds: Mapping[str, Bound]) -> IdentityGap:
    segments = stream.segments
    name = segments.names[code]
    last = int(np.flatnonzero(segments.identity == code)[-1])
    settled = number(stream.settled[last], f"rewards of the last visit of {name!r} are missing")
    bound = bounds.get(name)
    gap = None if bound is None or settled.value is None else bound.value - settled.value
    return IdentityGap(
        configuration=name,
        bound=None if bound is None else bound.value,
        source=None if bound is None else bound.source,
        settled=settled.value,
        gap=gap,
        share=None if gap is None or bound is None or not bound.value else gap / abs(bound.value),
        above_bound=gap is not None and bound is not None and gap < -ROUNDING * abs(bound.value),
        reason=f"no bound for {name!r}" if bound is None else settled.reason,
    )
