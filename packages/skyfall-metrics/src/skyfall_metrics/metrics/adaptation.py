"""Adaptation speed: how much of a segment passes before the agent has climbed to its settled level."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.stream import Stream
from skyfall_metrics.values import Value, number, optional

__all__ = ["AdaptationResult", "Climb", "Outcome", "ShiftAdaptation", "adaptation_speed", "climbs"]


class Outcome(str, Enum):
    """How a wait for a threshold ended.

    `REACHED`: held from some row on. `NO_RISE`: the segment settles no higher than it opened, there was
    nothing to climb. `CENSORED`: never held within the segment. `UNDEFINED`: rewards that the threshold
    needs are missing.
    """

    REACHED = "reached"
    NO_RISE = "no_rise"
    CENSORED = "censored"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """The climb of every segment from its opening to its settled level, the first segment included.

    Attributes:
        threshold: `(segments,)` θ = O + adaptation_level · (S − O); NaN where there is no rise.
        steps: `(segments,)` τ, rows to the first held crossing: 0 without a rise, the segment's length
            when censored.
        outcome: `(segments,)` how it ended.
    """

    threshold: NDArray[np.float64]
    steps: NDArray[np.intp]
    outcome: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftAdaptation:
    """Adaptation after one shift; `segment` counts from 0, `at_step` is the step of its first row."""

    segment: int
    at_step: int
    configuration: str
    threshold: float | None
    steps: int | None
    speed: float | None
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptationResult:
    """Adaptation of one world.

    Attributes:
        speed: Mean over shifts of 1 − τ/n; 1 = at once, 0 = not within the segment.
        mean_steps: Mean τ in rows, censored shifts counting their whole segment.
        median_steps: Median τ.
        no_rise: Shifts with nothing to climb (speed 1).
        censored: Shifts that never got there (speed 0).
        undefined: Shifts left out because rewards are missing.
        shifts: One a shift.
    """

    speed: Value
    mean_steps: Value
    median_steps: Value
    no_rise: int
    censored: int
    undefined: int
    shifts: tuple[ShiftAdaptation, ...]


def climbs(stream: Stream) -> Climb:
    """When each segment has climbed to `adaptation_level` of its own rise."""
    rise = stream.settled - stream.opening
    flat = rise <= stream.tolerance
    threshold = stream.opening + stream.parameters.adaptation_level * rise
    threshold = np.where(flat, np.nan, threshold)
    crossing = stream.rows_to(threshold)
    steps = np.where(crossing >= 0, crossing, stream.segments.rows)
    steps = np.where(flat, 0, steps)
    outcome = np.select(
        [np.isnan(rise), flat, crossing >= 0],
        [Outcome.UNDEFINED.value, Outcome.NO_RISE.value, Outcome.REACHED.value],
        default=Outcome.CENSORED.value,
    )
    return Climb(threshold, steps, tuple(map(Outcome, outcome.tolist())))


def adaptation_speed(stream: Stream, climb: Climb) -> AdaptationResult:
    """Mean speed of adaptation over shifts.

    For a segment that settles above its opening, v_s = 1 − τ_s / n_s, with τ_s the rows until ρ holds
    θ_s = O_s + adaptation_level · (S_s − O_s).

    Args:
        stream: One world's life.
        climb: `climbs(stream)`.
    """
    rows = stream.segments.rows
    shifts = tuple(_of_shift(stream, climb, s) for s in range(1, len(rows)))
    speeds = [shift.speed for shift in shifts if shift.speed is not None]
    reason = "no shift" if not shifts else "rewards around every shift are missing"
    steps = [float(shift.steps) for shift in shifts if shift.steps is not None]
    outcomes = [shift.outcome for shift in shifts]
    return AdaptationResult(
        speed=number(np.mean(speeds) if speeds else None, reason),
        mean_steps=number(np.mean(steps) if steps else None, reason),
        median_steps=number(np.median(steps) if steps else None, reason),
        no_rise=outcomes.count(Outcome.NO_RISE),
        censored=outcomes.count(Outcome.CENSORED),
        undefined=outcomes.count(Outcome.UNDEFINED),
        shifts=shifts,
    )


def _of_shift(stream: Stream, climb: Climb, segment: int) -> ShiftAdaptation:
    segments, outcome = stream.segments, climb.outcome[segment]
    defined = outcome is not Outcome.UNDEFINED
    steps = int(climb.steps[segment])
    return ShiftAdaptation(
        segment=segment,
        at_step=int(stream.step[segments.start[segment]]),
        configuration=segments.names[segments.identity[segment]],
        threshold=optional(climb.threshold[segment]),
        steps=steps if defined else None,
        speed=1 - steps / int(segments.rows[segment]) if defined else None,
        outcome=outcome,
    )
