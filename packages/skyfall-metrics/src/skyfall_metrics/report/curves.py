"""Figures along the axis of steps: the smoothed reward of each family, and the effective rank of all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from skyfall_metrics.report.downsample import Curve, Spread, spread
from skyfall_metrics.report.lives import Family, Recovery, Span, Track, configurations_of
from skyfall_metrics.report.palette import band_color, series_color
from skyfall_metrics.report.scales import extent
from skyfall_metrics.report.scene import Area, Axis, Box, Figure, Key, Layer, Line, Mark, Panel, Shape
from skyfall_metrics.sheets import formatted
from skyfall_metrics.trace import counted

__all__ = ["has_one_schedule", "rank_figure", "reward_figure"]

_BAND_OPACITY = 0.16
_LABEL_STRIP = 0.12
"""Share of a panel's range that the names of its bands take."""

_MOST_BANDS = 200
"""Segments beyond which bands would be narrower than a line, and are left out."""


def reward_figure(families: Sequence[Family]) -> Figure:
    """The smoothed reward over steps, a panel per family, with shifts and recoveries marked."""
    configurations = configurations_of(families)
    tracks = {family.name: _tracks(family) for family in families}
    curves = [track.reward.value for track in chain.from_iterable(tracks.values())]
    y = _with_label_strip(_level_axis(curves, "smoothed reward"))
    panels = tuple(
        _reward_panel(family.name, tracks[family.name], configurations, index, y)
        for index, family in enumerate(families)
    )
    return Figure(
        name="reward",
        title="Reward over steps",
        description=" ".join(_told(family, tracks[family.name]) for family in families),
        caption=_caption(families, tracks),
        panels=panels,
        legend=(
            Key(text="recovered to the level before the shift", color="ink", shape=Shape.DIAMOND),
            Key(text="not recovered within the segment", color="ink", shape=Shape.CROSS),
            *(
                Key(text=name, color=band_color(k), shape=Shape.PATCH, opacity=2.5 * _BAND_OPACITY)
                for k, name in enumerate(configurations)
            ),
        ),
    )


def rank_figure(families: Sequence[Family]) -> Figure | None:
    """The effective rank of the agents' features over steps; None where no trace carries it."""
    measured = [
        (index, family.name, [curve for life in family.lives for curve in life.ranks])
        for index, family in enumerate(families)
    ]
    measured = [entry for entry in measured if entry[2]]
    if not measured:
        return None
    curves = [curve for _, _, of_family in measured for curve in of_family]
    y = _with_label_strip(_level_axis([curve.value for curve in curves], "effective rank"))
    layers = _common_bands(families, y)
    for index, name, of_family in measured:
        layers += _curve_layers(of_family, series_color(index), name)
    without = [family.name for family in families if not any(life.ranks for life in family.lives)]
    absent = f" Not recorded by {', '.join(without)}." if without else ""
    return Figure(
        name="effective-rank",
        title="Effective rank over steps",
        description="Effective rank, first to last: "
        + "; ".join(f"{name}, {_first_to_last(of_family)}" for _, name, of_family in measured)
        + f".{absent}",
        caption="Mean over runs, shaded from the lowest to the highest; falling means that features collapse."
        + absent,
        panels=(
            Panel(
                title="",
                x=_step_axis([track for family in families for track in _tracks(family)]),
                y=y,
                layers=tuple(layers),
            ),
        ),
        legend=tuple(
            Key(text=name, color=series_color(index), shape=Shape.STROKE) for index, name, _ in measured
        ),
    )


def has_one_schedule(family: Family) -> bool:
    """Whether every run of a family met the same configurations at the same steps."""
    tracks = _tracks(family)
    return all(track.spans == tracks[0].spans for track in tracks)


def _tracks(family: Family) -> list[Track]:
    return [track for life in family.lives for track in life.tracks]


def _reward_panel(name: str, tracks: list[Track], configurations: list[str], index: int, y: Axis) -> Panel:
    curves = [track.reward for track in tracks]
    layers: list[Layer] = [
        *_bands(tracks[0].spans, configurations, y),
        *_curve_layers(curves, series_color(index), name),
        *(_recovery_mark(recovery) for track in tracks for recovery in track.recoveries),
    ]
    return Panel(
        title=f"{name} ({counted(len(tracks), 'run')})",
        x=_step_axis(tracks),
        y=y,
        layers=tuple(layers),
    )


def _bands(spans: Sequence[Span], configurations: list[str], y: Axis) -> list[Layer]:
    if len(spans) > _MOST_BANDS:
        return []
    bands: list[Layer] = [
        Box(
            x0=span.first,
            x1=span.last,
            y0=y.low,
            y1=y.high,
            color=band_color(configurations.index(span.configuration)),
            opacity=_BAND_OPACITY,
            label=span.label,
            tip=_span_text(span),
        )
        for span in spans
    ]
    edges = np.array([y.low, y.high])
    boundaries: list[Layer] = [
        Line(x=np.full(2, float(span.first)), y=edges, color="muted", width=1.0, dashed=True)
        for span in spans[1:]
    ]
    return bands + boundaries


def _common_bands(families: Sequence[Family], y: Axis) -> list[Layer]:
    """The bands that all runs share; none where schedules differ."""
    spans = _tracks(families[0])[0].spans
    if any(track.spans != spans for family in families for track in _tracks(family)):
        return []
    return _bands(spans, configurations_of(families), y)


def _span_text(span: Span) -> str:
    repeats = "" if span.label == span.configuration else f" (again {span.configuration})"
    return f"{span.label}{repeats}, from step {span.first:,}"


def _curve_layers(curves: list[Curve], color: str, name: str) -> list[Layer]:
    """Mean and range where the curves stand at the same steps, else each by itself."""
    together = spread(curves)
    if together is None:
        return [Line(x=c.at, y=c.value, color=color, width=1.1, opacity=0.75, name=name) for c in curves]
    line = Line(x=together.at, y=together.mean, color=color, name=name)
    return [line] if len(curves) == 1 else [_area(together, color), line]


def _area(together: Spread, color: str) -> Area:
    return Area(x=together.at, low=together.low, high=together.high, color=color)


def _recovery_mark(recovery: Recovery) -> Mark:
    what = "recovered after" if recovery.recovered else "not recovered within"
    return Mark(
        x=recovery.at,
        y=recovery.level,
        color="ink",
        shape=Shape.DIAMOND if recovery.recovered else Shape.CROSS,
        tip=f"shift at step {recovery.shift_at:,}: {what} {counted(recovery.steps, 'row')}",
    )


def _with_label_strip(y: Axis) -> Axis:
    """Room above the curves for the names of the bands."""
    return Axis(low=y.low, high=y.high + _LABEL_STRIP * (y.high - y.low), title=y.title)


def _step_axis(tracks: Sequence[Track]) -> Axis:
    low, high = min(track.spans[0].first for track in tracks), max(track.spans[-1].last for track in tracks)
    return Axis(low=low, high=max(high, low + 1), title="step")


def _level_axis(values: Sequence[np.ndarray], title: str) -> Axis:
    low, high = extent(np.concatenate(values).tolist())
    return Axis(low=low, high=high, title=title)


def _told(family: Family, tracks: list[Track]) -> str:
    recoveries = [recovery for track in tracks for recovery in track.recoveries]
    recovered = sum(recovery.recovered for recovery in recoveries)
    order = " → ".join(span.label for span in tracks[0].spans[:12])
    more = " → …" if len(tracks[0].spans) > 12 else ""
    return f"{family.name}: {order}{more}; recovered from {recovered} of {counted(len(recoveries), 'shift')}."


def _caption(families: Sequence[Family], tracks: dict[str, list[Track]]) -> str:
    windows = sorted({card.parameters.window for family in families for card in family.cards})
    text = (
        f"Moving average over {' or '.join(map(str, windows))} rows that starts anew at every shift. "
        "Line: mean over runs; shaded: from the lowest to the highest run; dashed: shifts. "
        "A point is the mean of a stretch within one segment."
    )
    mixed = [
        family.name for family in families if spread([track.reward for track in tracks[family.name]]) is None
    ]
    unequal = [family.name for family in families if not has_one_schedule(family)]
    if mixed:
        text += f" Runs of {', '.join(mixed)} differ in their steps: each is drawn by itself."
    if unequal:
        text += f" Runs of {', '.join(unequal)} have different schedules: bands are those of the first."
    return text


def _first_to_last(curves: list[Curve]) -> str:
    first = float(np.mean([curve.value[0] for curve in curves]))
    last = float(np.mean([curve.value[-1] for curve in curves]))
    return f"{formatted(first)} to {formatted(last)}"
