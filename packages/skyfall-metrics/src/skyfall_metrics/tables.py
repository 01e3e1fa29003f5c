"""Scorecards and comparisons as tables: what does not exist is a dash with a footnote that says why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import fmean

from skyfall_metrics.comparison import Comparison, Estimate, FamilySummary, Improvement
from skyfall_metrics.measures import HEADLINES, MEASURES, Better, Measure
from skyfall_metrics.scorecard import ConfigurationSummary, Scorecard
from skyfall_metrics.sheets import Footnotes, Sheet, formatted
from skyfall_metrics.statistics import Interval
from skyfall_metrics.trace import counted
from skyfall_metrics.values import Value

__all__ = [
    "DIRECTIONS",
    "comparison_sheets",
    "configuration_sheet",
    "improvement_sheet",
    "measure_sheet",
    "run_lines",
    "segment_sheet",
    "summary_sheet",
]

DIRECTIONS = "better is higher for reward and adaptation speed, lower for the rest"

_SHORT = {
    "reward": "Reward",
    "adaptation_speed": "Adapt.",
    "forgetting": "Forget.",
    "recovery_steps": "Recov.",
    "stability": "Stab.",
    "gap": "Gap",
}
_MOST_SEGMENTS = 24
"""Segments that a table lists; a longer life is in the JSON."""

_OPTIONAL = ("forward_transfer", "rank_first", "rank_last", "rank_slope", "rank_ratio")
"""Measures that need more than every trace has; a table leaves them out where no run has them."""

_BOUND_SOURCES = {
    "given": "bound as given",
    "trace": "bound from the run's metadata",
    "rows": "bound from the rows",
    "observed": "bound observed: the best settled level among these runs",
}


def run_lines(card: Scorecard) -> list[str]:
    """What a run is, how long it lived, and how it was scored."""
    parts = [counted(card.rows, "row"), counted(card.segments, "segment"), counted(card.shifts, "shift")]
    parts.append(counted(card.revisits, "revisit"))
    if len(card.worlds) > 1:
        parts.insert(0, counted(len(card.worlds), "world"))
    if card.missing_rewards:
        parts.append(counted(card.missing_rewards, "missing reward"))
    used = card.parameters
    settings = (
        f"window {used.window} ({used.window_chosen}), hold {used.hold} ({used.hold_chosen}), "
        f"settled {used.settled_fraction:g}, adapted {used.adaptation_level:g}, "
        f"recovered {used.recovery_level:g}"
    )
    return [card.run.title(), ", ".join(parts), settings]


def measure_sheet(card: Scorecard, notes: Footnotes) -> Sheet:
    """Every measure of one run."""
    sheet = Sheet(("Metric", "Value", "Unit", "Better"), frozenset({1}))
    remarks = _remarks(card)
    for measure in MEASURES:
        value = card.measures[measure.name]
        if value.value is None and measure.name in _OPTIONAL:
            continue
        headline = "headline" if measure.name in HEADLINES else ""
        title = measure.title if headline or measure.name in _OPTIONAL else f"  {measure.title}"
        if measure.name in remarks and value.value is not None:
            title += notes.mark(remarks[measure.name])
        better = "" if measure.better is Better.NEITHER else measure.better.value
        sheet.add(title, notes.cell(value), measure.unit, better, heading=headline)
    return sheet


def configuration_sheet(configurations: Iterable[ConfigurationSummary], notes: Footnotes) -> Sheet:
    """Each configuration of one run."""
    sheet = Sheet(
        ("Configuration", "Rows", "Mean", "SD", "Settled", "Forgot", "Bound", "Gap"), frozenset(range(1, 8))
    )
    for each in configurations:
        source = notes.mark(_BOUND_SOURCES[each.bound_source]) if each.bound_source else ""
        sheet.add(
            each.configuration,
            f"{each.rows:,}",
            *map(formatted, (each.mean, each.deviation, each.settled)),
            notes.cell(each.forgetting),
            formatted(each.bound) + source,
            notes.cell(each.gap),
        )
    return sheet


def segment_sheet(card: Scorecard) -> Sheet | None:
    """A life in the order it was lived: each segment under its own label, the mean over worlds.

    What a configuration's row sums up, a revisit's label keeps apart. None where the rows by
    configuration say it all, where worlds lived through different things, and for a very long life.
    """
    lives = [world.segments for world in card.worlds]
    plans = {tuple((one.label, one.at_step, one.rows) for one in life) for life in lives}
    if not card.revisits or len(plans) > 1 or len(lives[0]) > _MOST_SEGMENTS:
        return None
    sheet = Sheet(("Segment", "From", "Rows", "Mean", "Opening", "Settled"), frozenset(range(1, 6)))
    for same in zip(*lives, strict=True):
        first = same[0]
        again = f" (again {first.configuration})" if first.label != first.configuration else ""
        levels = (_mean([getattr(one, name) for one in same]) for name in ("mean", "opening", "settled"))
        rows = sum(one.rows for one in same)
        sheet.add(first.label + again, f"{first.at_step:,}", f"{rows:,}", *map(formatted, levels))
    return sheet


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of those that exist."""
    present = [value for value in values if value is not None]
    return fmean(present) if present else None


def summary_sheet(cards: Sequence[Scorecard], notes: Footnotes) -> Sheet:
    """Several runs, a line each under their family and task, with the six metrics' first numbers."""
    sheet = Sheet(("Run", *(_SHORT[name] for name in HEADLINES)), frozenset(range(1, 7)))
    for (algorithm, task), group in groupby(sorted(cards, key=_family), key=_family):
        heading = " · ".join(part for part in (algorithm, task) if part) or "unnamed family"
        sheet.add(heading, heading="family", group="family")
        for card in group:
            cells = [notes.cell(card.measures[name]) for name in HEADLINES]
            sheet.add(f"  {_within_family(card)}", *cells)
    return sheet


def comparison_sheets(
    comparison: Comparison, notes: Footnotes, names: Sequence[str] = HEADLINES
) -> list[Sheet]:
    """Each task, then all of them together: families beneath each other, measure by measure."""
    sheets = []
    for task in dict.fromkeys(summary.task for summary in comparison.summaries):
        summaries = [summary for summary in comparison.summaries if summary.task == task]
        sheet = Sheet(
            ("Family", "n", "Mean", "SD", "IQM", _interval_heading(comparison)), frozenset(range(1, 6))
        )
        sheet.title = "All tasks" if task is None else f"Task {task}"
        for measure in _shown(names, summaries):
            sheet.add(f"{measure.title} {_arrow(measure)}".rstrip(), heading="measure", group="measure")
            for summary in summaries:
                cells = _estimate_cells(summary, summary.estimates[measure.name], notes)
                sheet.add(f"  {summary.family}", *cells)
        sheets.append(sheet)
    return sheets


def improvement_sheet(comparison: Comparison, notes: Footnotes, names: Sequence[str] = HEADLINES) -> Sheet:
    """How probably one family is better than another."""
    sheet = Sheet(("Better", "Probability", _interval_heading(comparison)), frozenset({1, 2}))
    sheet.title = "Probability of improvement"
    measures = _shown(names, comparison.summaries)
    found = {(each.family, each.other, each.measure): each for each in comparison.improvements}
    for family, other in dict.fromkeys((each.family, each.other) for each in comparison.improvements):
        sheet.add(f"{family} over {other}", heading="pair", group="pair")
        for measure in measures:
            if (family, other, measure.name) in found:
                cells = _improvement_cells(found[family, other, measure.name], notes)
                sheet.add(f"  {measure.title}", *cells)
    return sheet


def _improvement_cells(each: Improvement, notes: Footnotes) -> tuple[str, str]:
    no_interval = Value.missing("a single run of each has no interval")
    interval = "" if each.probability.value is None else _interval(each.interval, no_interval, notes)
    return notes.cell(each.probability), interval


def _estimate_cells(summary: FamilySummary, estimate: Estimate, notes: Footnotes) -> tuple[str, ...]:
    reasons = "; ".join(estimate.reasons)
    if not estimate.runs:
        return "0", f"—{notes.mark(reasons)}", "", "", ""
    count = f"{estimate.runs}"
    if estimate.missing:
        lacking = f"{counted(estimate.missing, 'run')} of {summary.family} without this number: {reasons}"
        count += notes.mark(lacking)
    single = Value.missing("a single run has no interval")
    return (
        count,
        formatted(estimate.mean),
        "" if estimate.deviation is None else formatted(estimate.deviation),
        formatted(estimate.interquartile_mean),
        _interval(estimate.interquartile_interval, single, notes),
    )


def _interval(interval: Interval | None, missing: Value, notes: Footnotes) -> str:
    return (
        notes.cell(missing) if interval is None else f"{formatted(interval.low)} – {formatted(interval.high)}"
    )


def _interval_heading(comparison: Comparison) -> str:
    return f"{100 * comparison.bootstrap.confidence:g} % interval"


def _shown(names: Sequence[str], summaries: Iterable[FamilySummary]) -> list[Measure]:
    """The measures in question, optional ones only where some run has them."""
    present = {name for summary in summaries for name, estimate in summary.estimates.items() if estimate.runs}
    return [m for m in MEASURES if m.name in names and (m.name not in _OPTIONAL or m.name in present)]


def _arrow(measure: Measure) -> str:
    return {Better.HIGHER: "↑", Better.LOWER: "↓", Better.NEITHER: ""}[measure.better]


def _family(card: Scorecard) -> tuple[str, str]:
    return card.run.algorithm_id or "", card.run.task or ""


def _within_family(card: Scorecard) -> str:
    run = card.run
    parts = [run.run_id, None if run.seed is None else f"seed {run.seed}"]
    return " · ".join(part for part in parts if part) or run.path or "unnamed run"


def _remarks(card: Scorecard) -> dict[str, str]:
    """What must be read beside a number: how many shifts it does not really describe."""
    adaptation = [world.adaptation for world in card.worlds]
    recovery = [world.recovery for world in card.worlds]
    left_out = "left out for missing rewards"
    counts = {
        "adaptation_speed": (
            ("shift", "had nothing to climb (speed 1)", sum(result.no_rise for result in adaptation)),
            ("shift", "never adapted (speed 0)", sum(result.censored for result in adaptation)),
            ("shift", left_out, sum(result.undefined for result in adaptation)),
        ),
        "recovery_steps": (
            ("shift", "never recovered, counted with the whole segment", sum(r.censored for r in recovery)),
            ("shift", left_out, sum(result.undefined for result in recovery)),
        ),
        "gap": (
            (
                "configuration",
                "above the bound: it is set too low",
                sum(c.above_bound for c in card.configurations),
            ),
            ("configuration", "without a gap", sum(c.gap.value is None for c in card.configurations)),
        ),
    }
    texts = {
        name: "; ".join(f"{counted(count, noun)} {what}" for noun, what, count in kinds if count)
        for name, kinds in counts.items()
    }
    return {name: text for name, text in texts.items() if text}
