"""Forgetting: what of a configuration's best level is gone when it comes back, and how fast it returns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skyfall_metrics.metrics.adaptation import Climb, Outcome
from skyfall_metrics.stream import Stream
from skyfall_metrics.values import Value, mean_of, optional

__all__ = ["ForgettingResult", "IdentityForgetting", "Revisit", "forgetting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisit:
    """One return of a configuration.

    Attributes:
        segment: Which segment, from 0; `at_step` is the step of its first row.
        configuration: What came back.
        best_before: Its best settled level in earlier segments.
        forgetting: `best_before` minus the opening level now; negative when it is better on return.
        retention: `best_before` minus the settled level now: what relearning did not bring back.
        savings: 1 − τ/τ_first: the share of the first climb's rows that was saved this time.
    """

    segment: int
    at_step: int
    configuration: str
    best_before: float | None
    forgetting: float | None
    retention: float | None
    savings: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityForgetting:
    """Means over the returns of one configuration."""

    configuration: str
    revisits: int
    forgetting: float | None
    retention: float | None
    savings: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingResult:
    """Forgetting of one world: means over its revisits, by configuration, and one by one."""

    forgetting: Value
    retention: Value
    savings: Value
    identities: tuple[IdentityForgetting, ...]
    revisits: tuple[Revisit, ...]


def forgetting(stream: Stream, climb: Climb) -> ForgettingResult:
    """Loss on return to a configuration, before and after relearning, and savings.

    F_s = max S_u − O_s over the earlier segments u of the same configuration, for segments that have any.

    Args:
        stream: One world's life.
        climb: `climbs(stream)`.
    """
    revisits = tuple(_revisits(stream, climb))
    if not revisits:
        missing = Value.missing("no revisit")
        return ForgettingResult(
            forgetting=missing, retention=missing, savings=missing, identities=(), revisits=()
        )
    reason = "rewards of every revisit or of what it revisits are missing"
    return ForgettingResult(
        forgetting=mean_of((r.forgetting for r in revisits), reason),
        retention=mean_of((r.retention for r in revisits), reason),
        savings=mean_of((r.savings for r in revisits), "no first visit had a climb to save on"),
        identities=_by_identity(stream, revisits),
        revisits=revisits,
    )


def _revisits(stream: Stream, climb: Climb) -> list[Revisit]:
    segments = stream.segments
    best: dict[int, float] = {}
    first: dict[int, int] = {}
    found = []
    for s, identity in enumerate(segments.identity.tolist()):
        if identity in first:
            level = best[identity]
            found.append(
                Revisit(
                    segment=s,
                    at_step=int(stream.step[segments.start[s]]),
                    configuration=segments.names[identity],
                    best_before=optional(level),
                    forgetting=optional(level - stream.opening[s]),
                    retention=optional(level - stream.settled[s]),
                    savings=_savings(climb, s, first[identity]),
                )
            )
        first.setdefault(identity, s)
        best[identity] = float(np.fmax(best.get(identity, math.nan), stream.settled[s]))
    return found


def _savings(climb: Climb, segment: int, first: int) -> float | None:
    """1 − τ/τ_first; None when either climb is undefined or the first one took no rows."""
    if Outcome.UNDEFINED in (climb.outcome[segment], climb.outcome[first]) or not climb.steps[first]:
        return None
    return 1 - int(climb.steps[segment]) / int(climb.steps[first])


def _by_identity(stream: Stream, revisits: tuple[Revisit, ...]) -> tuple[IdentityForgetting, ...]:
    grouped: dict[str, list[Revisit]] = {}
    for revisit in revisits:
        grouped.setdefault(revisit.configuration, []).append(revisit)
    names = [stream.segments.names[code] for code in stream.segments.identities()]
    return tuple(
        IdentityForgetting(
            configuration=name,
            revisits=len(grouped[name]),
            forgetting=mean_of((r.forgetting for r in grouped[name]), "").value,
            retention=mean_of((r.retention for r in grouped[name]), "").value,
            savings=mean_of((r.savings for r in grouped[name]), "").value,
        )
        for name in names
        if name in grouped
    )
