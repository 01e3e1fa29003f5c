"""Families side by side."""

import json
import random

import numpy as np
import pytest

from skyfall_metrics.comparison import Schedules, compare, comparison_schema
from skyfall_metrics.errors import ComparisonError
from skyfall_metrics.parameters import Parameters
from skyfall_metrics.scoring import score
from skyfall_metrics.statistics import Bootstrap
from skyfall_metrics.trace import trace_from_arrays

FEW = Bootstrap(resamples=100)


def card(family, seed, level, *, task="cart", labels="AAAABBBB", run_id=None):
    metadata = {
        "algorithm_id": family,
        "task": task,
        "seed": seed,
        "run_id": run_id or f"{family}-{task}-{seed}",
    }
    rewards = [level * (t % 4) for t in range(len(labels))]
    return score(trace_from_arrays(rewards, list(labels), metadata=metadata), Parameters(window=1))


@pytest.fixture
def runs():
    return [card("ppo", seed, 1 + seed) for seed in range(3)] + [
        card("ewc", seed, 3 + seed) for seed in range(3)
    ]


def summary(comparison, family, task):
    return next(s for s in comparison.summaries if (s.family, s.task) == (family, task))


def test_estimates_are_those_of_the_runs(runs):
    estimate = summary(compare(runs, bootstrap=FEW), "ppo", "cart").estimates["reward"]
    assert (estimate.runs, estimate.missing) == (3, 0)
    assert estimate.mean == estimate.interquartile_mean == 3
    assert estimate.deviation == pytest.approx(np.std([1.5, 3, 4.5], ddof=1))
    assert estimate.mean_interval.low < 3 < estimate.mean_interval.high


def test_improvement_follows_the_direction_of_the_measure(runs):
    comparison = compare(runs, bootstrap=FEW)
    found = {each.measure: each.probability.value for each in comparison.improvements}
    # ewc earns 3, 4, 5 times as much a step as ppo's 1, 2, 3: one tie in nine pairs
    assert found["reward"] == pytest.approx(8.5 / 9)
    assert found["drawdown"] == 0.5
    assert [(each.family, each.other) for each in comparison.improvements][:1] == [("ewc", "ppo")]


def test_lower_is_better_where_the_measure_says_so():
    steady = [card("calm", seed, 0.0) for seed in range(2)]
    comparison = compare([*steady, *(card("wild", seed, 1.0) for seed in range(2))], bootstrap=FEW)
    found = {each.measure: each.probability.value for each in comparison.improvements}
    assert found["stability"] > 0.5 or found["recovery_steps"] > 0.5
    assert found["reward"] == 0


def test_families_are_summed_up_over_tasks_where_there_are_several(runs):
    comparison = compare([*runs, card("ppo", 0, 7.0, task="walk", labels="AB")], bootstrap=FEW)
    over_all = summary(comparison, "ppo", None).estimates["reward"]
    assert over_all.runs == 4
    assert [s.task for s in comparison.summaries] == ["cart", "cart", "walk", None, None]
    reward = next(each for each in comparison.improvements if each.measure == "reward")
    assert reward.tasks == ("cart",)


def test_order_of_runs_changes_nothing(runs):
    shuffled = random.Random(3).sample(runs, len(runs))  # noqa: S311 - no secret
    assert compare(runs, bootstrap=FEW) == compare(shuffled, bootstrap=FEW)


def test_which_seed_had_which_number_changes_no_statistic(runs):
    swapped = [card("ppo", 2 - seed, 1 + seed) for seed in range(3)] + runs[3:]
    assert compare(runs, bootstrap=FEW).summaries == compare(swapped, bootstrap=FEW).summaries


def test_missing_numbers_are_counted_with_their_reason(runs):
    comparison = compare(runs, bootstrap=FEW)
    estimate = summary(comparison, "ppo", "cart").estimates["forgetting"]
    assert (estimate.runs, estimate.missing, estimate.mean) == (0, 3, None)
    assert estimate.reasons == ("no revisit",)
    forgetting = next(each for each in comparison.improvements if each.measure == "forgetting")
    assert forgetting.probability.reason == "no task where runs of both 'ewc' and 'ppo' have this number"


def test_single_run_has_no_interval_and_says_so():
    estimate = summary(compare([card("ppo", 0, 1.0)], bootstrap=FEW), "ppo", "cart").estimates["reward"]
    assert (estimate.runs, estimate.deviation, estimate.mean_interval) == (1, None, None)
    assert estimate.reasons == ("a single run has no interval",)


def test_baseline_is_compared_with_every_other(runs):
    comparison = compare([*runs, card("her", 0, 1.0)], bootstrap=FEW, baseline="ppo")
    assert {(each.family, each.other) for each in comparison.improvements} == {("ewc", "ppo"), ("her", "ppo")}


def test_unknown_baseline_names_the_nearest(runs):
    with pytest.raises(ComparisonError) as caught:
        compare(runs, baseline="pp0")
    assert str(caught.value) == ("no family 'pp0' among these runs; did you mean 'ppo'? known: 'ewc', 'ppo'")


def test_unequal_schedules_are_refused_and_named(runs):
    with pytest.raises(ComparisonError) as caught:
        compare([*runs, card("ppo", 9, 1.0, labels="AAAABBB")])
    assert str(caught.value) == (
        "task 'cart': ppo-cart-9 · ppo · cart · seed 9 (7 rows in 2 segments) did not live the schedule of "
        "the other 6 (8 rows in 2 segments); leave them out, or allow it (--allow-unequal)"
    )


def test_unequal_schedules_on_request_are_a_warning(runs):
    odd = card("ppo", 9, 1.0, labels="AABBAABB")
    comparison = compare([*runs, odd], bootstrap=FEW, schedules=Schedules.ANY)
    assert [note.code for note in comparison.warnings] == ["schedules"]
    assert "ppo-cart-9" in comparison.warnings[0].message


def test_two_copies_of_one_run_are_noted(runs):
    comparison = compare([*runs, runs[0]], bootstrap=FEW)
    assert comparison.warnings[0].message == (
        "ppo-cart-0 · ppo · cart · seed 0 says it is the same run as "
        "ppo-cart-0 · ppo · cart · seed 0; both count"
    )


def test_nothing_to_compare():
    with pytest.raises(ComparisonError, match="nothing to compare: no scored runs"):
        compare([])


def test_to_dict_is_strict_json(runs):
    document = compare(runs, bootstrap=FEW).to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["schema_version"] == 1
    assert comparison_schema()["$defs"]["Comparison"]["required"]
