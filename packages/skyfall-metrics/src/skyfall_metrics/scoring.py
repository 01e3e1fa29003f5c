"""From a trace to a scorecard: each world is a stream of its own, then worlds are averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from skyfall_metrics.bounds import Bound, given_bounds, recorded_bounds, row_bounds
from skyfall_metrics.measures import MEASURES, Measure
from skyfall_metrics.metrics.adaptation import adaptation_speed, climbs
from skyfall_metrics.metrics.forgetting import forgetting
from skyfall_metrics.metrics.gap import performance_gap
from skyfall_metrics.metrics.plasticity import plasticity
from skyfall_metrics.metrics.recovery import recovery_time
from skyfall_metrics.metrics.reward import configuration_reward
from skyfall_metrics.metrics.stability import stability
from skyfall_metrics.metrics.transfer import forward_transfer
from skyfall_metrics.parameters import Parameters
from skyfall_metrics.scorecard import (
    ConfigurationSummary,
    RunIdentity,
    Scorecard,
    SegmentSummary,
    WorldScore,
)
from skyfall_metrics.segments import Segments, find_segments
from skyfall_metrics.smoothing import part_means
from skyfall_metrics.stream import Stream, prepare_stream
from skyfall_metrics.trace import Trace
from skyfall_metrics.values import Value, mean_of, optional

__all__ = ["score", "streams_of", "with_bounds", "with_references"]


def score(
    trace: Trace,
    parameters: Parameters | None = None,
    *,
    bounds: Mapping[str, float | Bound] | None = None,
    references: Mapping[str, float] | None = None,
) -> Scorecard:
    """All six metrics of one run, plasticity and, with references, forward transfer.

    Args:
        trace: The run.
        parameters: How to score; default: the documented defaults.
        bounds: Upper bound on the reward per step, by configuration. They go before those in the run's
            metadata, which go before those on its rows.
        references: Mean reward of runs that lived one configuration alone, by configuration.

    Raises:
        BoundsError: A bound that is no finite number.
    """
    streams = streams_of(trace, parameters)
    recorded = recorded_bounds(trace)
    worlds = tuple(_score_world(trace, code, stream, recorded) for code, stream in enumerate(streams))
    card = Scorecard(
        run=_identity(trace),
        parameters=streams[0].parameters,
        rows=len(trace),
        missing_rewards=sum(world.missing_rewards for world in worlds),
        segments=sum(len(world.segments) for world in worlds),
        shifts=sum(len(world.segments) - 1 for world in worlds),
        revisits=sum(len(world.forgetting.revisits) for world in worlds),
        notes=trace.notes,
        measures=_measures(worlds),
        configurations=_configurations(worlds),
        worlds=worlds,
    )
    if bounds:
        card = with_bounds(card, _as_bounds(bounds))
    return card if references is None else with_references(card, references)


def with_bounds(card: Scorecard, bounds: Mapping[str, Bound]) -> Scorecard:
    """The same scorecard with gaps to other upper bounds; a configuration not named keeps the bound it had.

    Args:
        card: A run's scores.
        bounds: Upper bound on the reward per step, by configuration.
    """
    return _with_worlds(
        card,
        tuple(
            replace(
                world, gap=performance_gap(_last_visits(world.segments), _bounds_of(world) | dict(bounds))
            )
            for world in card.worlds
        ),
    )


def with_references(card: Scorecard, references: Mapping[str, float]) -> Scorecard:
    """The same scorecard with forward transfer.

    Args:
        card: A run's scores.
        references: Mean reward of runs that lived one configuration alone, by configuration.
    """
    return _with_worlds(
        card,
        tuple(
            replace(world, transfer=forward_transfer(_first_visits(world.segments), references))
            for world in card.worlds
        ),
    )


def _with_worlds(card: Scorecard, worlds: tuple[WorldScore, ...]) -> Scorecard:
    return replace(card, worlds=worlds, measures=_measures(worlds), configurations=_configurations(worlds))


def _bounds_of(world: WorldScore) -> dict[str, Bound]:
    return {
        gap.configuration: Bound(gap.bound, gap.source)
        for gap in world.gap.configurations
        if gap.bound is not None and gap.source is not None
    }


def _last_visits(segments: Iterable[SegmentSummary]) -> dict[str, float | None]:
    """Settled level of each configuration's last segment, in order of first visit."""
    return {segment.configuration: segment.settled for segment in segments}


def _first_visits(segments: Iterable[SegmentSummary]) -> dict[str, float | None]:
    """Mean reward of each configuration's first segment."""
    first: dict[str, float | None] = {}
    for segment in segments:
        first.setdefault(segment.configuration, segment.mean)
    return first


def streams_of(trace: Trace, parameters: Parameters | None = None) -> list[Stream]:
    """Each world of a run, smoothed and cut into segments, in the order of `trace.worlds`.

    Args:
        trace: The run.
        parameters: How to score; the automatic window is chosen once for the run.
    """
    rows = [trace.world_rows(code) for code in range(len(trace.worlds))]
    segments = [find_segments(trace, of_world) for of_world in rows]
    resolved = (parameters or Parameters()).resolve(np.concatenate([each.rows for each in segments]))
    return [
        prepare_stream(trace.reward[of_world], trace.step[of_world], each, resolved)
        for of_world, each in zip(rows, segments, strict=True)
    ]


def _as_bounds(bounds: Mapping[str, float | Bound]) -> dict[str, Bound]:
    ready = {name: bound for name, bound in bounds.items() if isinstance(bound, Bound)}
    return given_bounds({n: b for n, b in bounds.items() if not isinstance(b, Bound)}) | ready


def _score_world(trace: Trace, code: int, stream: Stream, recorded: Mapping[str, Bound]) -> WorldScore:
    rows = trace.world_rows(code)
    climb = climbs(stream)
    upper_bound = None if trace.upper_bound is None else trace.upper_bound[rows]
    rank = None if trace.effective_rank is None else trace.effective_rank[rows]
    segments = _segment_summaries(stream, stream.segments)
    return WorldScore(
        world=trace.worlds[code],
        rows=len(stream.reward),
        missing_rewards=int(np.isnan(stream.reward).sum()),
        segments=segments,
        reward=configuration_reward(stream),
        adaptation=adaptation_speed(stream, climb),
        forgetting=forgetting(stream, climb),
        recovery=recovery_time(stream),
        stability=stability(stream),
        gap=performance_gap(_last_visits(segments), row_bounds(stream, upper_bound) | dict(recorded)),
        plasticity=plasticity(rank, stream.step),
        transfer=forward_transfer({}, None),
    )


def _segment_summaries(stream: Stream, segments: Segments) -> tuple[SegmentSummary, ...]:
    means = part_means(stream.reward, segments.start, segments.stop)
    return tuple(
        SegmentSummary(
            label=segments.names[segments.label[s]],
            configuration=segments.names[segments.identity[s]],
            first_row=int(segments.start[s]),
            at_step=int(stream.step[segments.start[s]]),
            rows=int(segments.stop[s] - segments.start[s]),
            revisited=bool(segments.revisited[s]),
            mean=optional(means[s]),
            opening=optional(stream.opening[s]),
            settled=optional(stream.settled[s]),
        )
        for s in range(len(segments))
    )


def _measures(worlds: tuple[WorldScore, ...]) -> dict[str, Value]:
    return {measure.name: _across_worlds(measure, worlds) for measure in MEASURES}


def _across_worlds(measure: Measure, worlds: tuple[WorldScore, ...]) -> Value:
    values: list[Value] = [getattr(getattr(world, measure.metric), measure.attribute) for world in worlds]
    reasons = dict.fromkeys(value.reason for value in values if value.reason is not None)
    return mean_of((value.value for value in values), "; ".join(reasons))


def _configurations(worlds: tuple[WorldScore, ...]) -> tuple[ConfigurationSummary, ...]:
    rewards = _by_configuration(world.reward.configurations for world in worlds)
    gaps = _by_configuration(world.gap.configurations for world in worlds)
    losses = _by_configuration(world.forgetting.identities for world in worlds)
    transfers = _by_configuration(world.transfer.configurations for world in worlds)
    return tuple(
        _configuration(name, of_name, gaps[name], losses.get(name, []), transfers.get(name, []))
        for name, of_name in rewards.items()
    )


def _by_configuration(results: Iterable[Iterable[Any]]) -> dict[str, list[Any]]:
    """Results of all worlds by the configuration they are about, in order of first visit."""
    grouped: dict[str, list[Any]] = {}
    for entry in chain.from_iterable(results):
        grouped.setdefault(entry.configuration, []).append(entry)
    return grouped


def _configuration(
    name: str, rewards: list[Any], gaps: list[Any], losses: list[Any], transfers: list[Any]
) -> ConfigurationSummary:
    sources = [gap.source for gap in gaps if gap.source is not None]

    def mean(entries: list[Any], attribute: str, reason: str = "") -> Value:
        return mean_of((getattr(entry, attribute) for entry in entries), reason)

    no_gap = "; ".join(dict.fromkeys(gap.reason for gap in gaps if gap.reason))
    no_transfer = "; ".join(dict.fromkeys(each.reason for each in transfers if each.reason))
    return ConfigurationSummary(
        configuration=name,
        visits=sum(entry.visits for entry in rewards),
        rows=sum(entry.rows for entry in rewards),
        missing=sum(entry.missing for entry in rewards),
        mean=mean(rewards, "mean").value,
        deviation=mean(rewards, "deviation").value,
        settled=mean(rewards, "settled").value,
        forgetting=mean(losses, "forgetting", "missing rewards" if losses else "not revisited"),
        bound=mean(gaps, "bound").value,
        bound_source=sources[0] if sources else None,
        gap=mean(gaps, "gap", no_gap),
        gap_share=mean(gaps, "share", no_gap or f"the bound of {name!r} is 0"),
        above_bound=any(gap.above_bound for gap in gaps),
        forward_transfer=mean(transfers, "transfer", no_transfer or "no reference run"),
    )


def _identity(trace: Trace) -> RunIdentity:
    known = trace.metadata
    seed = known.get("seed")

    def text(name: str) -> str | None:
        return None if known.get(name) is None else str(known[name])

    return RunIdentity(
        run_id=text("run_id"),
        algorithm_id=text("algorithm_id"),
        task=text("task"),
        seed=seed if seed is None or isinstance(seed, int) else str(seed),
        path=trace.path,
    )
