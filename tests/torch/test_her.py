"""Hindsight replay: relabelling by hand, admission, and the buffer's asymmetries."""

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_torch.her import HERBuffer, RelabelStrategy, relabel_episode

rewards_lists = st.lists(st.floats(-2, 2), min_size=1, max_size=20)


def test_final_raises_only_the_last_step_and_copies():
    rewards = [0.1, -1.0, 0.2]
    assert relabel_episode(rewards, success_reward=0.5) == [0.1, -1.0, 0.5]
    assert rewards == [0.1, -1.0, 0.2]


def test_a_reward_above_the_constant_is_never_lowered():
    assert relabel_episode([0.1, 0.9], success_reward=0.5) == [0.1, 0.9]


def test_an_empty_episode_stays_empty():
    assert relabel_episode([], success_reward=0.5, strategy="future") == []


def test_an_unknown_strategy_is_refused():
    with pytest.raises(ValueError, match="episode"):
        relabel_episode([1.0], success_reward=0.5, strategy="episode")


@given(rewards_lists, st.integers(0, 1000))
def test_future_is_final_plus_raises(rewards, seed):
    raised = relabel_episode(rewards, success_reward=0.5, strategy="future", rng=Random(seed))  # noqa: S311
    assert raised[-1] == max(rewards[-1], 0.5)
    assert all(after in {before, max(before, 0.5)} for before, after in zip(rewards, raised, strict=True))


def test_future_raises_step_t_of_m_with_probability_one_over_m_minus_t():
    rng, trials, length = Random(0), 20_000, 4  # noqa: S311
    counts = [0.0] * length
    for _ in range(trials):
        raised = relabel_episode([0.0] * length, success_reward=1.0, strategy=RelabelStrategy.FUTURE, rng=rng)
        counts = [count + value for count, value in zip(counts, raised, strict=True)]
    shares = [count / trials for count in counts]
    assert shares == pytest.approx([1 / 4, 1 / 3, 1 / 2, 1.0], abs=0.015)


def test_only_samples_strictly_above_the_threshold_enter():
    buffer = HERBuffer(10, admission_threshold=0.0)
    assert buffer.add(list("abcd"), [0.0, 0.1, -0.2, 0.0], [2, 2]) == 2
    assert buffer.entries == [("b", 0.5), ("d", 0.5)]


@pytest.mark.parametrize("lengths", [None, [1], [3, 3]])
def test_missing_or_inconsistent_lengths_make_the_batch_one_episode(lengths):
    buffer = HERBuffer(10)
    buffer.add(list("abcd"), [0.0] * 4, lengths)
    assert buffer.entries == [("d", 0.5)]


def test_minus_one_disables_and_zero_keeps_one():
    disabled, single = HERBuffer(-1), HERBuffer(0)
    for buffer in (disabled, single):
        buffer.add(["a", "b"], [1.0, 2.0], [1, 1])
    assert (disabled.enabled, len(disabled)) == (False, 0)
    assert (single.enabled, single.entries) == (True, [("b", 2.0)])


def test_a_capacity_below_minus_one_is_refused():
    with pytest.raises(ValueError, match="-2"):
        HERBuffer(-2)


def test_the_oldest_leave_first():
    buffer = HERBuffer(2)
    buffer.add([1, 2, 3], [1.0, 1.0, 1.0], [1, 1, 1])
    assert [sample for sample, _ in buffer.entries] == [2, 3]


@given(st.integers(0, 30), st.integers(0, 30))
def test_samples_are_drawn_without_replacement_up_to_what_is_there(stored, asked):
    buffer = HERBuffer(100, seed=1)
    buffer.add(list(range(stored)), [1.0] * stored, None)
    drawn = [sample for sample, _ in buffer.sample(asked)]
    assert len(drawn) == len(set(drawn)) == min(stored, asked)


def test_equal_seeds_draw_alike_and_a_restored_buffer_goes_on_as_the_original():
    first, second = (HERBuffer(50, strategy="future", seed=3) for _ in range(2))
    for buffer in (first, second):
        buffer.add(list(range(40)), [0.1] * 40, [20, 20])
    assert first.sample(5) == second.sample(5)
    restored = HERBuffer(50, strategy="future", seed=99)
    restored.restore(first.entries, first.random_state())
    for buffer in (first, restored):
        buffer.add(list(range(40, 60)), [-0.1] * 20, [20])
    assert restored.entries == first.entries
    assert restored.sample(7) == first.sample(7)


def test_a_missing_reward_is_an_error():
    with pytest.raises(ValueError, match="2 samples but 1 rewards"):
        HERBuffer(5).add(["a", "b"], [1.0], None)


def test_importing_leaves_torch_unimported():
    code = "import sys, skyfall_torch.her; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
