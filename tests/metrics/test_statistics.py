"""Estimates and intervals over seeds, against slow, obvious loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_metrics import statistics
from skyfall_metrics.errors import ParameterError
from skyfall_metrics.statistics import (
    Bootstrap,
    Interval,
    bootstrap_interval,
    improvement_interval,
    interquartile_mean,
    mean,
    probability_of_improvement,
)

samples = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=12)


@given(samples)
def test_interquartile_mean_cuts_a_quarter_from_each_end(values):
    cut = int(0.25 * len(values))
    middle = sorted(values)[cut : len(values) - cut]
    assert interquartile_mean(np.array(values)) == pytest.approx(sum(middle) / len(middle), abs=1e-12)


def test_interquartile_mean_by_hand():
    assert interquartile_mean(np.array([9.0, 1.0, 2.0, 4.0])) == 3
    assert interquartile_mean(np.array([[5.0, 1.0, 3.0], [0.0, 0.0, 9.0]])).tolist() == [3, 3]


@given(st.lists(st.tuples(samples, samples), min_size=1, max_size=3))
def test_probability_of_improvement_counts_pairs_with_ties_half(tasks):
    expected = 0.0
    for x, y in tasks:
        wins = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in x for b in y)
        expected += wins / (len(x) * len(y)) / len(tasks)
    pairs = [(np.array(x), np.array(y)) for x, y in tasks]
    assert probability_of_improvement(pairs) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30)
@given(st.lists(samples, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_order_of_seeds_changes_no_interval(strata, shuffle):
    shuffled = [shuffle.sample(stratum, len(stratum)) for stratum in strata]
    few = Bootstrap(resamples=50)
    first, second = ([np.array(s) for s in each] for each in (strata, shuffled))
    assert bootstrap_interval(first, interquartile_mean, few) == bootstrap_interval(
        second, interquartile_mean, few
    )


def slow_means(strata, bootstrap):
    """The same draws, one resample at a time."""
    rng = np.random.default_rng(bootstrap.seed)
    draws = [rng.integers(len(s), size=(bootstrap.resamples, len(s))) for s in strata]
    return [
        sum(sorted(s)[i] for s, picks in zip(strata, draws, strict=True) for i in picks[r])
        / sum(map(len, strata))
        for r in range(bootstrap.resamples)
    ]


def test_interval_equals_percentiles_of_a_slow_stratified_loop():
    strata = [[3.0, 1.0, 2.0], [10.0, 30.0]]
    bootstrap = Bootstrap(resamples=300, confidence=0.9, seed=4)
    low, high = np.percentile(slow_means(strata, bootstrap), [5, 95])
    interval = bootstrap_interval([np.array(s) for s in strata], mean, bootstrap)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-12)


def test_resampling_stays_inside_the_strata():
    constant = [np.array([1.0, 1.0]), np.array([5.0, 5.0, 5.0])]
    assert bootstrap_interval(constant, mean, Bootstrap()) == Interval(3.4, 3.4)


def test_mean_interval_is_that_of_the_normal_approximation():
    values = np.random.default_rng(1).normal(size=400)
    interval = bootstrap_interval([values], mean, Bootstrap(resamples=4000))
    half = 1.96 * values.std() / 20
    assert interval.low == pytest.approx(values.mean() - half, abs=0.015)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.015)


def test_chunked_resamples_are_as_many_as_were_asked_for(monkeypatch):
    monkeypatch.setattr(statistics, "_MOST_VALUES", 30)
    counted = []

    def counting(values):
        counted.append(len(values))
        return mean(values)

    bootstrap_interval([np.arange(10.0)], counting, Bootstrap(resamples=100))
    assert sum(counted) == 100
    assert max(counted) == 3


def test_single_run_has_no_interval():
    assert bootstrap_interval([np.array([1.0])], mean, Bootstrap()) is None
    assert improvement_interval([(np.array([1.0]), np.array([2.0]))], Bootstrap()) is None


def test_improvement_interval_is_certain_without_overlap():
    pairs = [(np.array([5.0, 6.0]), np.array([1.0, 2.0, 3.0]))]
    assert improvement_interval(pairs, Bootstrap()) == Interval(1, 1)


def test_improvement_interval_equals_comparing_every_resample():
    x, y = np.array([1.0, 3.0, 4.0]), np.array([2.0, 3.0])
    bootstrap = Bootstrap(resamples=200, seed=2)
    rng = np.random.default_rng(2)
    of_x, of_y = (rng.multinomial(len(v), np.full(len(v), 1 / len(v)), size=200) for v in (x, y))
    estimates = [
        probability_of_improvement([(np.repeat(x, a), np.repeat(y, b))])
        for a, b in zip(of_x, of_y, strict=True)
    ]
    low, high = np.percentile(estimates, [2.5, 97.5])
    interval = improvement_interval([(x, y)], bootstrap)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"resamples": 0}, "resamples is 0: expected at least 1"),
        ({"confidence": 1.0}, "confidence is 1.0: expected a share between 0 and 1"),
        ({"seed": -1}, "seed is -1: expected 0 or more"),
    ],
)
def test_bootstrap_out_of_range(wrong, message):
    with pytest.raises(ParameterError) as caught:
        Bootstrap(**wrong)
    assert str(caught.value) == message
