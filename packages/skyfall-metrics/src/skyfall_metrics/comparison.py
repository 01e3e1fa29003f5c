"""Families of runs side by side: seeds are the sample, tasks are the strata.

A family is an `algorithm_id`. Each family is summarized on each task and, where there are several tasks, over
all of them. Runs are put together only where they lived the same schedule; that a caller asked for anything
else stands in the warnings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.errors import ComparisonError, suggestion
from skyfall_metrics.measures import MEASURES, Better, Measure
from skyfall_metrics.scorecard import Scorecard
from skyfall_metrics.statistics import (
    Bootstrap,
    Interval,
    bootstrap_interval,
    improvement_interval,
    interquartile_mean,
    mean,
    probability_of_improvement,
)
from skyfall_metrics.trace import Note, counted
from skyfall_metrics.values import Value, plain

__all__ = [
    "COMPARISON_SCHEMA_VERSION",
    "Comparison",
    "Estimate",
    "FamilySummary",
    "Improvement",
    "Schedules",
    "compare",
    "comparison_schema",
]

COMPARISON_SCHEMA_VERSION = 1
UNNAMED = "unnamed"
"""Family or task of runs that do not say theirs."""

_MOST_NAMED = 5


class Schedules(str, Enum):
    """What to do about runs of one task that lived different schedules or lengths.

    `EQUAL` refuses to compare them. `ANY` compares them and warns.
    """

    EQUAL = "equal"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One measure over the runs of a family.

    Attributes:
        runs: Runs that have the measure.
        missing: Runs that do not, with `reasons`.
        mean: Mean over runs; with its percentile-bootstrap interval `mean_interval`.
        deviation: Sample standard deviation; None for a single run.
        interquartile_mean: Mean of the middle half; with `interquartile_interval`.
        reasons: Why runs lack it, or why there is no interval.
    """

    runs: int
    missing: int
    mean: float | None
    deviation: float | None
    interquartile_mean: float | None
    mean_interval: Interval | None
    interquartile_interval: Interval | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilySummary:
    """A family on one task, or over all tasks where `task` is None."""

    family: str
    task: str | None
    runs: int
    estimates: dict[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """How probably a run of `family` is better than a run of `other` on a measure, over `tasks`.

    Better follows the measure: for forgetting a lower number wins. Without a common task that has numbers of
    both, the probability is missing with its reason.
    """

    measure: str
    family: str
    other: str
    tasks: tuple[str, ...]
    probability: Value
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Families side by side.

    Attributes:
        bootstrap: How intervals were computed.
        families: Names, sorted.
        tasks: Names, sorted.
        summaries: Each family on each task, then over all tasks where there are several.
        improvements: Pairs of families, measure by measure.
        warnings: What must be known before the numbers are believed.
        schema_version: Of `to_dict()`.
    """

    bootstrap: Bootstrap
    families: tuple[str, ...]
    tasks: tuple[str, ...]
    summaries: tuple[FamilySummary, ...]
    improvements: tuple[Improvement, ...]
    warnings: tuple[Note, ...]
    schema_version: int = COMPARISON_SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-ready dicts, lists, strings and numbers."""
        return plain(self)


def comparison_schema() -> dict[str, Any]:
    """The JSON Schema of `Comparison.to_dict()`."""
    return msgspec.json.schema(Comparison)


def compare(
    cards: Iterable[Scorecard],
    *,
    bootstrap: Bootstrap | None = None,
    schedules: Schedules = Schedules.EQUAL,
    baseline: str | None = None,
) -> Comparison:
    """Put families of runs side by side. The order of `cards` changes nothing.

    Args:
        cards: Scored runs.
        bootstrap: Resamples, confidence and seed of the intervals.
        schedules: Whether runs of a task must have lived the same schedule.
        baseline: The family that every other is compared with; None compares all pairs.

    Raises:
        ComparisonError: No runs, an unknown baseline, or runs of a task with different schedules.
    """
    ordered = sorted(cards, key=_sort_key)
    if not ordered:
        raise ComparisonError("nothing to compare: no scored runs")
    bootstrap = bootstrap or Bootstrap()
    groups: dict[tuple[str, str], list[Scorecard]] = {}
    for card in ordered:
        groups.setdefault((_family(card), _task(card)), []).append(card)
    families = tuple(sorted({family for family, _ in groups}))
    tasks = tuple(sorted({task for _, task in groups}))
    summaries = [_summary(family, task, [cards], bootstrap) for (family, task), cards in groups.items()]
    if len(tasks) > 1:
        summaries += [_summary(family, None, _strata(groups, family), bootstrap) for family in families]
    return Comparison(
        bootstrap=bootstrap,
        families=families,
        tasks=tasks,
        summaries=tuple(summaries),
        improvements=tuple(
            _improvement(measure, family, other, groups, bootstrap)
            for family, other in _pairs(families, baseline)
            for measure in MEASURES
            if measure.better is not Better.NEITHER
        ),
        warnings=(*_schedule_notes(ordered, schedules), *_twin_notes(ordered)),
    )


def _sort_key(card: Scorecard) -> tuple[str, ...]:
    run = card.run
    return (_family(card), _task(card), str(run.seed).zfill(20), run.run_id or "", run.path or "")


def _family(card: Scorecard) -> str:
    return card.run.algorithm_id or UNNAMED


def _task(card: Scorecard) -> str:
    return card.run.task or UNNAMED


def _strata(groups: dict[tuple[str, str], list[Scorecard]], family: str) -> list[list[Scorecard]]:
    return [cards for (of_family, _), cards in groups.items() if of_family == family]


def _pairs(families: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(families, 2))
    if baseline not in families:
        raise ComparisonError(f"no family {baseline!r} among these runs; {suggestion(baseline, families)}")
    return [(family, baseline) for family in families if family != baseline]


def _summary(
    family: str, task: str | None, strata: Sequence[Sequence[Scorecard]], bootstrap: Bootstrap
) -> FamilySummary:
    return FamilySummary(
        family=family,
        task=task,
        runs=sum(map(len, strata)),
        estimates={measure.name: _estimate(measure, strata, bootstrap) for measure in MEASURES},
    )


def _estimate(measure: Measure, strata: Sequence[Sequence[Scorecard]], bootstrap: Bootstrap) -> Estimate:
    samples = [sample for cards in strata if len(sample := _numbers(measure, cards))]
    reasons = {card.measures[measure.name].reason for cards in strata for card in cards}
    found = sorted(reason for reason in reasons if reason is not None)
    runs = sum(map(len, samples))
    missing = sum(map(len, strata)) - runs
    if not runs:
        return Estimate(
            runs=0,
            missing=missing,
            mean=None,
            deviation=None,
            interquartile_mean=None,
            mean_interval=None,
            interquartile_interval=None,
            reasons=tuple(found),
        )
    together = np.sort(np.concatenate(samples))
    return Estimate(
        runs=runs,
        missing=missing,
        mean=float(mean(together)),
        deviation=float(together.std(ddof=1)) if runs > 1 else None,
        interquartile_mean=float(interquartile_mean(together)),
        mean_interval=bootstrap_interval(samples, mean, bootstrap),
        interquartile_interval=bootstrap_interval(samples, interquartile_mean, bootstrap),
        reasons=(*found, *(("a single run has no interval",) if runs == 1 else ())),
    )


def _numbers(measure: Measure, cards: Iterable[Scorecard]) -> NDArray[np.float64]:
    values = (card.measures[measure.name].value for card in cards)
    return np.array([value for value in values if value is not None], dtype=np.float64)


def _improvement(
    measure: Measure,
    family: str,
    other: str,
    groups: dict[tuple[str, str], list[Scorecard]],
    bootstrap: Bootstrap,
) -> Improvement:
    sign = 1.0 if measure.better is Better.HIGHER else -1.0
    pairs = {}
    for task in sorted({task for _, task in groups}):
        x, y = (sign * _numbers(measure, groups.get((name, task), [])) for name in (family, other))
        if len(x) and len(y):
            pairs[task] = (x, y)
    samples = list(pairs.values())
    missing = Value.missing(f"no task where runs of both {family!r} and {other!r} have this number")
    return Improvement(
        measure=measure.name,
        family=family,
        other=other,
        tasks=tuple(pairs),
        probability=Value(probability_of_improvement(samples)) if samples else missing,
        interval=improvement_interval(samples, bootstrap) if samples else None,
    )


def _schedule_notes(cards: Sequence[Scorecard], schedules: Schedules) -> list[Note]:
    """A note a task whose runs lived different schedules, or an error where that was not asked for."""
    notes = []
    for task in sorted(set(map(_task, cards))):
        of_task = [card for card in cards if _task(card) == task]
        lived = [_schedule(card) for card in of_task]
        usual, _ = Counter(lived).most_common(1)[0]
        odd = [card for card, schedule in zip(of_task, lived, strict=True) if schedule != usual]
        if not odd:
            continue
        model = next(card for card, schedule in zip(of_task, lived, strict=True) if schedule == usual)
        problem = (
            f"task {task!r}: {_named(odd)} did not live the schedule of the other "
            f"{len(of_task) - len(odd)} ({_life(model)})"
        )
        if schedules is Schedules.EQUAL:
            raise ComparisonError(f"{problem}; leave them out, or allow it (--allow-unequal)")
        notes.append(Note("schedules", problem))
    return notes


def _schedule(card: Scorecard) -> tuple[Any, ...]:
    return tuple(tuple((s.configuration, s.rows) for s in world.segments) for world in card.worlds)


def _named(cards: Sequence[Scorecard]) -> str:
    names = [f"{card.run.path or card.run.title()} ({_life(card)})" for card in cards[:_MOST_NAMED]]
    more = len(cards) - len(names)
    return ", ".join(names) + (f" and {counted(more, 'run')} more" if more else "")


def _life(card: Scorecard) -> str:
    return f"{counted(card.rows, 'row')} in {counted(card.segments, 'segment')}"


def _twin_notes(cards: Sequence[Scorecard]) -> list[Note]:
    """A note for every two runs that say they are the same one: both count, and one may be a copy."""
    seen: dict[tuple[Any, ...], Scorecard] = {}
    notes = []
    for card in cards:
        run = card.run
        identity = (run.run_id, run.algorithm_id, run.task, run.seed)
        if run.run_id is not None and identity in seen:
            first = seen[identity].run.path or seen[identity].run.title()
            notes.append(
                Note("same_run", f"{run.path or run.title()} says it is the same run as {first}; both count")
            )
        seen.setdefault(identity, card)
    return notes
