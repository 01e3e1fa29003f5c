"""A table before it is drawn: one content for the terminal and for LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from skyfall_metrics.values import Value

__all__ = ["Footnotes", "Row", "Sheet", "draw_latex", "draw_rich", "formatted"]

_MARKS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
"""Raised letters, because a raised digit behind a number reads as a power."""

_NARROWEST = 13
"""Columns of a terminal that text keeps, however narrow the terminal is."""

_PLAIN = dict(zip(_MARKS, "abcdefghijklmnoprstuvwxyz", strict=True))
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "—": "---",
    "–": "--",
    "…": r"\ldots{}",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
} | {mark: rf"\textsuperscript{{{letter}}}" for mark, letter in _PLAIN.items()}


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

    def lines(self) -> list[str]:
        """The footnotes themselves."""
        return [f"{mark} {reason}" for reason, mark in self._marks.items()]


@dataclass(frozen=True, slots=True)
class Row:
    """One line; `is_heading` stands out, `begins_group` is set apart from the line above."""

    cells: tuple[str, ...]
    is_heading: bool = False
    begins_group: bool = False


@dataclass(slots=True)
class Sheet:
    """A table: `columns` of which those in `numeric` are aligned right, and its rows.

    Attributes:
        columns: Headings.
        numeric: Positions of the columns with numbers.
        title: What it shows.
        rows: In order.
    """

    columns: tuple[str, ...]
    numeric: frozenset[int]
    title: str = ""
    rows: list[Row] = field(default_factory=list)

    def add(self, *cells: str, heading: str = "", group: str = "") -> None:
        """Append a line; any text as `heading` makes it stand out, as `group` sets it apart."""
        self.rows.append(Row(cells, bool(heading), bool(group)))


def formatted(number: float | None) -> str:
    """Four significant digits, thousands as such; a dash for nothing."""
    if number is None:
        return "—"
    if 1000 <= abs(number) < 1e9:
        return f"{number:,.0f}"
    return f"{number:.4g}"


def draw_rich(sheet: Sheet) -> RenderableType:
    """A sheet for a terminal."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=sheet.title or None, title_justify="left")
    for place, name in enumerate(sheet.columns):
        if place in sheet.numeric:
            longest = max(len(row.cells[place]) for row in sheet.rows if len(row.cells) > place)
            table.add_column(name, justify="right", no_wrap=True, min_width=longest)
        else:
            table.add_column(name, overflow="fold", min_width=_NARROWEST)
    for row in sheet.rows:
        if row.begins_group:
            table.add_section()
        table.add_row(*map(Text, row.cells), style="bold" if row.is_heading else "")
    return table


def draw_latex(sheets: Iterable[Sheet], footnotes: Footnotes) -> str:
    """Sheets as LaTeX tables (package booktabs), footnotes beneath the last one."""
    parts = [_latex_table(sheet) for sheet in sheets]
    notes = [rf"{_escaped(line)}\\" for line in footnotes.lines()]
    return "\n\n".join([*parts, "\n".join([r"\footnotesize", *notes])] if notes else parts)


def _latex_table(sheet: Sheet) -> str:
    columns = "".join("r" if place in sheet.numeric else "l" for place in range(len(sheet.columns)))
    lines = [f"% {sheet.title}"] if sheet.title else []
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _latex_row(sheet.columns), r"\midrule"]
    for place, row in enumerate(sheet.rows):
        if row.begins_group and place:
            lines.append(r"\addlinespace")
        lines.append(_latex_row(row.cells + ("",) * (len(sheet.columns) - len(row.cells))))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(_escaped(cell.strip()) for cell in cells) + r" \\"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
