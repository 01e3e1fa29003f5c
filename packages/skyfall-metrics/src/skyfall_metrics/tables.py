"""Scorecards as tables for people: a missing number is a dash with a footnote that says why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from skyfall_metrics.measures import HEADLINES, MEASURES, Better
from skyfall_metrics.scorecard import ConfigurationSummary, Scorecard
from skyfall_metrics.trace import counted
from skyfall_metrics.values import Value

__all__ = ["Footnotes", "formatted", "scorecard_table", "summary_table"]

_MARKS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
"""Raised letters, because a raised digit behind a number reads as a power."""


class Footnotes:
    """Marked reasons: equal reasons share a mark."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def cell(self, value: Value) -> str:
        """The number, or a dash with its footnote's mark."""
        return f"—{self.mark(value.reason or '')}" if value.value is None else formatted(value.value)

    def mark(self, reason: str) -> str:
        """The mark of a footnote, made on first use."""
        place = len(self._marks)
        letter = _MARKS[place % len(_MARKS)] * (1 + place // len(_MARKS))
        return self._marks.setdefault(reason, letter)

    def lines(self) -> list[Text]:
        """The footnotes themselves."""
        return [Text(f"{mark} {reason}", style="dim") for reason, mark in self._marks.items()]


def formatted(number: float | None) -> str:
    """Four significant digits, thousands as such; a dash for nothing."""
    if number is None:
        return "—"
    if 1000 <= abs(number) < 1e9:
        return f"{number:,.0f}"
    return f"{number:.4g}"


def scorecard_table(card: Scorecard) -> list[RenderableType]:
    """One run in full: a heading, the measures, the configurations, the footnotes."""
    notes = Footnotes()
    return [
        Text(card.run.title(), style="bold"),
        Text(_life(card)),
        Text(_scored_with(card), style="dim"),
        _measure_table(card, notes),
        _configuration_table(card.configurations, notes),
        *notes.lines(),
    ]


def summary_table(cards: Sequence[Scorecard]) -> list[RenderableType]:
    """Several runs, a line each under their family and task, with the six metrics' first numbers."""
    notes = Footnotes()
    table = _table("Run", *(_SHORT[name] for name in HEADLINES))
    for (algorithm, task), group in groupby(sorted(cards, key=_family), key=_family):
        heading = " · ".join(part for part in (algorithm, task) if part) or "unnamed family"
        table.add_section()
        table.add_row(heading, style="bold")
        for card in group:
            cells = [notes.cell(card.measures[name]) for name in HEADLINES]
            table.add_row(f"  {_within_family(card)}", *cells)
    windows = sorted({card.parameters.window for card in cards})
    settings = f"window {', '.join(map(str, windows))}; better is {_DIRECTIONS}"
    return [table, Text(settings, style="dim"), *notes.lines()]


def _family(card: Scorecard) -> tuple[str, str]:
    return card.run.algorithm_id or "", card.run.task or ""


def _within_family(card: Scorecard) -> str:
    run = card.run
    parts = [run.run_id, None if run.seed is None else f"seed {run.seed}"]
    return " · ".join(part for part in parts if part) or run.path or "unnamed run"


_SHORT = {
    "reward": "Reward",
    "adaptation_speed": "Adapt.",
    "forgetting": "Forget.",
    "recovery_steps": "Recov.",
    "stability": "Stab.",
    "gap": "Gap",
}
_DIRECTIONS = "higher for reward and adaptation speed, lower for the rest"
_OF_OTHER_TRACES = ("forward_transfer", "rank_first", "rank_last", "rank_slope", "rank_ratio")
"""Measures that need more than every trace has; a table leaves them out where they do not exist."""


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", overflow="fold")
    return table


def _life(card: Scorecard) -> str:
    parts = [counted(card.rows, "row"), counted(card.segments, "segment"), counted(card.shifts, "shift")]
    parts.append(counted(card.revisits, "revisit"))
    if len(card.worlds) > 1:
        parts.insert(0, counted(len(card.worlds), "world"))
    if card.missing_rewards:
        parts.append(counted(card.missing_rewards, "missing reward"))
    return ", ".join(parts)


def _scored_with(card: Scorecard) -> str:
    used = card.parameters
    return (
        f"window {used.window} ({used.window_chosen}), hold {used.hold} ({used.hold_chosen}), "
        f"settled {used.settled_fraction:g}, adapted {used.adaptation_level:g}, "
        f"recovered {used.recovery_level:g}"
    )


def _measure_table(card: Scorecard, notes: Footnotes) -> Table:
    table = _table("Metric", "Value")
    table.add_column("Unit")
    table.add_column("Better")
    remarks = _remarks(card)
    for measure in MEASURES:
        value = card.measures[measure.name]
        if value.value is None and measure.name in _OF_OTHER_TRACES:
            continue
        headline = measure.name in HEADLINES
        title = measure.title if headline or measure.name in _OF_OTHER_TRACES else f"  {measure.title}"
        if measure.name in remarks and value.value is not None:
            title += notes.mark(remarks[measure.name])
        better = "" if measure.better is Better.NEITHER else measure.better.value
        table.add_row(title, notes.cell(value), measure.unit, better, style="bold" if headline else "")
    return table


def _remarks(card: Scorecard) -> dict[str, str]:
    """What must be read beside a number: how many shifts it does not really describe."""
    adaptation = [world.adaptation for world in card.worlds]
    recovery = [world.recovery for world in card.worlds]
    kinds = {
        "adaptation_speed": (
            ("had nothing to climb (speed 1)", sum(result.no_rise for result in adaptation)),
            ("never adapted (speed 0)", sum(result.censored for result in adaptation)),
            ("left out for missing rewards", sum(result.undefined for result in adaptation)),
        ),
        "recovery_steps": (
            (
                "never recovered, counted with their whole segment",
                sum(result.censored for result in recovery),
            ),
            ("left out for missing rewards", sum(result.undefined for result in recovery)),
        ),
        "gap": (("above their bound: the bound is wrong", sum(c.above_bound for c in card.configurations)),),
    }
    nouns = {"gap": "configuration"}
    remarks = {}
    for name, counts in kinds.items():
        noun = nouns.get(name, "shift")
        texts = [f"{counted(count, noun)} {what}" for what, count in counts if count]
        if texts:
            remarks[name] = "; ".join(texts)
    return remarks


def _configuration_table(configurations: Iterable[ConfigurationSummary], notes: Footnotes) -> Table:
    table = _table("Configuration", "Rows", "Mean", "SD", "Settled", "Forgot", "Bound", "Gap")
    for each in configurations:
        bound = formatted(each.bound) + (
            notes.mark(_BOUND_SOURCES[each.bound_source]) if each.bound_source else ""
        )
        table.add_row(
            each.configuration,
            f"{each.rows:,}",
            *map(formatted, (each.mean, each.deviation, each.settled)),
            notes.cell(each.forgetting),
            bound,
            notes.cell(each.gap),
        )
    return table


_BOUND_SOURCES = {
    "given": "bound as given",
    "trace": "bound from the run's metadata",
    "rows": "bound from the rows",
    "observed": "bound observed: the best settled level among these runs",
}
