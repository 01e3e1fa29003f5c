"""Every metric against a slow, obvious loop in exact fractions, on random lives."""

import math
from fractions import Fraction
from itertools import pairwise
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_metrics.errors import ParameterError
from skyfall_metrics.metrics.plasticity import plasticity, theil_sen
from skyfall_metrics.metrics.transfer import forward_transfer
from skyfall_metrics.parameters import Parameters
from skyfall_metrics.scoring import score
from skyfall_metrics.trace import trace_from_arrays

lives = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(-8, 8)), st.sampled_from("AABBC"), st.integers(1, 6)),
    min_size=1,
    max_size=10,
)
parameters = st.builds(
    Parameters,
    window=st.one_of(st.none(), st.integers(1, 6)),
    settled_fraction=st.sampled_from([0.25, 0.5, 1.0]),
    adaptation_level=st.sampled_from([0.5, 0.875, 1.0]),
    recovery_level=st.sampled_from([0.5, 0.9375, 1.0]),
    hold=st.one_of(st.none(), st.integers(1, 4)),
)


def average(values):
    present = [value for value in values if value is not None]
    return sum(present, Fraction(0)) / len(present) if present else None


class SlowLife:
    """One world, segment by segment, as the definitions read."""

    def __init__(self, rewards, labels, window, hold, used):
        self.rewards = [None if r is None else Fraction(r) for r in rewards]
        starts = [t for t in range(len(labels)) if t == 0 or labels[t] != labels[t - 1]]
        self.spans = list(zip(starts, [*starts[1:], len(labels)], strict=True))
        self.names = [labels[a] for a, _ in self.spans]
        self.window, self.hold, self.used = window, hold, used

    def rho(self, s):
        a, b = self.spans[s]
        smoothed = []
        for k in range(b - a):
            present = [r for r in self.rewards[a : a + k + 1] if r is not None]
            smoothed.append(average(present[-min(k + 1, self.window) :]))
        return smoothed

    def settled_rows(self, s):
        a, b = self.spans[s]
        rows = max(math.ceil(Fraction(self.used.settled_fraction) * (b - a)), self.window)
        return range(max(a, b - rows), b)

    def settled(self, s):
        return average([self.rewards[t] for t in self.settled_rows(s)])

    def opening(self, s):
        a, b = self.spans[s]
        return average(self.rewards[a : min(b, a + self.window)])

    def crossing(self, s, threshold):
        rho = self.rho(s)
        for k in range(len(rho)):
            if all(value is not None and value >= threshold for value in rho[k : k + self.hold]):
                return k
        return None

    def climb(self, s):
        """τ, and whether it was censored; None where it is undefined."""
        settled, opening = self.settled(s), self.opening(s)
        if settled is None or opening is None:
            return None
        if settled <= opening:
            return 0
        found = self.crossing(s, opening + Fraction(self.used.adaptation_level) * (settled - opening))
        return self.length(s) if found is None else found

    def length(self, s):
        return self.spans[s][1] - self.spans[s][0]

    def recovery(self, s):
        before = self.settled(s - 1)
        if before is None or average(self.rewards[slice(*self.spans[s])]) is None:
            return None
        found = self.crossing(s, before - (1 - Fraction(self.used.recovery_level)) * abs(before))
        return self.length(s) if found is None else found

    def expected(self):
        shifts = range(1, len(self.spans))
        climbs = [(s, self.climb(s)) for s in shifts]
        taus = [tau for _, tau in climbs if tau is not None]
        recoveries = [tau for s in shifts if (tau := self.recovery(s)) is not None]
        by_name = {
            n: [t for s, m in enumerate(self.names) if m == n for t in range(*self.spans[s])]
            for n in self.names
        }
        yield "reward", average([average([self.rewards[t] for t in rows]) for rows in by_name.values()])
        yield "reward_per_step", average(self.rewards)
        yield (
            "adaptation_speed",
            average([1 - Fraction(t, self.length(s)) for s, t in climbs if t is not None]),
        )
        yield "adaptation_steps", average([Fraction(t) for t in taus])
        yield "adaptation_steps_median", median(taus) if taus else None
        yield "recovery_steps", average([Fraction(t) for t in recoveries])
        yield "recovery_steps_median", median(recoveries) if recoveries else None
        yield from self.expected_forgetting()
        yield from self.expected_stability()

    def expected_forgetting(self):
        lost, kept, saved = [], [], []
        for s, name in enumerate(self.names):
            earlier = [u for u in range(s) if self.names[u] == name]
            if not earlier:
                continue
            levels = [self.settled(u) for u in earlier if self.settled(u) is not None]
            if levels:
                lost.append(None if self.opening(s) is None else max(levels) - self.opening(s))
                kept.append(None if self.settled(s) is None else max(levels) - self.settled(s))
            first, again = self.climb(earlier[0]), self.climb(s)
            if first and again is not None:
                saved.append(1 - Fraction(again, first))
        yield "forgetting", average(lost)
        yield "retention", average(kept)
        yield "savings", average(saved)

    def expected_stability(self):
        spreads, drawdown, drops = [], None, []
        for s, (a, _) in enumerate(self.spans):
            rho = self.rho(s)
            part = [rho[t - a] for t in self.settled_rows(s) if rho[t - a] is not None]
            if part:
                center = average(part)
                spreads.append(
                    (math.sqrt(average([(value - center) ** 2 for value in part])), self.length(s))
                )
                present = [value for value in rho if value is not None]
                falls = [max(present[: k + 1]) - value for k, value in enumerate(present)]
                drawdown = max(falls) if drawdown is None else max(drawdown, *falls)
            drops += [y - x for x, y in pairwise(rho) if None not in (x, y)]
        weight = sum(rows for _, rows in spreads)
        yield "stability", sum(spread * rows for spread, rows in spreads) / weight if spreads else None
        yield "drawdown", drawdown
        worst = sorted(drops)[: math.ceil(Fraction(5, 100) * len(drops))]
        yield "worst_drops", average(worst)


@settings(max_examples=80)
@given(lives, parameters, st.sampled_from([1, 3, 7]))
def test_every_measure_equals_the_slow_loop(pieces, used, divisor):
    # each piece is a run of rows around a level, so that climbs, falls and holes all occur
    rewards = [None if r is None else r * (1 + k % 3) for r, _, n in pieces for k in range(n)]
    labels = [label for _, label, n in pieces for _ in range(n)]
    scaled = [None if r is None else r / divisor for r in rewards]
    card = score(trace_from_arrays(scaled, labels), used)
    slow = SlowLife(
        [None if r is None else Fraction(r, divisor) for r in rewards],
        labels,
        card.parameters.window,
        card.parameters.hold,
        used,
    )
    for name, expected in slow.expected():
        found = card.measures[name].value
        if expected is None:
            assert found is None, name
        else:
            assert found == pytest.approx(float(expected), abs=1e-12), name


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(-9, 9)), min_size=2, max_size=20, unique_by=lambda p: p[0]
    )
)
def test_theil_sen_is_the_median_of_all_slopes(points):
    points.sort()
    slopes = [(y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1 :]]
    x, y = np.array(points, dtype=float).T
    assert theil_sen(x, y) == pytest.approx(median(slopes), abs=1e-12)


def test_theil_sen_of_a_long_series_uses_an_even_selection():
    x = np.arange(50_000.0)
    assert theil_sen(x, 3 * x + 7) == pytest.approx(3)


def test_plasticity_by_hand():
    result = plasticity(np.array([math.nan, 8.0, math.nan, 6.0, 4.0]), np.array([0, 1000, 2000, 3000, 4000]))
    assert (result.first.value, result.last.value, result.ratio.value, result.points) == (8, 4, 0.5, 3)
    assert result.slope.value == pytest.approx(median([-1.0, -4 / 3, -2.0]))


def test_plasticity_measured_once_has_no_slope():
    result = plasticity(np.array([5.0, math.nan]), np.array([0, 1]))
    assert result.slope.reason == "effective_rank was measured once"
    assert plasticity(None, np.array([0])).first.reason == "no effective_rank in the trace"
    assert plasticity(np.array([0.0, 1.0]), np.array([0, 1])).ratio.reason == "the first effective_rank is 0"


@pytest.mark.parametrize(("rows", "window"), [(10, 1), (40, 2), (400, 20), (100_000, 1000)])
def test_window_is_a_twentieth_of_the_median_segment_from_1_to_1000(rows, window):
    resolved = Parameters().resolve(np.array([rows, rows, 5 * rows]))
    assert (resolved.window, resolved.window_chosen) == (window, "auto")
    assert resolved.hold == max(1, window // 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"window": 0}, "window is 0: expected at least 1 row, or nothing to choose it from the run"),
        ({"hold": -2}, "hold is -2: expected at least 1 row, or nothing to choose it from the run"),
        ({"settled_fraction": 0.0}, "settled_fraction is 0.0: expected a share above 0 and at most 1"),
        ({"recovery_level": math.nan}, "recovery_level is nan: expected a share above 0 and at most 1"),
    ],
)
def test_parameters_out_of_range(wrong, message):
    with pytest.raises(ParameterError) as caught:
        Parameters(**wrong)
    assert str(caught.value) == message


def test_what_is_next_to_zero_divides_like_zero():
    tiny = 2e-313
    first_rank = plasticity(np.array([tiny, 8.0]), np.array([0, 1]))
    assert first_rank.ratio.reason == "the first effective_rank is 0"
    (into,) = forward_transfer({"a": 1.0}, {"a": tiny}).configurations
    assert into.transfer is None
    assert into.reason == "the reference reward of 'a' is 0"
