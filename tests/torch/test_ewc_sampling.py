import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_torch.ewc_sampling import DEFAULT_SAMPLE_MIX, reward_band, select_fisher_samples

REWARDS = st.sampled_from([-2.0, -0.1, 0.0, 0.1, 0.5, 0.899, 0.9, 1.0, 7.0])


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - a statistical draw


def pool(rewards):
    return [(f"prompt {i}", f"response {i}") for i in range(len(rewards))]


@pytest.mark.parametrize(
    ("reward", "band"),
    [
        (0.9, "solved"),
        (2.0, "solved"),
        (0.8999, "positive_progress"),
        (1e-9, "positive_progress"),
        (0.0, "valid_neutral"),
        (-1e-9, "random"),
    ],
)
def test_bands_meet_at_their_documented_edges(reward, band):
    assert reward_band(reward) == band


def test_default_mix_is_the_reference_mix():
    assert DEFAULT_SAMPLE_MIX == {
        "solved": 0.4, "positive_progress": 0.3, "valid_neutral": 0.2, "random": 0.1,
    }  # fmt: skip


def test_quotas_are_filled_without_replacement_before_the_rest_is_drawn():
    rewards = [1.0] * 50 + [0.5] * 50 + [0.0] * 50 + [-1.0] * 50
    chosen = select_fisher_samples(pool(rewards), rewards, max_samples=10, rng=seeded(3))
    by_pair = dict(zip(pool(rewards), rewards, strict=True))
    bands = Counter(reward_band(by_pair[pair]) for pair in chosen)
    assert bands == {"solved": 4, "positive_progress": 3, "valid_neutral": 2, "random": 1}
    assert len(set(chosen)) == 10


def test_pool_smaller_than_the_budget_repeats_samples():
    rewards = [1.0, 0.5, 0.0]
    chosen = select_fisher_samples(pool(rewards), rewards, max_samples=30, rng=seeded(0))
    assert len(chosen) == 30
    assert set(chosen) == set(pool(rewards))


def test_a_band_left_out_of_the_mix_is_only_met_in_the_fill():
    rewards = [1.0] * 20 + [-1.0] * 20
    solved = set(pool(rewards)[:20])
    chosen = select_fisher_samples(pool(rewards), rewards, max_samples=8, mix={"solved": 1.0}, rng=seeded(1))
    assert set(chosen) <= solved
    assert len(set(chosen)) == 8


def test_budget_below_the_number_of_bands_is_not_exceeded():
    rewards = [1.0, 0.5, 0.0, -1.0]
    assert len(select_fisher_samples(pool(rewards), rewards, max_samples=2)) == 2


def test_empty_pool_gives_an_empty_list():
    assert select_fisher_samples([], [], max_samples=5) == []


def test_a_seeded_draw_repeats():
    rewards = [float(i % 3) / 2 for i in range(40)]
    draws = [select_fisher_samples(pool(rewards), rewards, max_samples=16, rng=seeded(9)) for _ in range(2)]
    assert draws[0] == draws[1]


@given(st.lists(REWARDS, min_size=1, max_size=40), st.integers(1, 60), st.integers(0, 10))
def test_budget_is_met_exactly_and_every_band_present_is_drawn(rewards, budget, seed):
    chosen = select_fisher_samples(pool(rewards), rewards, max_samples=budget, rng=seeded(seed))
    assert len(chosen) == budget
    assert set(chosen) <= set(pool(rewards))
    if budget >= 40:
        by_pair = dict(zip(pool(rewards), rewards, strict=True))
        assert {reward_band(by_pair[pair]) for pair in chosen} == {reward_band(r) for r in rewards}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_samples": 0}, "max_samples is 0"),
        ({"rewards": [1.0, 2.0]}, "1 samples but 2 rewards"),
        ({"mix": {"sovled": 0.4}}, "'sovled'"),
        ({"mix": {"solved": -0.1}}, r"-0\.1"),
        ({"rewards": [float("nan")]}, "nan"),
    ],
)
def test_bad_draws_are_refused_by_name(arguments, message):
    given_arguments = {"pairs": pool([1.0]), "rewards": [1.0], "max_samples": 4} | arguments
    with pytest.raises(ValueError, match=message):
        select_fisher_samples(given_arguments.pop("pairs"), given_arguments.pop("rewards"), **given_arguments)
