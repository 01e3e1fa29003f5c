"""Advantage estimation against arrays worked by hand and the defining sum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_core.advantage import GAEMode, compute_gae, episode_lengths_from

finite = st.floats(-100, 100)
share = st.floats(0, 1)


@st.composite
def episodes(draw: st.DrawFn) -> tuple[list[float], list[float], list[int]]:
    """Rewards, values and episode lengths that add up."""
    lengths = draw(st.lists(st.integers(0, 5), max_size=5))
    steps = sum(lengths)
    numbers = st.lists(finite, min_size=steps, max_size=steps)
    return draw(numbers), draw(numbers), lengths


def advantages_by_definition(
    rewards: list[float], values: list[float], lengths: list[int], gamma: float, lam: float
) -> list[float]:
    """Per step, the sum over the rest of its episode of (γλ)^k times the k-th TD error ahead."""
    result, start = [], 0
    for length in lengths:
        end = start + length
        for t in range(start, end):
            total = 0.0
            for k in range(end - t):
                following = values[t + k + 1] if t + k + 1 < end else 0.0
                total += (gamma * lam) ** k * (rewards[t + k] + gamma * following - values[t + k])
            result.append(total)
        start = end
    return result


def test_two_episodes_by_hand() -> None:
    # Last step of each episode: r - V. Before it: r + 0.5·V' - V, plus 0.25 times the next advantage.
    advantages, returns = compute_gae([1.0, 0.0, 2.0, 4.0], [1.0, 2.0, 2.0, 1.0], [3, 1], gamma=0.5, lam=0.5)
    assert advantages == [1.0 + 0.25 * (-1.0), -1.0 + 0.25 * 0.0, 0.0, 3.0]
    assert returns == [1.75, 1.0, 2.0, 4.0]


def test_lambda_one_gives_the_discounted_return() -> None:
    _, returns = compute_gae([1.0, 1.0, 1.0], [5.0, -3.0, 7.0], [3], gamma=0.5, lam=1.0)
    assert returns == pytest.approx([1.75, 1.5, 1.0])


def test_lambda_zero_gives_the_td_error() -> None:
    advantages, _ = compute_gae([1.0, 1.0], [2.0, 4.0], [2], gamma=0.5, lam=0.0)
    assert advantages == [1.0 + 0.5 * 4.0 - 2.0, 1.0 - 4.0]


@given(episodes(), share, share)
def test_agrees_with_the_defining_sum(
    case: tuple[list[float], list[float], list[int]], gamma: float, lam: float
) -> None:
    rewards, values, lengths = case
    advantages, returns = compute_gae(rewards, values, lengths, gamma, lam)
    assert advantages == pytest.approx(
        advantages_by_definition(rewards, values, lengths, gamma, lam), abs=1e-6
    )
    assert returns == pytest.approx([a + v for a, v in zip(advantages, values, strict=True)])


@given(st.lists(st.tuples(finite, finite), max_size=8), share, share)
def test_without_lengths_discounts_are_inert(
    steps: list[tuple[float, float]], gamma: float, lam: float
) -> None:
    rewards = [reward for reward, _ in steps]
    values = [value for _, value in steps]
    advantages, _ = compute_gae(rewards, values, None, gamma, lam)
    assert advantages == [reward - value for reward, value in steps]


@pytest.mark.parametrize("lengths", [[2], [4], [], [1, 1], [5, -2]], ids=str)
def test_lengths_that_do_not_add_up_degenerate(lengths: list[int]) -> None:
    advantages, returns = compute_gae([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], lengths, gamma=0.9, lam=0.9)
    assert advantages == [0.5, 1.5, 2.5]
    assert returns == [1.0, 2.0, 3.0]


def test_no_steps_give_nothing() -> None:
    assert compute_gae([], [], None, 0.9, 0.9) == ([], [])
    assert compute_gae([], [], [], 0.9, 0.9) == ([], [])


def test_a_missing_value_is_refused() -> None:
    with pytest.raises(ValueError, match="2 rewards but 1 values"):
        compute_gae([1.0, 2.0], [1.0], [2], 0.9, 0.9)


@pytest.mark.parametrize(
    ("terminals", "lengths"),
    [
        ([], []),
        ([False, False, True, False], [3, 1]),
        ([True, True], [1, 1]),
        ([False, False], [2]),
        ([True, False], [1, 1]),
    ],
)
def test_episode_lengths_by_hand(terminals: list[bool], lengths: list[int]) -> None:
    assert episode_lengths_from(terminals) == lengths


@given(st.lists(st.booleans()))
def test_episode_lengths_restore_the_flags(terminals: list[bool]) -> None:
    lengths = episode_lengths_from(iter(terminals))
    assert sum(lengths) == len(terminals)
    rebuilt = [last for length in lengths for last in [False] * (length - 1) + [True]]
    if terminals:
        rebuilt[-1] = terminals[-1]  # an unfinished last episode counts as one
    assert rebuilt == terminals


def test_modes_are_their_document_names() -> None:
    assert GAEMode("degenerate") is GAEMode.DEGENERATE
    assert GAEMode("episodic") is GAEMode.EPISODIC
    assert list(GAEMode) == ["degenerate", "episodic"]
