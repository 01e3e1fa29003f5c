"""Recovery time: how long after a shift until the level from before it is back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skyfall_metrics.metrics.adaptation import Outcome
from skyfall_metrics.stream import Stream
from skyfall_metrics.values import Value, number, optional

__all__ = ["RecoveryResult", "ShiftRecovery", "recovery_time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftRecovery:
    """Recovery after one shift; `segment` counts from 0, `at_step` is the step of its first row."""

    segment: int
    at_step: int
    configuration: str
    threshold: float | None
    steps: int | None
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResult:
    """Recovery of one world.

    Attributes:
        mean_steps: Mean rows to recovery over shifts, censored ones counting their whole segment: with any of
            these it is a lower bound, so read `censored_share` beside it.
        median_steps: Median likewise.
        censored_share: Share of shifts that never recovered within their segment.
        censored: How many those are.
        undefined: Shifts left out because rewards are missing.
        shifts: One a shift.
    """

    mean_steps: Value
    median_steps: Value
    censored_share: Value
    censored: int
    undefined: int
    shifts: tuple[ShiftRecovery, ...]


def recovery_time(stream: Stream) -> RecoveryResult:
    """Rows after each shift until ρ holds `recovery_level` of the level before it.

    θ_s = P_s − (1 − recovery_level) · |P_s|, with P_s the settled level of the segment before, so that the
    threshold lies below the level for negative rewards too. A segment that never falls below recovers in 0
    rows.

    Args:
        stream: One world's life.
    """
    before = np.concatenate(([np.nan], stream.settled[:-1]))
    threshold = before - (1 - stream.parameters.recovery_level) * np.abs(before)
    crossing = stream.rows_to(threshold)
    segments = stream.segments
    known = ~np.isnan(threshold) & ~np.isnan(stream.smoothed[segments.stop - 1])
    shifts = tuple(
        _of_shift(stream, s, optional(threshold[s]), int(crossing[s]), defined=bool(known[s]))
        for s in range(1, len(segments))
    )
    reason = "no shift" if not shifts else "rewards around every shift are missing"
    steps = [shift.steps for shift in shifts if shift.steps is not None]
    outcomes = [shift.outcome for shift in shifts]
    censored = outcomes.count(Outcome.CENSORED)
    return RecoveryResult(
        mean_steps=number(np.mean(steps) if steps else None, reason),
        median_steps=number(np.median(steps) if steps else None, reason),
        censored_share=number(censored / len(steps) if steps else None, reason),
        censored=censored,
        undefined=outcomes.count(Outcome.UNDEFINED),
        shifts=shifts,
    )


def _of_shift(
    stream: Stream, segment: int, threshold: float | None, crossing: int, *, defined: bool
) -> ShiftRecovery:
    segments = stream.segments
    reached = crossing >= 0
    outcome = Outcome.REACHED if reached else Outcome.CENSORED
    return ShiftRecovery(
        segment=segment,
        at_step=int(stream.step[segments.start[segment]]),
        configuration=segments.names[segments.identity[segment]],
        threshold=threshold,
        steps=(crossing if reached else int(segments.rows[segment])) if defined else None,
        outcome=outcome if defined else Outcome.UNDEFINED,
    )
