"""What reports are drawn with: scales, thinned curves, escaped markup, and where things land in the SVG."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_metrics.parameters import Parameters
from skyfall_metrics.report.contents import report_of
from skyfall_metrics.report.curves import rank_figure, reward_figure
from skyfall_metrics.report.downsample import Curve, bucket_starts, spread, thinned
from skyfall_metrics.report.drawing import draw
from skyfall_metrics.report.layout import fitted, squeezed
from skyfall_metrics.report.levels import configuration_figure, metrics_figure
from skyfall_metrics.report.lives import families_of, life_of
from skyfall_metrics.report.markup import Markup, element
from skyfall_metrics.report.matrix import MOST_RETURNS, forgetting_figure, forgetting_matrix
from skyfall_metrics.report.scales import Scale, extent, tick_text, ticks
from skyfall_metrics.scoring import score
from skyfall_metrics.trace import trace_from_arrays

SVG = "{http://www.w3.org/2000/svg}"
REWARDS = [0, 1, 1, 1, 0, 0, 0.5, 1, 0.5, 1, 1, 1]
LABELS = list("AAAABBBBAAAA")
PLAIN = Parameters(window=1, hold=1, settled_fraction=0.5)


def life(rewards=REWARDS, labels=LABELS, *, parameters=PLAIN, bounds=None, most=500, **columns):
    metadata = {
        name: columns.pop(name) for name in ("algorithm_id", "task", "seed", "run_id") if name in columns
    }
    trace = trace_from_arrays(rewards, labels, metadata=metadata, **columns)
    return life_of(trace, score(trace, parameters, bounds=bounds), most)


def drawn(figure, width=960.0):
    text = draw(figure, width, variant="wide").replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1)
    return ET.fromstring(text)  # noqa: S314 - it was just made here


def points(path):
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.get("d"))]


def inverse(text, pixel):
    low, high, start, end = map(float, text.split())
    return low + (pixel - start) / (end - start) * (high - low)


# scales


def test_scale_maps_its_ends_and_may_run_backwards():
    scale = Scale(0, 10, 200, 100)
    assert [scale(0), scale(2.5), scale(10)] == [200, 175, 100]
    assert scale.many(np.array([0, np.nan, 10.0])).tolist()[::2] == [200, 100]


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 10, 5, [0, 2, 4, 6, 8, 10]),
        (0, 1, 2, [0, 0.5, 1]),
        (-3, 12, 3, [0, 5, 10]),
        (99, 101, 4, [99, 99.5, 100, 100.5, 101]),
        (-0.088, -0.01, 3, [-0.08, -0.06, -0.04, -0.02]),
    ],
)
def test_ticks_are_round_and_inside(low, high, most, expected):
    assert ticks(low, high, most) == pytest.approx(expected)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(1, 12))
def test_ticks_stay_inside_and_are_few(low, length, most):
    values = ticks(low, low + length, most)
    slack = 1e-6 * (abs(low) + length)
    assert len(values) <= most + 1
    assert all(low - slack <= value <= low + length + slack for value in values)


@pytest.mark.parametrize(
    ("value", "spacing", "text"),
    [
        (8000, 2000, "8,000"),
        (-0.05, 0.05, "−0.05"),
        (0.0, 0.02, "0"),
        (-0.0, 1, "0"),
        (2e-9, 1e-9, "2e−09"),
        (0.1 * 3, 0.1, "0.3"),
    ],
)
def test_ticks_are_written_with_the_decimals_they_need(value, spacing, text):
    assert tick_text(value, spacing) == text


@pytest.mark.parametrize("values", [[], [np.nan], [0.0], [5.0, 5.0], [-1e-300, 1e-300], [-3.0, 4.0]])
def test_extent_is_never_empty(values):
    low, high = extent(values)
    assert low < high
    assert all(low <= value <= high for value in values if not np.isnan(value))


@pytest.mark.parametrize(
    ("text", "room", "cut", "middle"),
    [
        ("short", 100, "short", "short"),
        ("a_long_configuration", 61, "a_long_co…", "a_lon…tion"),
        ("a_long_configuration", 20, "", "a_…on"),
    ],
)
def test_names_are_cut_to_the_room_they_have(text, room, cut, middle):
    assert (fitted(text, room), squeezed(text, room)) == (cut, middle)


# thinned curves


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=30).map(lambda lengths: np.cumsum([0, *lengths])),
    st.integers(10, 100),
)
def test_buckets_cover_every_row_once_and_never_cross_a_shift(edges, most):
    start, rows = edges[:-1], int(edges[-1])
    first = bucket_starts(start, rows, most)
    assert first[0] == 0
    assert (np.diff(first) > 0).all()
    assert first[-1] < rows
    if len(start) <= most:
        assert set(start.tolist()) <= set(first.tolist())
    assert len(first) <= most + len(start)


def test_short_series_are_drawn_as_they_are():
    curve = thinned(np.arange(4), np.array([1.0, np.nan, 3.0, 4.0]), np.array([0, 2]))
    assert curve.at.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(curve.value, [1, np.nan, 3, 4])


def test_long_series_become_means_of_their_buckets():
    curve = thinned(np.arange(8), np.array([0, 2, 4, 6, 1, 1, np.nan, 5]), np.array([0, 4]), most=4)
    assert curve.at.tolist() == [0.5, 2.5, 4.5, 6.5]
    assert curve.value.tolist() == [1, 5, 1, 5]


def test_spread_averages_what_is_present():
    at = np.array([0.0, 1.0, 2.0])
    together = spread([Curve(at, np.array([1, np.nan, np.nan])), Curve(at, np.array([3, 5, np.nan]))])
    np.testing.assert_array_equal(together.mean, [2, 5, np.nan])
    np.testing.assert_array_equal(together.low, [1, 5, np.nan])
    np.testing.assert_array_equal(together.high, [3, 5, np.nan])


def test_curves_at_other_steps_have_no_spread():
    assert spread([Curve(np.array([0.0]), np.ones(1)), Curve(np.array([1.0]), np.ones(1))]) is None


# markup


class Texts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.attributes = [], "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")))
def test_any_text_shows_as_itself_and_opens_no_tag(text):
    parser = Texts()
    parser.feed(element("p", {"title": text}, text))
    parser.close()
    assert (parser.tags, parser.text, parser.attributes) == (["p"], text, [("title", text)])


def test_what_no_file_can_hold_is_replaced():
    made = element("p", None, "a\ud800b\x00c")
    assert made == "<p>a\ufffdb\ufffdc</p>"
    made.encode()


def test_only_markup_goes_in_unescaped():
    assert element("p", None, Markup("<b>x</b>"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"


# figures


def test_reward_curve_lands_where_the_rewards_are():
    svg = drawn(reward_figure(families_of([life()])))
    panel = svg.find(f"{SVG}g")
    places = points(panel.find(f"{SVG}path[@class='curve']"))
    assert [inverse(panel.get("data-x"), x) for x, _ in places] == pytest.approx(range(12), abs=0.01)
    assert [inverse(panel.get("data-y"), y) for _, y in places] == pytest.approx(REWARDS, abs=0.01)


def test_shifts_bands_and_recoveries_are_marked():
    svg = drawn(reward_figure(families_of([life()])))
    panel = svg.find(f"{SVG}g")
    dashed = [points(path)[0][0] for path in panel.findall(f"{SVG}path[@stroke-dasharray]")]
    assert [inverse(panel.get("data-x"), x) for x in dashed] == pytest.approx([4, 8], abs=0.01)
    bands = panel.findall(f"{SVG}rect")
    assert [band.get("data-tip") for band in bands] == ["A, from step 0", "B, from step 4", "A, from step 8"]
    assert [band.get("fill") for band in bands] == ["var(--band-0)", "var(--band-1)", "var(--band-0)"]
    marks = panel.findall(f"{SVG}path[@data-tip]")
    assert [mark.get("data-tip") for mark in marks] == [
        "shift at step 4: recovered after 3 rows",
        "shift at step 8: recovered after 1 row",
    ]
    places = [points(mark)[0] for mark in marks]
    assert [inverse(panel.get("data-x"), x) for x, _ in places] == pytest.approx([7, 9], abs=0.01)
    assert [inverse(panel.get("data-y"), y + 5) for _, y in places] == pytest.approx([1, 1], abs=0.01)


def test_shift_without_recovery_is_crossed_at_the_segments_end():
    rewards = [1, 1, 1, 1, 0, 0, 0, 0.5, 1, 1, 1, 1]
    figure = reward_figure(families_of([life(rewards)]))
    marks = [layer for layer in figure.panels[0].layers if hasattr(layer, "shape")]
    assert [(mark.shape.value, mark.x, mark.y) for mark in marks] == [("cross", 7, 0.5), ("diamond", 8, 1.0)]
    assert "recovered from 1 of 2 shifts" in figure.description


def test_seeds_are_drawn_as_mean_and_range():
    lower = [reward - 1 for reward in REWARDS]
    figure = reward_figure(families_of([life(seed=0), life(lower, seed=1)]))
    area = next(layer for layer in figure.panels[0].layers if hasattr(layer, "low"))
    line = next(layer for layer in figure.panels[0].layers if getattr(layer, "name", ""))
    assert area.low.tolist() == lower
    assert area.high.tolist() == REWARDS
    assert line.y.tolist() == pytest.approx([reward - 0.5 for reward in REWARDS])


def test_runs_that_differ_in_their_steps_are_drawn_one_by_one():
    figure = reward_figure(families_of([life(), life(REWARDS[:8], LABELS[:8])]))
    lines = [layer for layer in figure.panels[0].layers if getattr(layer, "name", "")]
    assert [len(line.x) for line in lines] == [12, 8]
    assert "differ in their steps" in figure.caption
    assert "different schedules" in figure.caption


def test_missing_rewards_break_the_line():
    rewards = [np.nan, 1, 1, np.nan, np.nan, 1, 1, 1, 1, 1, 1, 1]
    svg = drawn(reward_figure(families_of([life(rewards)])))
    path = svg.find(f".//{SVG}path[@class='curve']").get("d")
    assert path.count("M") == 2
    assert "nan" not in path


def test_worlds_with_one_schedule_are_averaged():
    worlds = [0, 1] * 12
    rewards = [value for reward in REWARDS for value in (reward, reward + 2)]
    labels = [label for label in LABELS for _ in worlds[:2]]
    both = life(rewards, labels, world=worlds)
    assert len(both.tracks) == 1
    assert both.tracks[0].reward.value.tolist() == [reward + 1 for reward in REWARDS]
    assert len(both.tracks[0].recoveries) == 4


def test_bars_are_as_long_as_the_means_and_bounds_stand_where_they_are():
    svg = drawn(configuration_figure(families_of([life(bounds={"A": 1, "B": 2})])))
    panel = svg.find(f"{SVG}g")
    bars = panel.findall(f"{SVG}rect")
    left, right = (
        [inverse(panel.get("data-x"), float(bar.get("x")) + on * float(bar.get("width"))) for bar in bars]
        for on in (0, 1)
    )
    assert left == pytest.approx([0, 0], abs=0.002)
    assert right == pytest.approx([0.8125, 0.375], abs=0.002)
    bounds = [
        points(path)[0][0] if "L" in path.get("d") else None
        for path in panel.findall(f"{SVG}path[@stroke-width='2.5']")
    ]
    assert [inverse(panel.get("data-x"), x) for x in bounds] == pytest.approx([1, 2], abs=0.002)


def test_negative_bars_hang_from_zero():
    rewards = [-reward - 1 for reward in REWARDS]
    panel = drawn(configuration_figure(families_of([life(rewards)]))).find(f"{SVG}g")
    for bar in panel.findall(f"{SVG}rect"):
        assert inverse(panel.get("data-x"), float(bar.get("x")) + float(bar.get("width"))) == pytest.approx(
            0, abs=0.005
        )


def test_intervals_are_those_of_the_comparison():
    report = report_of([life([r * k for r in REWARDS], seed=k) for k in (1, 2, 3)], title="t")
    estimate = report.estimate(report.families[0], "reward")
    line = next(layer for layer in metrics_figure(report).panels[0].layers if hasattr(layer, "width"))
    assert line.x.tolist() == [estimate.interquartile_interval.low, estimate.interquartile_interval.high]


def test_a_single_run_has_no_interval_and_a_missing_number_is_a_dash():
    figure = metrics_figure(report_of([life()], title="t"))
    assert not any(hasattr(layer, "width") for panel in figure.panels for layer in panel.layers)
    assert [layer.text for layer in figure.panels[-1].layers] == ["—"]
    assert "no value (no bound for 'A'; no bound for 'B')" in figure.description


def test_forgetting_matrix_of_the_worked_example():
    family = families_of([life()])[0]
    np.testing.assert_allclose(forgetting_matrix(family, ["A", "B"]), [[0.5], [np.nan]])


def test_late_returns_share_the_last_column():
    labels = list("ABABABABABABAB")
    family = families_of([life([1, 0] * 7, labels)])[0]
    assert forgetting_matrix(family, ["A", "B"]).shape == (2, MOST_RETURNS)


def test_without_returns_there_is_no_matrix_and_without_ranks_no_curve():
    families = families_of([life(REWARDS[:8], LABELS[:8])])
    assert forgetting_figure(families) is None
    assert rank_figure(families) is None


def test_effective_rank_is_drawn_where_it_was_measured():
    rank = [None, 4, None, 3, None, None, 2, None, None, None, None, 1]
    figure = rank_figure(families_of([life(effective_rank=rank, algorithm_id="a"), life(algorithm_id="b")]))
    line = next(layer for layer in figure.panels[0].layers if getattr(layer, "name", ""))
    assert (line.x.tolist(), line.y.tolist()) == ([1, 3, 6, 11], [4, 3, 2, 1])
    assert "a, 4 to 1" in figure.description
    assert "Not recorded by b" in figure.caption
