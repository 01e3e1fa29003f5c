"""The actor-critic against hand arithmetic, a slow independent loop and a real cart."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from skyfall_core.base import Algorithm, Policy, RolloutWindow, Transition
from skyfall_core.baselines.actor_critic import ActorCritic
from skyfall_core.baselines.controls import Random
from skyfall_core.baselines.linear import RANK_SAMPLE
from skyfall_core.baselines.storage import FILE_NAME
from skyfall_core.errors import CheckpointError, ConfigError, RunError, SpaceError
from skyfall_core.plasticity import effective_rank_entropy

UNIT = spaces.Box(0.0, 1.0, (1,), np.float64)
TWO = spaces.Discrete(2)
# With order 1 the features of an observation x are [1, cos πx]: x = 0 gives [1, 1], x = 0.5 gives [1, 0].


def learner(**settings: Any) -> ActorCritic:
    defaults = {
        "observation_space": UNIT,
        "action_space": TWO,
        "order": 1,
        "gamma": 0.5,
        "actor_trace": 0.5,
        "critic_trace": 0.5,
        "actor_step_size": 0.1,
        "critic_step_size": 0.2,
        "entropy_bonus": 0.0,
    }
    return ActorCritic(**{**defaults, **settings})


def moved(step: int, x: float, action: int, reward: float, *, end: str = "") -> Transition:
    return Transition(
        step, np.array([x]), action, reward, end == "terminated", end == "truncated", "a", boundary=False
    )


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def features(step: Transition) -> list[float]:
    return [1.0, math.cos(math.pi * step.observation[0])]


def blank() -> list[list[float]]:
    return [[0.0, 0.0] for _ in range(3)]


def slow_weights(
    worlds: Sequence[Sequence[Transition]], *, gamma: float, lam: float, alpha: float, beta: float
) -> list[list[float]]:
    """The same learning without arrays: one world after the other, each over its whole life."""
    weights = blank()
    for life in worlds:
        traces = blank()
        for now, after in pairwise([*life, None]):
            known = now.terminated or (after is not None and not now.truncated)
            if known:
                phi = features(now)
                ahead = 0.0 if now.terminated else dot(weights[2], features(after))
                delta = now.reward + gamma * ahead - dot(weights[2], phi)
                odds = [math.exp(dot(weights[action], phi)) for action in range(2)]
                slopes = [(now.action == action) - odds[action] / sum(odds) for action in range(2)] + [1.0]
                for row, i in product(range(3), range(2)):
                    traces[row][i] = gamma * lam * traces[row][i] + slopes[row] * phi[i]
                    weights[row][i] += (beta if row == 2 else alpha) * delta * traces[row][i]
            if now.terminated or now.truncated:
                traces = blank()
    return weights


@st.composite
def lives(draw: st.DrawFn, worlds: int = 1) -> list[list[Transition]]:
    """Per world, a life with ends of both kinds; all worlds equally long."""
    steps = draw(st.integers(0, 12))
    one = st.tuples(
        st.floats(0, 1),
        st.integers(0, 1),
        st.floats(-2, 2),
        st.sampled_from(["", "", "", "terminated", "truncated"]),
    )
    drawn = [draw(st.lists(one, min_size=steps, max_size=steps)) for _ in range(worlds)]
    return [[moved(i, x, a, r, end=end) for i, (x, a, r, end) in enumerate(life)] for life in drawn]


class Cart:
    """A cart driven by an algorithm, window by window, the way a collector does it."""

    def __init__(self, seed: int = 0) -> None:
        self.env = gym.make("CartPole-v1", sutton_barto_reward=True)
        self.observation, _ = self.env.reset(seed=seed)
        self.step = 0

    def window(self, policy: Policy, steps: int) -> RolloutWindow:
        transitions = []
        for _ in range(steps):
            action = policy.act(self.observation)
            after, reward, terminated, truncated, _ = self.env.step(action)
            transitions.append(
                Transition(
                    self.step, self.observation, action, float(reward), terminated, truncated, "a", False
                )
            )
            self.observation = self.env.reset()[0] if terminated or truncated else after
            self.step += 1
        return RolloutWindow(transitions)

    def algorithm(self, **settings: Any) -> ActorCritic:
        ranges = [None, [-3, 3], [-0.21, 0.21], [-3.5, 3.5]]
        return ActorCritic(
            observation_space=self.env.observation_space,
            action_space=self.env.action_space,
            **{"ranges": ranges, **settings},
        )


# ---- learning


def test_one_step_by_hand() -> None:
    algorithm = learner()
    algorithm.update(RolloutWindow([moved(0, 0.0, 1, 1.0), moved(1, 0.5, 0, 0.0)]))
    # δ = 1; the actions are equally likely, so log π moves by ∓1/2 along [1, 1]; the value by [1, 1].
    np.testing.assert_allclose(algorithm.policy.weights, [[-0.05, -0.05], [0.05, 0.05], [0.2, 0.2]])


def test_terminated_step_bootstraps_from_zero_and_follows_the_trace() -> None:
    algorithm = learner()
    metrics = algorithm.update(
        RolloutWindow([moved(0, 0.0, 1, 1.0), moved(1, 0.5, 0, -1.0, end="terminated")])
    )
    # At x = 0.5 the value is 0.2, so δ = -1.2. Traces: a quarter of the old one plus the new gradient.
    likely = 1.0 / (1.0 + math.exp(0.1))  # of action 0, whose preference is 0.1 lower
    old = np.array([[-0.5, -0.5], [0.5, 0.5], [1.0, 1.0]])
    new = np.array([[1.0 - likely, 0.0], [likely - 1.0, 0.0], [1.0, 0.0]])
    sizes = np.array([[0.1], [0.1], [0.2]])
    expected = sizes * old - 1.2 * sizes * (0.25 * old + new)
    np.testing.assert_allclose(algorithm.policy.weights, expected)
    assert metrics["td_error"] == pytest.approx((1.0 - 1.2) / 2)
    assert metrics["td_error_magnitude"] == pytest.approx((1.0 + 1.2) / 2)
    assert metrics["value"] == pytest.approx(0.1)
    assert metrics["learned_steps"] == 2.0


def test_truncated_step_teaches_nothing_and_ends_the_trace() -> None:
    algorithm = learner()
    algorithm.update(RolloutWindow([moved(0, 0.0, 1, 5.0, end="truncated"), moved(1, 0.5, 0, 0.0)]))
    assert not algorithm.policy.weights.any()
    algorithm.update(RolloutWindow([moved(2, 0.5, 0, 0.0)]))
    np.testing.assert_array_equal(algorithm.policy.weights, 0.0)  # δ = 0, and the 5 is nowhere


def test_last_step_of_a_window_is_learned_from_in_the_next() -> None:
    algorithm = learner()
    assert algorithm.update(RolloutWindow([moved(0, 0.0, 1, 1.0)]))["learned_steps"] == 0.0
    assert not algorithm.policy.weights.any()
    assert algorithm.update(RolloutWindow([moved(1, 0.5, 0, 0.0)]))["learned_steps"] == 1.0
    np.testing.assert_allclose(algorithm.policy.weights[-1], [0.2, 0.2])


def test_gap_in_the_step_numbers_bridges_nothing() -> None:
    algorithm = learner()
    algorithm.update(RolloutWindow([moved(0, 0.0, 1, 1.0)]))
    assert algorithm.update(RolloutWindow([moved(7, 0.5, 0, 0.0)]))["learned_steps"] == 0.0
    assert not algorithm.policy.weights.any()


def test_gap_in_the_step_numbers_ends_the_trace() -> None:
    def weights_after(first_step_of_the_rest: int) -> np.ndarray:
        algorithm = learner(gamma=1.0)
        algorithm.update(
            RolloutWindow([moved(0, 0.0, 1, 0.0), moved(1, 0.5, 1, 0.0)])
        )  # δ = 0, traces are not
        later = [moved(first_step_of_the_rest, 0.5, 0, 1.0), moved(first_step_of_the_rest + 1, 0.5, 0, 0.0)]
        algorithm.update(RolloutWindow(later))
        return algorithm.policy.weights

    np.testing.assert_allclose(weights_after(7)[-1], [0.2, 0.0], atol=1e-12)
    assert weights_after(2)[-1][1] == pytest.approx(0.2 * 0.25)  # the first step's trace, faded twice


def test_step_sizes_shrink_with_the_frequency() -> None:
    algorithm = learner(order=2)
    algorithm.update(RolloutWindow([moved(0, 0.0, 1, 1.0, end="terminated")]))
    np.testing.assert_allclose(algorithm.policy.weights[-1], [0.2, 0.2, 0.1])


def test_temperature_divides_preferences_and_gradient() -> None:
    algorithm = learner(temperature=2.0)
    algorithm.update(RolloutWindow([moved(0, 0.0, 1, 1.0, end="terminated")]))
    np.testing.assert_allclose(algorithm.policy.weights[:2], [[-0.025, -0.025], [0.025, 0.025]])


def test_entropy_bonus_climbs_the_entropy() -> None:
    algorithm = learner(entropy_bonus=1.0, temperature=0.7)
    start = np.array([[0.3, 0.1], [-0.4, 0.2], [0.0, 0.0]])
    algorithm.policy.weights = start.copy()
    algorithm.update(RolloutWindow([moved(0, 0.0, 1, 0.0, end="terminated")]))  # δ = 0

    def entropy(weights: np.ndarray) -> float:
        odds = np.exp(weights[:2].sum(axis=1) / 0.7)
        shares = odds / odds.sum()
        return float(-(shares * np.log(shares)).sum())

    for row, column in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        shifted = start.copy()
        shifted[row, column] += 1e-6
        slope = (entropy(shifted) - entropy(start)) / 1e-6
        assert algorithm.policy.weights[row, column] - start[row, column] == pytest.approx(
            0.1 * slope, abs=1e-6
        )


@given(lives(), st.floats(0, 1), st.floats(0, 1))
def test_agrees_with_a_slow_loop(worlds: list[list[Transition]], gamma: float, lam: float) -> None:
    algorithm = learner(gamma=gamma, actor_trace=lam, critic_trace=lam)
    algorithm.update(RolloutWindow(worlds[0]))
    expected = slow_weights(worlds, gamma=gamma, lam=lam, alpha=0.1, beta=0.2)
    np.testing.assert_allclose(algorithm.policy.weights, expected, atol=1e-9)


@given(lives(), st.lists(st.integers(0, 12), max_size=4))
def test_where_windows_are_cut_does_not_matter(worlds: list[list[Transition]], cuts: list[int]) -> None:
    life = worlds[0]
    whole, cut = learner(entropy_bonus=0.1), learner(entropy_bonus=0.1)
    whole.update(RolloutWindow(life))
    for start, end in pairwise([0, *sorted(min(place, len(life)) for place in cuts), len(life)]):
        cut.update(RolloutWindow(life[start:end]))
    np.testing.assert_allclose(cut.policy.weights, whole.policy.weights, atol=1e-12)


@given(lives(worlds=3))
def test_worlds_are_followed_one_by_one(worlds: list[list[Transition]]) -> None:
    algorithm = learner()
    interleaved = [step for together in zip(*worlds, strict=True) for step in together]
    streams = [range(world, len(interleaved), 3) for world in range(3)]
    algorithm.update(RolloutWindow(interleaved, streams=streams))
    expected = slow_weights(worlds, gamma=0.5, lam=0.5, alpha=0.1, beta=0.2)
    np.testing.assert_allclose(algorithm.policy.weights, expected, atol=1e-9)


def test_unfinished_steps_are_carried_per_world() -> None:
    algorithm = learner()
    algorithm.update(RolloutWindow([moved(0, 0.0, 1, 1.0), moved(0, 0.5, 0, 3.0)], streams=[[0], [1]]))
    algorithm.update(
        RolloutWindow(
            [moved(1, 0.5, 0, 0.0, end="truncated"), moved(1, 0.5, 0, 0.0, end="truncated")],
            streams=[[0], [1]],
        )
    )
    # World 0 earned 1 at [1, 1]. World 1 earned 3 at [1, 0], where the value is now 0.2 on both sides.
    np.testing.assert_allclose(algorithm.policy.weights[-1], [0.2 + 0.2 * (3.0 + 0.5 * 0.2 - 0.2), 0.2])


def test_empty_window_measures_finite_nothing() -> None:
    metrics = learner().update(RolloutWindow([]))
    assert metrics["learned_steps"] == 0.0
    assert all(math.isfinite(value) for value in metrics.values())


def test_shift_is_not_acted_on() -> None:
    algorithm = learner()
    algorithm.update(RolloutWindow([moved(0, 0.0, 1, 1.0), moved(1, 0.5, 0, 0.0)]))
    before = algorithm.policy.weights.tobytes()
    algorithm.on_regime_shift({"previous": "a", "current": "b", "origin": None, "step": 2})
    assert algorithm.policy.weights.tobytes() == before


def test_divergence_is_an_error_with_a_remedy() -> None:
    algorithm = learner(critic_step_size=1e300)
    life = [moved(i, 0.0, 0, 1e10) for i in range(6)]
    with pytest.raises(RunError, match="lower `critic_step_size`"):
        algorithm.update(RolloutWindow(life))


def test_cart_is_balanced_far_better_than_by_chance() -> None:
    cart, chance = Cart(), Cart()
    algorithm = cart.algorithm()
    for _ in range(20):
        metrics = algorithm.update(cart.window(algorithm.policy, 256))
        assert all(math.isfinite(value) for value in metrics.values())
    learned = np.mean(cart.window(algorithm.policy, 2000).rewards)
    random = Random(action_space=chance.env.action_space)
    assert np.mean(chance.window(random.policy, 2000).rewards) < 3 * learned < 0


# ---- acting


def test_it_is_an_algorithm_with_a_policy() -> None:
    assert isinstance(learner(), Algorithm)
    assert isinstance(learner().policy, Policy)


def test_actions_are_drawn_as_often_as_they_are_likely() -> None:
    policy = learner(seed=3).policy
    policy.weights[:] = [[1.0, 0.0], [0.0, 0.0], [0.0, 7.0]]
    actions, logprobs = [], []
    for _ in range(4000):
        actions.append(policy.act([0.0]))
        logprobs.append(policy.last_logprob)
    likely = math.e / (1.0 + math.e)
    assert np.mean(np.array(actions) == 0) == pytest.approx(
        likely, abs=4 * math.sqrt(likely * (1 - likely) / 4000)
    )
    expected = {0: math.log(likely), 1: math.log(1 - likely)}
    assert logprobs == pytest.approx([expected[action] for action in actions])
    assert policy.last_value == pytest.approx(7.0)


def test_actions_begin_where_the_space_begins() -> None:
    space = spaces.Discrete(2, start=5)
    algorithm = learner(action_space=space)
    actions = {algorithm.policy.act([0.0]) for _ in range(50)}
    assert actions == {5, 6}
    algorithm.update(RolloutWindow([moved(0, 0.0, 6, 1.0, end="terminated")]))
    assert algorithm.policy.weights[1, 0] > 0 > algorithm.policy.weights[0, 0]


def test_temperature_makes_preferences_weaker() -> None:
    policy = learner(temperature=4.0).policy
    policy.weights[:2] = [[4.0, 0.0], [0.0, 0.0]]
    policy.act([0.5])
    assert policy.last_logprob is not None
    share = math.e / (1.0 + math.e)
    assert min(abs(policy.last_logprob - math.log(p)) for p in (share, 1 - share)) < 1e-12


def test_preference_far_apart_is_no_overflow() -> None:
    policy = learner().policy
    policy.weights[:2] = [[1e5, 0.0], [-1e5, 0.0]]
    assert {policy.act([0.5]) for _ in range(20)} == {0}
    assert policy.last_logprob == 0.0


def test_several_worlds_are_answered_in_world_order() -> None:
    policy = learner(seed=1).policy
    policy.weights[:] = [[50.0, 0.0], [0.0, 100.0], [2.0, 1.0]]  # x = 0 means action 1, x = 1 action 0
    assert policy.act_batch([np.array([0.0]), np.array([1.0]), np.array([0.0])]) == [1, 0, 1]
    assert policy.last_value == pytest.approx([3.0, 1.0, 3.0])
    assert policy.last_logprob == pytest.approx([0.0, 0.0, 0.0])
    assert policy.last_effective_rank == [None, None, None]


def test_observation_that_is_no_number_is_refused() -> None:
    policy = learner().policy
    policy.weights[0] = 1.0
    with pytest.raises(RunError, match="not finite"):
        policy.act([math.nan])


def test_what_is_read_after_acting_is_there_before_it() -> None:
    policy = learner().policy
    assert (policy.last_logprob, policy.last_value, policy.last_effective_rank) == (None, None, None)


def test_effective_rank_is_read_at_the_interval_over_the_latest_features() -> None:
    algorithm = learner(order=4, effective_rank_interval=100)
    observations = np.random.default_rng(0).random((200, 1))
    readings = []
    for observation in observations:
        algorithm.policy.act(observation)
        readings.append(algorithm.policy.last_effective_rank)
    assert [place for place, reading in enumerate(readings) if reading is not None] == [99, 199]
    latest = algorithm.policy.features.batch(observations[-RANK_SAMPLE:])
    assert readings[199] == pytest.approx(effective_rank_entropy(latest))


def test_effective_rank_can_be_switched_off() -> None:
    policy = learner(effective_rank_interval=None).policy
    for _ in range(600):
        policy.act([0.5])
        assert policy.last_effective_rank is None


def test_every_world_reports_the_shared_effective_rank() -> None:
    policy = learner(order=2, effective_rank_interval=2).policy
    policy.act_batch([[0.1], [0.5]])
    policy.act_batch([[0.9], [0.2]])
    expected = effective_rank_entropy(policy.features.batch([[0.1], [0.5], [0.9], [0.2]]))
    assert policy.last_effective_rank == pytest.approx([expected, expected])


# ---- refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observation_space": spaces.Discrete(4)}, r"observation space Discrete\(4\)"),
        ({"action_space": UNIT}, r"action space Box.* handles Discrete only"),
        ({"action_space": spaces.MultiDiscrete([2, 2])}, r"action space MultiDiscrete"),
    ],
)
def test_spaces_it_cannot_work_with_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        learner(**change)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("gamma", 1.1),
        ("gamma", -0.1),
        ("actor_trace", 2.0),
        ("critic_trace", math.nan),
        ("actor_step_size", -1.0),
        ("critic_step_size", math.inf),
        ("entropy_bonus", -0.1),
        ("temperature", 0.0),
        ("effective_rank_interval", 0),
        ("order", 0),
    ],
)
def test_setting_out_of_range_is_refused_with_its_value(setting: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{setting} is {value!r}"):
        learner(**{setting: value})


def test_misspelled_setting_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no setting 'gama'; did you mean 'gamma'"):
        learner(gama=0.9)


# ---- checkpoints


def run_on(cart: Cart, algorithm: ActorCritic, windows: int) -> list[Any]:
    seen = []
    for _ in range(windows):
        window = cart.window(algorithm.policy, 37)
        seen.append([algorithm.update(window), window.rewards, algorithm.policy.last_logprob])
        seen.append(algorithm.policy.last_effective_rank)
    return seen


def test_going_on_from_a_checkpoint_is_not_having_stopped(tmp_path: Path) -> None:
    settings = {"seed": 5, "entropy_bonus": 0.01, "effective_rank_interval": 37 * 4}
    straight, stopped = Cart(), Cart()
    first = straight.algorithm(**settings)
    whole = run_on(straight, first, 20)
    second = stopped.algorithm(**settings)
    parts = run_on(stopped, second, 11)
    second.save_checkpoint(tmp_path / "half")
    third = stopped.algorithm(**{**settings, "seed": 99})
    third.load_checkpoint(tmp_path / "half")
    parts += run_on(stopped, third, 9)
    assert parts == whole
    assert third.policy.weights.tobytes() == first.policy.weights.tobytes()
    first.save_checkpoint(tmp_path / "straight")
    third.save_checkpoint(tmp_path / "stopped")
    assert (tmp_path / "straight" / FILE_NAME).read_bytes() == (tmp_path / "stopped" / FILE_NAME).read_bytes()


def test_several_worlds_come_back_from_a_checkpoint(tmp_path: Path) -> None:
    first, second = learner(), learner()
    beginning = RolloutWindow(
        [moved(0, 0.0, 1, 1.0), moved(0, 0.5, 0, 3.0, end="truncated")], streams=[[0], [1]]
    )
    ending = RolloutWindow([moved(1, 0.5, 0, 1.0), moved(1, 0.2, 1, 2.0)], streams=[[0], [1]])
    first.update(beginning)
    first.save_checkpoint(tmp_path)
    second.load_checkpoint(tmp_path)
    assert second.update(ending) == first.update(ending)
    assert second.policy.weights.tobytes() == first.policy.weights.tobytes()


def test_checkpoint_before_the_first_step_can_be_loaded(tmp_path: Path) -> None:
    learner().save_checkpoint(tmp_path)
    fresh = learner(seed=8)
    fresh.load_checkpoint(tmp_path)
    untouched = learner()
    assert [fresh.policy.act([0.0]) for _ in range(30)] == [untouched.policy.act([0.0]) for _ in range(30)]


def test_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        cart = Cart()
        algorithm = cart.algorithm()
        run_on(cart, algorithm, 3)
        algorithm.save_checkpoint(tmp_path / name)
    assert (tmp_path / "one" / FILE_NAME).read_bytes() == (tmp_path / "two" / FILE_NAME).read_bytes()


def test_other_seed_draws_other_actions() -> None:
    first, second = learner(seed=0).policy, learner(seed=1).policy
    assert [first.act([0.0]) for _ in range(40)] != [second.act([0.0]) for _ in range(40)]


def damaged_by(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        file.write_bytes(change(file.read_bytes()))

    return damage


def rewrite(**changes: Any) -> Callable[[Path], None]:
    """Replace entries of the archive; `meta` is given as changes of its JSON."""

    def damage(file: Path) -> None:
        with np.load(file) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = {**json.loads(str(arrays["meta"])), **changes.pop("meta", {})}
        np.savez(file, **{**arrays, **changes, "meta": np.array(json.dumps(meta))})

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda file: file.unlink(), "no checkpoint here"),
        (damaged_by(lambda content: content[: len(content) // 2]), "damaged"),
        (damaged_by(lambda _: b""), "damaged"),
        (damaged_by(lambda _: b"not an archive"), "damaged"),
        (damaged_by(lambda content: content.replace(b"weights", b"weighty")), "does not fit|damaged"),
        (lambda file: np.savez(file, meta=np.array([{"version": 1}], dtype=object)), "damaged"),
        (lambda file: np.savez(file, meta=np.array("[1]")), "not a checkpoint of version 1"),
        (rewrite(meta={"version": 2}), "not a checkpoint of version 1"),
        (rewrite(meta={"kind": "ppo"}), "written by algorithm 'ppo', wanted 'actor-critic'"),
        (rewrite(meta={"rng": {"bit_generator": "MT19937"}}), "does not fit"),
        (rewrite(meta={"pending": [[0, 0]]}), "does not fit"),
        (rewrite(meta={"acts": None}), "does not fit"),
        (rewrite(traces=np.zeros((1, 3, 9))), "does not fit"),
        (rewrite(weights=np.zeros((3, 9))), "does not fit"),
        (rewrite(recent=np.zeros((3, 9))), "does not fit"),
    ],
    ids=[
        "missing",
        "cut in half",
        "empty",
        "not an archive",
        "an array is missing",
        "pickled",
        "meta is no mapping",
        "other version",
        "other algorithm",
        "other generator",
        "torn pending step",
        "no count of acts",
        "other traces",
        "other weights",
        "other features",
    ],
)
def test_checkpoint_that_cannot_be_used_is_refused(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    source = learner()
    source.update(RolloutWindow([moved(0, 0.0, 1, 1.0)]))
    source.policy.act([0.0])
    source.save_checkpoint(tmp_path)
    damage(tmp_path / FILE_NAME)
    target = learner()
    before = [part.copy() for part in target.policy.state()[1].values()]
    draws_before = target.policy.state()[0]
    with pytest.raises(CheckpointError, match=message):
        target.load_checkpoint(tmp_path)
    assert target.policy.state()[0] == draws_before
    for part, kept in zip(target.policy.state()[1].values(), before, strict=True):
        np.testing.assert_array_equal(part, kept)  # a refusal changes nothing


def test_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    learner(gamma=0.5).save_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="use the document"):
        learner(gamma=0.6).load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"action_space": spaces.Discrete(3)}, {"observation_space": spaces.Box(0.0, 1.0, (2,))}],
    ids=str,
)
def test_checkpoint_of_other_spaces_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    learner().save_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="does not fit"):
        learner(**change).load_checkpoint(tmp_path)


def test_checkpoint_is_replaced_whole(tmp_path: Path) -> None:
    algorithm = learner()
    algorithm.save_checkpoint(tmp_path)
    algorithm.update(RolloutWindow([moved(0, 0.0, 1, 1.0, end="terminated")]))
    algorithm.save_checkpoint(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [FILE_NAME]
    fresh = learner()
    fresh.load_checkpoint(tmp_path)
    np.testing.assert_array_equal(fresh.policy.weights, algorithm.policy.weights)


def test_folder_that_cannot_be_made_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(CheckpointError, match="could not be written"):
        learner().save_checkpoint(tmp_path / "taken")


def test_ranges_survive_a_checkpoint(tmp_path: Path) -> None:
    learner(ranges=[(0, 1)]).save_checkpoint(tmp_path)
    learner(ranges=[[0.0, 1.0]]).load_checkpoint(tmp_path)
