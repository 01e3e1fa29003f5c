"""Performance gap: how far each configuration's last visit stays below the best possible there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skyfall_metrics.bounds import Bound, BoundSource
from skyfall_metrics.stream import ROUNDING
from skyfall_metrics.values import Value, mean_of, quotient

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
    source: BoundSource | None
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


def performance_gap(last_visits: Mapping[str, float | None], bounds: Mapping[str, Bound]) -> GapResult:
    """U_c − S over the last visit of each configuration with a known bound.

    Args:
        last_visits: Settled level of each configuration's last segment, None where its rewards are missing.
        bounds: Upper bounds by configuration.
    """
    gaps = tuple(_of_one(name, settled, bounds.get(name)) for name, settled in last_visits.items())
    reason = "; ".join(gap.reason for gap in gaps if gap.reason)
    zero = "every known bound is 0" if any(gap.gap is not None for gap in gaps) else reason
    return GapResult(
        gap=mean_of((gap.gap for gap in gaps), reason),
        share=mean_of((gap.share for gap in gaps), zero),
        configurations=gaps,
    )


def _of_one(name: str, settled: float | None, bound: Bound | None) -> IdentityGap:
    reason = None
    if bound is None:
        reason = f"no bound for {name!r}"
    elif settled is None:
        reason = f"rewards of the last visit of {name!r} are missing"
    gap = None if bound is None or settled is None else bound.value - settled
    return IdentityGap(
        configuration=name,
        bound=None if bound is None else bound.value,
        source=None if bound is None else bound.source,
        settled=settled,
        gap=gap,
        share=None if gap is None or bound is None else quotient(gap, abs(bound.value)),
        above_bound=gap is not None and bound is not None and gap < -ROUNDING * abs(bound.value),
        reason=reason,
    )
