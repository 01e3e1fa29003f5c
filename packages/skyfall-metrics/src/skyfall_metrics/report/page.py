"""The report as one HTML file that needs nothing but itself.

Style and script are inside, figures are SVG in the text, and a content security policy admits exactly this
style and this script by their digests: even a label that found a way into the page could neither run nor
fetch anything. The same runs give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from skyfall_metrics import __version__
from skyfall_metrics.report.contents import Report
from skyfall_metrics.report.drawing import draw, draw_key
from skyfall_metrics.report.figures import ABSENCES, all_figures
from skyfall_metrics.report.lives import Family
from skyfall_metrics.report.markup import Markup, element, joined, trusted
from skyfall_metrics.report.palette import DARK, LIGHT, css_variables
from skyfall_metrics.report.prose import life_in_words, method, notices
from skyfall_metrics.report.scene import Figure
from skyfall_metrics.report.table import configuration_table, metrics_table, run_table

__all__ = ["render_page"]

_WIDE = 960.0
_NARROW = 350.0


def render_page(report: Report) -> str:
    """The whole document."""
    families, title = report.families, report.title
    figures = all_figures(report)
    behind = {
        "configurations": configuration_table(families),
        "metrics": metrics_table(report),
    }
    sections = [
        _section(name, figure, behind.get(name)) if figure else _absence(name)
        for name, figure in figures.items()
    ]
    titles = {name: figure.title if figure else ABSENCES[name][0] for name, figure in figures.items()}
    body = element(
        "body",
        None,
        element(
            "header",
            None,
            element("h1", None, title),
            element("p", {"class": "lead"}, life_in_words(families)),
            _contents(titles | {"runs": "Every run", "method": "How it was scored"}),
        ),
        element("main", None, _notices(report), *sections, _runs(families), _method(report)),
        element("footer", None, f"skyfall-metrics {__version__}. This file fetches nothing."),
        element("div", {"id": "tip", "hidden": "hidden", "aria-hidden": "true"}),
        element("script", None, trusted(_script())),
    )
    return f"<!DOCTYPE html>\n{element('html', {'lang': 'en'}, _head(title), body)}\n"


def _head(title: str) -> Markup:
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"
    )
    return element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("title", None, title),
        element("style", None, trusted(style)),
    )


def _style() -> str:
    return (
        f":root{{{css_variables(LIGHT)}}}\n"
        f"@media (prefers-color-scheme: dark){{:root{{{css_variables(DARK)}}}}}\n"
        f"{_asset('report.css')}"
    )


def _script() -> str:
    return _asset("report.js")


def _asset(name: str) -> str:
    return resources.files("skyfall_metrics.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _contents(titles: dict[str, str]) -> Markup:
    links = [element("li", None, element("a", {"href": f"#{name}"}, title)) for name, title in titles.items()]
    return element("nav", {"aria-label": "Sections"}, element("ul", None, *links))


def _section(name: str, figure: Figure, numbers: Markup | None) -> Markup:
    legend = [element("li", None, draw_key(key), key.text) for key in figure.legend]
    behind = element("details", None, element("summary", None, "The numbers"), numbers) if numbers else ""
    return element(
        "section",
        {"id": name, "aria-labelledby": f"{name}-heading"},
        element("h2", {"id": f"{name}-heading"}, figure.title),
        element(
            "figure",
            None,
            element("ul", {"class": "legend"}, *legend) if legend else "",
            draw(figure, _WIDE, variant="wide"),
            draw(figure, _NARROW, variant="narrow"),
            element("figcaption", None, figure.caption),
        ),
        behind,
    )


def _absence(name: str) -> Markup:
    title, reason = ABSENCES[name]
    return element("section", {"id": name}, element("h2", None, title), element("p", None, reason))


def _notices(report: Report) -> Markup:
    remarks = notices(report)
    if not remarks:
        return Markup()
    items = [element("li", None, remark) for remark in remarks]
    return element("ul", {"class": "remarks", "aria-label": "Read this beside the numbers"}, *items)


def _runs(families: Sequence[Family]) -> Markup:
    return element("section", {"id": "runs"}, element("h2", None, "Every run"), run_table(families))


def _method(report: Report) -> Markup:
    settings, definitions = method(report)
    terms = [
        joined(element("dt", None, term), element("dd", None, text)) for term, text in definitions.items()
    ]
    return element(
        "section",
        {"id": "method"},
        element("h2", None, "How it was scored"),
        element("p", None, settings),
        element(
            "details", None, element("summary", None, "What the six metrics are"), element("dl", None, *terms)
        ),
    )
