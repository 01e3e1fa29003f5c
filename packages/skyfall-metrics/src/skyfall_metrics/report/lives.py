"""What a report keeps of each run: its scorecard, its thinned curves, and where things happened.

Traces are read one after the other and let go, so a report of many long runs needs the memory of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from skyfall_metrics.comparison import UNNAMED
from skyfall_metrics.metrics.adaptation import Outcome
from skyfall_metrics.parameters import Parameters
from skyfall_metrics.report.downsample import MOST_POINTS, Curve, spread, thinned
from skyfall_metrics.scorecard import Scorecard, WorldScore
from skyfall_metrics.scoring import streams_of
from skyfall_metrics.stream import Stream
from skyfall_metrics.trace import Trace

__all__ = ["Family", "Life", "Recovery", "Span", "Track", "configurations_of", "families_of", "life_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A segment on the axis of steps, from its first step to that of the next segment (or its own last)."""

    label: str
    configuration: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How the wait for recovery from one shift ended.

    Attributes:
        shift_at: Step of the shift.
        at: Step at which the level was back; the segment's last one where it never was.
        level: Smoothed reward there.
        steps: Rows that it took.
        recovered: Whether the level was back.
    """

    shift_at: int
    at: int
    level: float
    steps: int
    recovered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The smoothed reward of one world's life, or of several worlds with one schedule."""

    reward: Curve
    spans: tuple[Span, ...]
    recoveries: tuple[Recovery, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One run.

    Attributes:
        card: Its scorecard.
        tracks: Its smoothed reward: one track, unless its worlds have different schedules.
        ranks: Its effective rank: nothing, one curve, or one a world where they were measured at other steps.
    """

    card: Scorecard
    tracks: tuple[Track, ...]
    ranks: tuple[Curve, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The runs of one algorithm on one task; `name` is unique in a report."""

    algorithm: str
    task: str
    name: str
    lives: tuple[Life, ...]

    @property
    def cards(self) -> list[Scorecard]:
        """The scorecards of its runs."""
        return [life.card for life in self.lives]


def life_of(trace: Trace, card: Scorecard, most: int = MOST_POINTS) -> Life:
    """What a report shows of one run.

    Args:
        trace: The run.
        card: Its scorecard; the smoothing shown is the one it was scored with.
        most: Points of a curve.
    """
    used = card.parameters
    parameters = Parameters(
        window=used.window,
        settled_fraction=used.settled_fraction,
        adaptation_level=used.adaptation_level,
        recovery_level=used.recovery_level,
        hold=used.hold,
    )
    streams = streams_of(trace, parameters)
    tracks = [_track(stream, world, most) for stream, world in zip(streams, card.worlds, strict=True)]
    merged = _merged(tracks) if len(tracks) > 1 else None
    return Life(
        card=card,
        tracks=(merged,) if merged else tuple(tracks),
        ranks=_ranks(trace, most),
    )


def families_of(lives: Iterable[Life]) -> list[Family]:
    """Runs grouped by algorithm and task, in alphabetical order, each family's by seed and name."""

    def key(life: Life) -> tuple[str, str]:
        return life.card.run.algorithm_id or UNNAMED, life.card.run.task or UNNAMED

    def within(life: Life) -> tuple[str, str, str, str]:
        run = life.card.run
        seed = f"{run.seed:020d}" if isinstance(run.seed, int) else str(run.seed or "")
        return *key(life), seed, f"{run.run_id or ''} {run.path or ''}"

    grouped = {each: tuple(group) for each, group in groupby(sorted(lives, key=within), key=key)}
    several_tasks = len({task for _, task in grouped}) > 1
    return [
        Family(
            algorithm=algorithm,
            task=task,
            name=f"{algorithm} · {task}" if several_tasks else algorithm,
            lives=group,
        )
        for (algorithm, task), group in grouped.items()
    ]


def configurations_of(families: Iterable[Family]) -> list[str]:
    """Every configuration that any run met, in order of first appearance."""
    return list(
        dict.fromkeys(
            c.configuration for family in families for card in family.cards for c in card.configurations
        )
    )


def _track(stream: Stream, world: WorldScore, most: int) -> Track:
    return Track(
        reward=thinned(stream.step, stream.smoothed, stream.segments.start, most),
        spans=_spans(stream),
        recoveries=tuple(_recoveries(stream, world)),
    )


def _spans(stream: Stream) -> tuple[Span, ...]:
    segments, step = stream.segments, stream.step
    ends = [int(step[row]) for row in segments.start[1:]] + [int(step[-1])]
    return tuple(
        Span(
            label=segments.names[segments.label[s]],
            configuration=segments.names[segments.identity[s]],
            first=int(step[segments.start[s]]),
            last=ends[s],
        )
        for s in range(len(segments))
    )


def _recoveries(stream: Stream, world: WorldScore) -> Iterable[Recovery]:
    segments = stream.segments
    for shift in world.recovery.shifts:
        if shift.steps is None or shift.outcome is Outcome.UNDEFINED:
            continue
        last = int(segments.stop[shift.segment]) - 1
        row = min(int(segments.start[shift.segment]) + shift.steps, last)
        yield Recovery(
            shift_at=shift.at_step,
            at=int(stream.step[row]),
            level=float(stream.smoothed[row]),
            steps=shift.steps,
            recovered=shift.outcome is Outcome.REACHED,
        )


def _merged(tracks: list[Track]) -> Track | None:
    """Worlds with one schedule as one track, their mean; None when their schedules differ."""
    mean = spread([track.reward for track in tracks])
    if mean is None or any(track.spans != tracks[0].spans for track in tracks):
        return None
    return Track(
        reward=Curve(mean.at, mean.mean),
        spans=tracks[0].spans,
        recoveries=tuple(recovery for track in tracks for recovery in track.recoveries),
    )


def _ranks(trace: Trace, most: int) -> tuple[Curve, ...]:
    if trace.effective_rank is None:
        return ()
    curves = []
    for code in range(len(trace.worlds)):
        rows = trace.world_rows(code)
        rank, step = trace.effective_rank[rows], trace.step[rows]
        present = ~np.isnan(rank)
        if present.any():
            curves.append(thinned(step[present], rank[present], np.zeros(1, dtype=np.intp), most))
    mean = spread(curves) if len(curves) > 1 else None
    return (Curve(mean.at, mean.mean),) if mean else tuple(curves)
