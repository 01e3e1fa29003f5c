"""Vectorised arithmetic against slow, obvious loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_metrics.smoothing import (
    first_held_crossing,
    part_deviations,
    part_means,
    settled_start,
    smooth,
)

NAN = math.nan
rewards = st.lists(st.one_of(st.just(NAN), st.integers(-50, 50).map(float)), min_size=1, max_size=60)


def edges(cuts, rows):
    start = np.array(sorted({0, *(cut % rows for cut in cuts)}))
    return start, np.append(start[1:], rows)


def slow_smooth(reward, start, stop, window):
    smoothed = []
    for a, b in zip(start, stop, strict=True):
        for k in range(b - a):
            present = [r for r in reward[a : a + k + 1] if not math.isnan(r)]
            last = present[-min(k + 1, window) :]
            smoothed.append(sum(last) / len(last) if last else NAN)
    return smoothed


def slow_crossing(smoothed, threshold, hold):
    for k in range(len(smoothed)):
        wait = smoothed[k : k + hold]
        if all(value >= threshold for value in wait):
            return k
    return -1


@given(rewards, st.lists(st.integers(0, 59), max_size=5), st.integers(1, 70))
def test_moving_average_equals_the_slow_loop(reward, cuts, window):
    start, stop = edges(cuts, len(reward))
    expected = slow_smooth(reward, start, stop, window)
    np.testing.assert_allclose(smooth(np.array(reward), start, window), expected, rtol=0, atol=1e-12)


@given(
    rewards,
    st.lists(st.integers(0, 59), max_size=5),
    st.lists(st.one_of(st.just(NAN), st.integers(-50, 50)), min_size=6, max_size=6),
    st.integers(1, 70),
)
def test_held_crossing_equals_the_slow_loop(smoothed, cuts, thresholds, hold):
    start, stop = edges(cuts, len(smoothed))
    threshold = np.array(thresholds[: len(start)], dtype=float)
    expected = [
        slow_crossing(smoothed[a:b], level, hold) for a, b, level in zip(start, stop, threshold, strict=True)
    ]
    assert first_held_crossing(np.array(smoothed), start, stop, threshold, hold).tolist() == expected


@given(rewards, st.lists(st.integers(0, 59), max_size=5))
def test_means_and_deviations_of_parts_equal_those_of_slices(reward, cuts):
    start, stop = edges(cuts, len(reward))
    values = np.array(reward)
    slices = [values[a:b][~np.isnan(values[a:b])] for a, b in zip(start, stop, strict=True)]
    means = [part.mean() if len(part) else NAN for part in slices]
    spreads = [part.std() if len(part) else NAN for part in slices]
    np.testing.assert_allclose(part_means(values, start, stop), means, atol=1e-12)
    np.testing.assert_allclose(part_deviations(values, start, stop), spreads, atol=1e-12)


def test_deviations_of_parts_that_do_not_touch():
    values = np.array([9.0, 1.0, 3.0, 9.0, 9.0, 2.0, 2.0])
    assert part_deviations(values, np.array([1, 5]), np.array([3, 7])).tolist() == [1.0, 0.0]


def test_average_never_reaches_across_a_boundary():
    assert smooth(np.array([8.0, 8.0, 0.0, 0.0]), np.array([0, 2]), 3).tolist() == [8, 8, 0, 0]


def test_missing_reward_keeps_the_average_and_the_window_reaches_for_present_ones():
    smoothed = smooth(np.array([NAN, 1.0, NAN, 3.0, 5.0]), np.array([0]), 2)
    np.testing.assert_array_equal(smoothed, [NAN, 1, 1, 2, 4])


def test_large_reward_does_not_wash_out_what_follows():
    smoothed = smooth(np.array([1e90, 0.1, 0.1, 0.1]), np.array([0]), 2)
    assert smoothed[2:] == pytest.approx([0.1, 0.1], abs=1e-15)


def test_one_spike_is_no_crossing_but_reaching_the_end_is():
    series = np.array([0.0, 1.0, 0.0, 1.0])
    assert first_held_crossing(series, np.array([0]), np.array([4]), np.array([1.0]), 2).tolist() == [3]


@pytest.mark.parametrize(
    ("rows", "fraction", "window", "settled"),
    [(4, 0.5, 1, 2), (8, 0.25, 1, 2), (9, 0.25, 1, 3), (8, 0.25, 5, 5), (3, 0.25, 5, 3), (100, 0.07, 1, 7)],
)
def test_settled_part_is_the_share_at_least_the_window_at_most_all(rows, fraction, window, settled):
    start = settled_start(np.array([0]), np.array([rows]), fraction, window)
    assert start.tolist() == [rows - settled]
