import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.errors import ConfigError
from skyfall_torch.actor_critic import actor_critic
from skyfall_torch.losses import clipped_value_loss, normalized
from skyfall_torch.ppo import PPOBackend
from skyfall_torch.successors import RecordSuccessors, cut_successors

BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)
TEXTBOOK = {"ratio": "per_token", "old_policy_pass": "eval", "action_tokens": "all", "gae": "episodic"}


def backend(**options):
    policy = actor_critic(BOX, spaces.Discrete(3), hidden_sizes=(6,), seed=0)
    chosen = {"epochs": 1, "minibatch_size": 16, "learning_rate": 1e-2, **TEXTBOOK, **options}
    return PPOBackend(policy, **chosen)


def window(policy, count=16, *, terminated=(), truncated=(), successors=False, streams=None, seed=0):
    draws = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        observation = draws.uniform(-1, 1, 3).astype(np.float32)
        action = policy.act(observation)
        info = {"successor": np.full(3, i / count, np.float32)} if successors else {}
        ended = (i in terminated, i in truncated)
        rows.append(Transition(i, observation, action, float(i % 3), *ended, "a", False, info=info))
    return RolloutWindow(rows, streams=streams)


def gradients_of_one_step(**options):
    learner = backend(max_grad_norm=1e9, **options)
    learner.optimizer = torch.optim.SGD(learner.policy.trainable_parameters(), lr=1.0)
    before = [p.detach().clone() for p in learner.policy.trainable_parameters()]
    taken = window(learner.policy)
    samples = list(learner.policy._generated)
    measured = learner.update(taken)
    return (
        learner,
        samples,
        [a - b.detach() for a, b in zip(before, learner.policy.parameters(), strict=True)],
        measured,
    )


def test_entropy_bonus_adds_the_gradient_of_the_mean_entropy():
    _, _, without, _ = gradients_of_one_step()
    _, samples, with_bonus, measured = gradients_of_one_step(entropy_coeff=0.3)
    fresh = backend()
    entropy = fresh.policy.score(samples)[1].mean()
    assert measured["entropy"] == pytest.approx(entropy.item(), rel=1e-5)
    expected = torch.autograd.grad(-0.3 * entropy, fresh.policy.trainable_parameters(), allow_unused=True)
    for plain, bonus, extra in zip(without, with_bonus, expected, strict=True):
        torch.testing.assert_close(
            bonus - plain, torch.zeros_like(plain) if extra is None else extra, atol=1e-5, rtol=1e-3
        )


def test_entropy_bonus_needs_a_policy_that_reports_entropies(monkeypatch):
    learner = backend(entropy_coeff=0.1)
    evaluate = learner.policy.evaluate
    monkeypatch.setattr(learner.policy, "evaluate", lambda s: evaluate(s)._replace(entropies=None))
    with pytest.raises(ConfigError, match="reports no entropies"):
        learner.update(window(learner.policy))


def test_clipped_value_loss_by_hand():
    values, old, returns = torch.tensor([2.0, 0.4]), torch.tensor([0.0, 0.0]), torch.tensor([3.0, 0.0])
    # near = (0.5, 0.4): errors (1, 0.16) against (6.25, 0.16); the larger of each, over 2
    assert clipped_value_loss(values, old, returns, 0.5, 2).item() == pytest.approx((6.25 + 0.16) / 2)


def test_value_clipping_changes_nothing_while_values_stand_still():
    for plain, clipped in zip(
        gradients_of_one_step()[2], gradients_of_one_step(value_clip_range=0.1)[2], strict=True
    ):
        torch.testing.assert_close(plain, clipped)


def test_minibatches_can_be_normalized_on_their_own():
    learner = backend(advantage_scope="minibatch")
    targets = learner._measure(learner.batch_from(window(learner.policy)))
    rows = [3, 5, 8, 13]
    ready = learner._advantages_for(targets, rows)[rows]
    torch.testing.assert_close(ready, normalized(targets.advantages[rows]))
    assert targets.advantages.mean().abs() > 1e-3


def test_learning_rate_falls_linearly_to_zero():
    learner = backend(anneal_steps=4, minibatch_size=8)
    rates = [learner.update(window(learner.policy))["learning_rate"] for _ in range(3)]
    assert rates == pytest.approx([0.0075, 0.0025, 0.0])


def test_warm_up_and_annealing_multiply():
    learner = backend(anneal_steps=10, warmup_steps=2)
    rates = [learner.update(window(learner.policy))["learning_rate"] for _ in range(3)]
    assert rates == pytest.approx([0.005, 0.009, 0.008])


def test_an_update_stops_before_the_step_at_which_the_policy_has_moved_too_far():
    learner = backend(target_kl=1e-4, epochs=50, learning_rate=0.1)
    measured = learner.update(window(learner.policy))
    assert measured["stopped_early"] == 1.0
    assert 1 <= learner._optimizer_steps < 50
    free = backend(epochs=50, learning_rate=0.1)
    assert "stopped_early" not in free.update(window(free.policy))
    assert free._optimizer_steps == 50


def slow_bootstrapped_gae(learner, taken, values, gamma, lam):
    """Backwards over each stream, looking one step beyond every cut."""
    beyond = cut_successors(taken)
    order = [p for stream in taken.streams for p in stream]
    ends = {sum(len(s) for s in taken.streams[: i + 1]) - 1 for i in range(len(taken.streams))}
    advantages, following, next_value = [0.0] * len(order), 0.0, 0.0
    for row in reversed(range(len(order))):
        step = taken.transitions[order[row]]
        if step.terminated or step.truncated or row in ends:
            following = 0.0
            next_value = 0.0
            if row in beyond:
                next_value = learner.policy.values_of([beyond[row]]).item()
        delta = step.reward + gamma * next_value - values[row]
        following = delta + gamma * lam * following
        advantages[row], next_value = following, values[row]
    return advantages


@pytest.mark.parametrize(
    "streams", [None, (range(0, 16, 2), range(1, 16, 2))], ids=["one world", "two worlds"]
)
def test_cut_episodes_are_bootstrapped_from_the_observation_after_them(streams):
    learner = backend(truncation="bootstrap", advantage_scope="minibatch")
    taken = window(learner.policy, terminated={4, 9}, truncated={7, 12}, successors=True, streams=streams)
    targets = learner._measure(learner.batch_from(taken))
    expected = slow_bootstrapped_gae(learner, taken, targets.values.tolist(), 0.99, 0.95)
    torch.testing.assert_close(targets.advantages, torch.tensor(expected), rtol=1e-5, atol=1e-5)
    cut = backend(advantage_scope="minibatch")
    plain = cut._measure(
        cut.batch_from(window(cut.policy, terminated={4, 9}, truncated={7, 12}, streams=streams))
    )
    assert not torch.allclose(plain.advantages, targets.advantages)


def test_a_language_policy_judges_what_lies_behind_a_cut(build_policy):
    policy = build_policy()
    options = {**TEXTBOOK, "truncation": "bootstrap", "advantage_scope": "minibatch"}
    learner = PPOBackend(policy, minibatch_size=2, gamma=0.9, lam=0.8, **options)
    steps = []
    for i in range(6):
        policy.act(f"state {i}")
        info = {"successor": f"state {i + 1}"}
        steps.append(Transition(i, f"state {i}", "x", 1.0, i == 1, i == 3, "a", False, info=info))
    targets = learner._measure(learner.batch_from(RolloutWindow(steps)))
    values, ahead = targets.values.tolist(), policy.values_of(["state 4", "state 6"]).tolist()
    beyond = {0: values[1], 1: 0.0, 2: values[3], 3: ahead[0], 4: values[5], 5: ahead[1]}
    residuals = [1.0 + 0.9 * beyond[i] - values[i] for i in range(6)]
    expected = [residuals[i] + (0.72 * residuals[i + 1] if i % 2 == 0 else 0.0) for i in range(6)]
    torch.testing.assert_close(targets.advantages, torch.tensor(expected), rtol=1e-4, atol=1e-5)


class CannotJudge:
    """A policy as it was before it could judge what it did not act on."""

    def __init__(self, inner):
        for name in ("act", "evaluate", "take_generated", "trainable_parameters", "train"):
            setattr(self, name, getattr(inner, name))


def test_a_policy_that_cannot_judge_observations_is_refused_before_it_trains(build_policy):
    with pytest.raises(ConfigError, match=r"CannotJudge has no `values_of`.*use 'terminal'"):
        PPOBackend(CannotJudge(build_policy()), truncation="bootstrap", gae="episodic")


def test_bootstrapping_without_recorded_successors_says_what_to_add():
    learner = backend(truncation="bootstrap")
    for ended in ((), {15}):  # also where no episode was cut, so that the first window tells
        with pytest.raises(ConfigError, match="RecordSuccessors"):
            learner.update(window(learner.policy, terminated=ended))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truncation": "bootstrap", "gae": "degenerate"}, "set gae to 'episodic'"),
        ({"entropy_coeff": -1.0}, "entropy_coeff"),
        ({"target_kl": 0.0}, "target_kl"),
        ({"value_clip_range": -0.1}, "value_clip_range"),
        ({"advantage_scope": "mini"}, "did you mean 'minibatch'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        backend(**options)


def test_successors_are_the_observations_steps_led_to():
    env = RecordSuccessors(gym.make("CartPole-v1"))
    env.reset(seed=0)
    observation, *_, info = env.step(0)
    np.testing.assert_array_equal(info["successor"], observation)
    assert info["successor"] is not observation
    env.close()
