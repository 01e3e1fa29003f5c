"""Figures of levels: reward per configuration with bounds, the six metrics with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from skyfall_metrics.comparison import Estimate
from skyfall_metrics.measures import HEADLINES, MEASURES, Better, Measure
from skyfall_metrics.report.contents import Report
from skyfall_metrics.report.lives import Family, configurations_of
from skyfall_metrics.report.palette import series_color
from skyfall_metrics.report.scales import extent
from skyfall_metrics.report.scene import Axis, Box, Figure, Key, Layer, Line, Mark, Panel, Shape, Words
from skyfall_metrics.report.summaries import configuration_level
from skyfall_metrics.sheets import formatted

__all__ = ["configuration_figure", "headline_measures", "metrics_figure"]

_BAR = 20.0
"""Height of a bar with its air, in pixels."""


def headline_measures() -> list[Measure]:
    """The six metrics' first numbers, in order."""
    by_name = {measure.name: measure for measure in MEASURES}
    return [by_name[name] for name in HEADLINES]


def configuration_figure(families: Sequence[Family]) -> Figure:
    """Mean reward under each configuration: a bar a family, a dot a run, a line for the upper bound."""
    names = configurations_of(families)
    layers: list[Layer] = []
    reached = [0.0]
    told = []
    for row, name in enumerate(names):
        of_row, values, words = _configuration_row(families, row, name)
        layers += of_row
        reached += values
        told.append(words)
    low, high = extent(reached)
    layers.append(Line(x=np.zeros(2), y=np.array([-0.5, len(names) - 0.5]), color="muted", width=1.0))
    sources = sorted(
        {c.bound_source for f in families for card in f.cards for c in card.configurations if c.bound_source}
    )
    known_as = "upper bound, observed among these runs" if "observed" in sources else "upper bound"
    bound_key = (Key(text=known_as, color="ink", shape=Shape.STROKE),) if sources else ()
    return Figure(
        name="configurations",
        title="Reward per configuration",
        description=" ".join(told),
        caption="Bars: mean over runs of the mean reward under a configuration, all its visits together; "
        "dots: single runs." + ("" if sources else " No upper bounds are known."),
        panels=(
            Panel(
                title="",
                x=Axis(low=low, high=high, title="reward per step"),
                y=Axis.of_names(names, downward=True),
                layers=tuple(layers),
                height=len(names) * (_BAR * len(families) + 14),
            ),
        ),
        legend=(
            *(Key(text=f.name, color=series_color(k), shape=Shape.PATCH) for k, f in enumerate(families)),
            *bound_key,
        ),
    )


def metrics_figure(report: Report) -> Figure:
    """The six metrics: interquartile mean over runs with its interval, and every run as a dot."""
    measures = headline_measures()
    bootstrap = report.bootstrap
    told = [
        f"{measure.title}: "
        + "; ".join(f"{f.name} {_estimate_text(report.estimate(f, measure.name))}" for f in report.families)
        + "."
        for measure in measures
    ]
    return Figure(
        name="metrics",
        title="The six metrics",
        description=" ".join(told),
        caption=f"Diamond: interquartile mean over runs; bar: {bootstrap.confidence:.0%} bootstrap "
        f"interval ({bootstrap.resamples:,} resamples); dots: single runs. A single run has no interval.",
        panels=tuple(_metric_panel(measure, report) for measure in measures),
        columns=2,
    )


def _configuration_row(
    families: Sequence[Family], row: int, name: str
) -> tuple[list[Layer], list[float], str]:
    width = 0.8 / len(families)
    layers: list[Layer] = []
    values: list[float] = []
    words: list[str] = []
    bounds: list[float] = []
    for index, family in enumerate(families):
        level = configuration_level(family, name)
        bounds += level.bounds if level else ()
        if level is None or level.mean.value is None:
            words.append(f"{family.name} —")
            continue
        mean, means = level.mean.value, level.means
        top = row - 0.4 + index * width
        text = f"{family.name} {formatted(mean)}"
        layers.append(
            Box(
                x0=min(0.0, mean),
                x1=max(0.0, mean),
                y0=top + 0.08 * width,
                y1=top + 0.92 * width,
                color=series_color(index),
                opacity=0.8,
                tip=f"{name} · {text}",
            )
        )
        if len(means) > 1:
            layers += [
                Mark(x=value, y=top + width / 2, color="ink", tip=f"{family.name}: {formatted(value)}")
                for value in means
            ]
        values += means
        words.append(text)
    for bound in sorted(set(bounds)):
        layers.append(Line(x=np.full(2, bound), y=np.array([row - 0.45, row + 0.45]), color="ink", width=2.5))
    bound_text = f", bound {' or '.join(map(formatted, sorted(set(bounds))))}" if bounds else ""
    return layers, values + bounds, f"{name}: {', '.join(words)}{bound_text}."


def _metric_panel(measure: Measure, report: Report) -> Panel:
    estimates = [report.estimate(family, measure.name) for family in report.families]
    runs = [_run_values(family, measure.name) for family in report.families]
    ends = [(i.low, i.high) for estimate in estimates if (i := estimate.interquartile_interval)]
    low, high = extent(chain(chain.from_iterable(runs), chain.from_iterable(ends)), margin=0.1)
    layers: list[Layer] = []
    for place, (family, estimate, values) in enumerate(zip(report.families, estimates, runs, strict=True)):
        if estimate.interquartile_mean is None:
            layers.append(Words(x=(low + high) / 2, y=place, text="—", color="muted"))
        else:
            layers += _interval_layers(place, family.name, estimate, values)
    better = {Better.HIGHER: " · higher is better", Better.LOWER: " · lower is better"}.get(
        measure.better, ""
    )
    return Panel(
        title=measure.title,
        x=Axis(low=low, high=high, title=f"{measure.unit}{better}"),
        y=Axis.of_names([family.name for family in report.families], downward=True),
        layers=tuple(layers),
        height=26.0 * len(report.families) + 8,
    )


def _interval_layers(place: int, family: str, estimate: Estimate, values: Sequence[float]) -> list[Layer]:
    color = series_color(place)
    layers: list[Layer] = [
        Mark(x=value, y=place + 0.27, color=color, tip=f"{family}: {formatted(value)}") for value in values
    ]
    interval = estimate.interquartile_interval
    if interval:
        ends = np.array([interval.low, interval.high])
        layers.append(Line(x=ends, y=np.full(2, place - 0.1), color=color, width=4.0, opacity=0.55))
    tip = f"{family}: {_estimate_text(estimate)}"
    at = estimate.interquartile_mean or 0.0
    layers.append(Mark(x=at, y=place - 0.1, color=color, shape=Shape.DIAMOND, tip=tip))
    return layers


def _run_values(family: Family, measure: str) -> list[float]:
    values = [card.measures[measure].value for card in family.cards]
    return [value for value in values if value is not None]


def _estimate_text(estimate: Estimate) -> str:
    if estimate.interquartile_mean is None:
        return f"no value ({'; '.join(estimate.reasons)})"
    interval = estimate.interquartile_interval
    extra = (
        f" [{formatted(interval.low)}, {formatted(interval.high)}]"
        if interval
        else " (a single run, no interval)"
    )
    return formatted(estimate.interquartile_mean) + extra
