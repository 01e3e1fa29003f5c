"""Tables of the page: the one that sorts, and the numbers behind each figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skyfall_metrics.comparison import Estimate
from skyfall_metrics.measures import Better
from skyfall_metrics.report.contents import Report
from skyfall_metrics.report.levels import headline_measures
from skyfall_metrics.report.lives import Family, configurations_of
from skyfall_metrics.report.markup import Markup, element, joined
from skyfall_metrics.report.summaries import BOUND_SOURCES, configuration_level
from skyfall_metrics.sheets import formatted
from skyfall_metrics.values import Value, mean_of

__all__ = ["Notes", "configuration_table", "metrics_table", "run_table"]


class Notes:
    """Numbered footnotes of one table; equal reasons share a number."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: dict[str, int] = {}

    def reference(self, reason: str) -> Markup:
        """A raised number that leads to the footnote."""
        number = self._numbers.setdefault(reason, len(self._numbers) + 1)
        link = element(
            "a", {"href": f"#{self._name}-note-{number}", "aria-label": f"footnote {number}"}, str(number)
        )
        return element("sup", None, link)

    def listing(self) -> Markup:
        """The footnotes."""
        if not self._numbers:
            return Markup()
        items = [
            element("li", {"id": f"{self._name}-note-{number}"}, reason)
            for reason, number in self._numbers.items()
        ]
        return element("ol", {"class": "notes"}, *items)


@dataclass(frozen=True, slots=True)
class _Cell:
    shown: Markup
    sort: str
    numeric: bool = True


def run_table(families: Sequence[Family]) -> Markup:
    """Every run with its six numbers; the headings sort."""
    notes = Notes("runs")
    several = len({card.run.task for family in families for card in family.cards}) > 1
    headings = ["Algorithm", *(["Task"] if several else []), "Seed", "Run"]
    numeric = [False] * (len(headings) - 2) + [True, False]
    measures = headline_measures()
    arrows = {Better.HIGHER: " ↑", Better.LOWER: " ↓"}
    headings += [measure.title + arrows.get(measure.better, "") for measure in measures]
    rows = []
    for card in (card for family in families for card in family.cards):
        run = card.run
        words = [run.algorithm_id or "unnamed", *([run.task or "—"] if several else [])]
        cells = [_word(word) for word in words]
        cells += [_word("—" if run.seed is None else str(run.seed)), _word(run.run_id or run.path or "—")]
        cells += [_number(card.measures[measure.name], notes) for measure in measures]
        rows.append(cells)
    numeric += [True] * len(measures)
    table = _table("Runs", headings, rows, sortable=numeric)
    return joined(_scrolled("Runs, with the six metrics", table), notes.listing())


def configuration_table(families: Sequence[Family]) -> Markup:
    """The numbers behind the bars: per configuration and family, means over runs."""
    notes = Notes("configurations")
    headings = ["Configuration", "Algorithm", "Runs", "Mean", "SD over runs", "Settled", "Bound", "Gap"]
    rows = []
    for name in configurations_of(families):
        for family in families:
            level = configuration_level(family, name)
            if level is None:
                continue
            bound = mean_of(level.bounds, f"no bound for {name!r}")
            remark = "; ".join(BOUND_SOURCES[source] for source in level.sources)
            cells = [_word(name), _word(family.name), _count(level.runs)]
            cells += [_number(value, notes) for value in (level.mean, level.deviation, level.settled)]
            rows.append([*cells, _number(bound, notes, remark), _number(level.gap, notes)])
    return joined(_scrolled("Configurations", _table("Configurations", headings, rows)), notes.listing())


def metrics_table(report: Report) -> Markup:
    """The numbers behind the intervals: per metric and family."""
    notes = Notes("metrics")
    level = f"{report.bootstrap.confidence:.0%}"
    headings = ["Metric", "Algorithm", "Runs", "Mean", "SD", "IQM", f"{level} low", f"{level} high"]
    rows = [
        [
            _word(measure.title),
            _word(family.name),
            *_estimate_cells(report.estimate(family, measure.name), notes),
        ]
        for measure in headline_measures()
        for family in report.families
    ]
    return joined(
        _scrolled("The six metrics by family", _table("The six metrics", headings, rows)), notes.listing()
    )


def _estimate_cells(estimate: Estimate, notes: Notes) -> list[_Cell]:
    interval = estimate.interquartile_interval
    numbers = (
        estimate.mean,
        estimate.deviation,
        estimate.interquartile_mean,
        interval.low if interval else None,
        interval.high if interval else None,
    )
    reason = "; ".join(estimate.reasons)
    return [_count(estimate.runs), *(_number(_value(number, reason), notes) for number in numbers)]


def _value(number: float | None, reason: str) -> Value:
    return Value.missing(reason) if number is None else Value(number)


def _count(number: int) -> _Cell:
    return _Cell(joined(f"{number:,}"), str(number))


def _word(text: str) -> _Cell:
    return _Cell(joined(text), text, numeric=False)


def _number(value: Value, notes: Notes, remark: str = "") -> _Cell:
    if value.value is None:
        return _Cell(joined("—", notes.reference(value.reason or "not known")), "")
    raised = notes.reference(remark) if remark else ""
    return _Cell(joined(formatted(value.value), raised), repr(value.value))


def _table(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[_Cell]], *, sortable: Sequence[bool] = ()
) -> Markup:
    kinds = [bool(rows) and rows[0][k].numeric for k in range(len(headings))]
    head = [
        _heading(text, numeric=kinds[k], sorts_numbers=sortable[k] if sortable else None)
        for k, text in enumerate(headings)
    ]
    body = [element("tr", None, *(_body_cell(cell) for cell in row)) for row in rows]
    return element(
        "table",
        {"class": "sortable" if sortable else None},
        element("caption", None, caption),
        element("thead", None, element("tr", None, *head)),
        element("tbody", None, *body),
    )


def _heading(text: str, *, numeric: bool, sorts_numbers: bool | None) -> Markup:
    attributes: dict[str, object] = {"scope": "col", "class": "number" if numeric else None}
    if sorts_numbers is None:
        return element("th", attributes, text)
    attributes |= {"aria-sort": "none", "data-kind": "number" if sorts_numbers else "text"}
    return element("th", attributes, element("button", {"type": "button"}, text))


def _body_cell(cell: _Cell) -> Markup:
    return element("td", {"data-value": cell.sort, "class": "number" if cell.numeric else None}, cell.shown)


def _scrolled(name: str, table: Markup) -> Markup:
    """A table that scrolls by itself where the page is too narrow, reachable from the keyboard."""
    return element("div", {"class": "scroll", "role": "region", "aria-label": name, "tabindex": 0}, table)
