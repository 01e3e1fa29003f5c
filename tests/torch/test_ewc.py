import logging
import random

import numpy as np
import pytest
import torch
from gymnasium import spaces

from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.errors import CheckpointError, ConfigError
from skyfall_torch.actor_critic import actor_critic
from skyfall_torch.errors import FisherError
from skyfall_torch.ewc import EWCBackend, ParameterScope, select_fisher_samples
from skyfall_torch.ewc_fisher import loop_fisher
from skyfall_torch.policy import LanguagePolicy
from skyfall_torch.tiny import TinyConfig, tiny_model, tiny_tokenizer

BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)
PPO = {"epochs": 1, "minibatch_size": 8, "learning_rate": 1e-2, "action_tokens": "all"}


def small_policy(seed=0, **options):
    return actor_critic(BOX, spaces.Discrete(3), hidden_sizes=(6,), seed=seed, **options)


def backend(policy=None, **options):
    chosen = {"parameter_scope": "all", "fisher_seed": 0, **PPO, **options}
    return EWCBackend(policy or small_policy(), **chosen)


def window(policy, regimes, *, first_step=0, seed=0):
    """Acts once a label; reward 1 for action 0."""
    draws = np.random.default_rng(seed)
    transitions = []
    for i, regime in enumerate(regimes):
        observation = draws.uniform(-1, 1, 3).astype(np.float32)
        action = policy.act(observation)
        reward = float(action == 0)
        transitions.append(
            Transition(first_step + i, observation, action, reward, False, False, regime, False)
        )
    return RolloutWindow(transitions)


def shift(previous, current, **more):
    return {"previous": previous, "current": current, "origin": None, "step": 99, **more}


def trained(regimes=("a",) * 16, **options):
    learner = backend(**options)
    learner.update(window(learner.policy, regimes))
    return learner


def test_without_a_consolidation_it_is_ppo_and_reports_nothing_held():
    learner = backend()
    measured = learner.update(window(learner.policy, ["a"] * 16))
    assert {name: measured[name] for name in measured if name.startswith("ewc_")} == {
        "ewc_penalty": 0.0,
        "ewc_penalty_share": 0.0,
        "ewc_fisher_norm": 0.0,
        "ewc_snapshots": 0.0,
    }


def test_a_shift_anchors_the_weights_of_that_moment():
    learner = trained()
    learner.on_regime_shift(shift("a", "b"))
    (held,) = learner.snapshots
    weights = torch.cat([p.detach().reshape(-1) for p in learner.policy.trainable_parameters()])
    assert torch.equal(held.anchor, weights)
    assert held.fisher.max() == 1.0
    assert held.fisher.min() >= 0.0


def test_fisher_equals_a_loop_over_the_drawn_samples_in_double_precision():
    policy = small_policy()
    policy.double()
    learner = backend(policy, fisher_samples=20, fisher_clip=1e9, epochs=1)
    samples, rewards = [], []
    taken = window(policy, ["a"] * 12)
    samples, rewards = list(policy._generated), taken.rewards
    learner.batch_from(taken)
    estimate = learner.estimate_fisher()
    pairs = select_fisher_samples(
        list(enumerate(samples)),
        rewards,
        max_samples=20,
        rng=random.Random("0/0"),  # noqa: S311
    )
    named = policy.named_trainable_parameters()
    total = {name: torch.zeros_like(p) for name, p in named}
    for _, sample in pairs:
        gradients = torch.autograd.grad(
            policy.evaluate([sample]).logprobs.sum(), [p for _, p in named], allow_unused=True
        )
        for (name, _), gradient in zip(named, gradients, strict=True):
            if gradient is not None:
                total[name] += gradient**2 / 20
    for name, mean in total.items():
        expected = mean / mean.max() if mean.any() else mean
        torch.testing.assert_close(estimate[name], expected, rtol=1e-9, atol=1e-9)


def test_two_estimates_over_the_same_experience_are_equal():
    learner = trained()
    one, other = learner.estimate_fisher(), learner.estimate_fisher()
    assert one.keys() == {name for name, _ in learner.policy.named_trainable_parameters()}
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_only_experience_of_the_configuration_that_ended_is_used():
    mixed, pure = backend(), backend()
    taken = window(mixed.policy, ["a"] * 10 + ["b"] * 6)
    mixed.update(taken)
    pure.update(window(pure.policy, ["a"] * 10 + ["b"] * 6))
    kept = pure._recent[0]
    pure._recent[0] = type(kept)(kept.samples[10:], kept.rewards[10:], kept.regimes[10:])
    fisher, expected = mixed.estimate_fisher("b"), pure.estimate_fisher()
    assert all(torch.equal(fisher[name], expected[name]) for name in expected)
    assert not torch.equal(mixed.estimate_fisher("a")["trunk.0.weight"], expected["trunk.0.weight"])


def test_penalty_enters_the_step_as_lambda_fisher_offset():
    plain, held = trained(), trained()
    held.on_regime_shift(shift("a", "b"))
    (snapshot,) = held.snapshots
    with torch.no_grad():
        for p in held.policy.trainable_parameters():
            p.add_(0.25)
    parameters = held.policy.trainable_parameters()
    held.optimizer.zero_grad(set_to_none=True)
    reported = held._apply_auxiliary_regularization(held.batch_from(window(held.policy, ["b"])))
    gradient = torch.cat([p.grad.reshape(-1) for p in parameters])
    torch.testing.assert_close(gradient, 100.0 * snapshot.fisher * 0.25, rtol=1e-4, atol=1e-5)
    expected = 0.5 * 100.0 * (snapshot.fisher * 0.0625).sum().item()
    assert reported["ewc_penalty"] == pytest.approx(expected, rel=1e-4)
    assert plain._apply_auxiliary_regularization(plain.batch_from(window(plain.policy, ["b"]))) == {}


def test_penalty_pulls_weights_back_that_ppo_would_have_moved():
    def distance_after(strength):
        learner = trained(ewc_lambda=strength, max_grad_norm=1e9)
        learner.on_regime_shift(shift("a", "b"))
        for i in range(5):
            measured = learner.update(window(learner.policy, ["b"] * 16, seed=i))
        held = learner.snapshots[0]
        weights = torch.cat([p.detach().reshape(-1) for p in learner.policy.trainable_parameters()])
        return (held.fisher * (weights - held.anchor) ** 2).sum().item(), measured

    free, _ = distance_after(0.0)
    bound, measured = distance_after(1e4)
    assert bound < 0.2 * free
    assert 0.0 < measured["ewc_penalty_share"] <= 1.0
    assert measured["ewc_fisher_norm"] > 0.0
    assert measured["ewc_snapshots"] == 1.0


def test_online_mode_holds_one_snapshot_with_decayed_fisher_and_new_anchor():
    learner = trained(fisher_gamma=0.5)
    learner.consolidate()
    first = learner.snapshots[0]
    learner.update(window(learner.policy, ["a"] * 16, seed=3))
    fresh = torch.cat([f.reshape(-1) for f in learner.estimate_fisher().values()])
    learner.consolidate()
    (held,) = learner.snapshots
    torch.testing.assert_close(held.fisher, 0.5 * first.fisher + fresh)
    assert not torch.equal(held.anchor, first.anchor)


def test_multi_snapshot_mode_keeps_the_newest_few_each_with_full_strength():
    learner = trained(mode="multi_snapshot", max_snapshots=3)
    for _ in range(4):
        learner.consolidate()
    assert len(learner.snapshots) == 3
    with torch.no_grad():
        for p in learner.policy.trainable_parameters():
            p.add_(0.5)
    learner.optimizer.zero_grad(set_to_none=True)
    learner._apply_auxiliary_regularization(learner.batch_from(window(learner.policy, ["a"])))
    gradient = torch.cat([p.grad.reshape(-1) for p in learner.policy.trainable_parameters()])
    total = sum(snapshot.fisher for snapshot in learner.snapshots)
    torch.testing.assert_close(gradient, 100.0 * total * 0.5, rtol=1e-4, atol=1e-5)


def test_fisher_gamma_and_the_discount_are_two_numbers():
    learner = backend(gamma=0.7, fisher_gamma=0.3)
    assert (learner.config.gamma, learner.ewc.fisher_gamma) == (0.7, 0.3)
    assert backend(gamma=0.7).ewc.fisher_gamma == backend().ewc.fisher_gamma


def test_a_shift_before_the_first_update_is_a_counted_no_op_said_once(caplog):
    learner = backend()
    with caplog.at_level(logging.WARNING):
        learner.on_regime_shift(shift("a", "b"))
        learner.on_regime_shift(shift("b", "c"))
    assert learner.skipped_consolidations == 2
    assert not learner.has_snapshots
    assert [record.message for record in caplog.records if "no experience" in record.message] == [
        caplog.records[0].message
    ]


def test_worlds_that_leave_one_configuration_together_are_consolidated_once():
    learner = trained(mode="multi_snapshot")
    for world in range(4):
        learner.on_regime_shift(shift("a", "b", world=world))
    assert len(learner.snapshots) == 1


def test_more_windows_can_count_as_recent():
    learner = backend(fisher_windows=2)
    for i in range(3):
        learner.update(window(learner.policy, ["a"] * 8, seed=i))
    assert len(learner._pool("a")[0]) == 16


def test_a_scope_that_matches_nothing_is_refused_before_training():
    with pytest.raises(ConfigError, match=r"lora_only.*trunk\.0\.weight.*use 'all'"):
        backend(parameter_scope=ParameterScope.LORA_ONLY)


def test_a_fisher_of_zeros_is_refused():
    learner = trained(parameter_scope="value_head_only")
    with pytest.raises(FisherError, match="zero everywhere"):
        learner.consolidate()
    assert not learner.has_snapshots


def test_an_estimate_without_experience_is_refused():
    with pytest.raises(FisherError, match="no experience"):
        backend().consolidate()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ewc_lambda": -1.0}, "ewc_lambda -1.0"),
        ({"fisher_samples": 0}, "fisher_samples 0"),
        ({"max_snapshots": 0}, "max_snapshots 0"),
        ({"fisher_gamma": 1.5}, "fisher_gamma 1.5"),
        ({"mode": "onlin"}, "did you mean 'online'"),
        ({"fisher_sample_mix": {"solvd": 1.0}}, "'solvd'"),
        ({"fisher_lambda": 1.0}, "fisher_gamma"),
        ({"gama": 1.0}, "did you mean 'gamma'"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        backend(**options)


def test_a_restored_backend_goes_on_bit_for_bit(tmp_path):
    learner = trained(mode="multi_snapshot")
    learner.consolidate()
    learner.save_checkpoint(tmp_path)
    restored = backend(small_policy(seed=5), mode="multi_snapshot")
    restored.load_checkpoint(tmp_path)
    for one in (learner, restored):
        one.update(window(one.policy, ["b"] * 16, seed=2))
        one.on_regime_shift(shift("b", "c"))
        one.update(window(one.policy, ["c"] * 16, seed=3))
    assert len(restored.snapshots) == 2
    for mine, theirs in zip(
        learner.policy.trainable_parameters(), restored.policy.trainable_parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)


def test_a_checkpoint_of_another_scope_is_refused(tmp_path):
    trained().save_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="scope"):
        backend(parameter_scope="value_head_only").load_checkpoint(tmp_path)


def language_learner(model=None, **options):
    model = model or tiny_model(TinyConfig())
    policy = LanguagePolicy(model, tiny_tokenizer())
    return EWCBackend(
        policy, **{"parameter_scope": "all", "fisher_seed": 0, "fisher_samples": 6, **PPO, **options}
    )


def language_window(policy, count=6):
    actions = policy.act_batch([f"state {i}" for i in range(count)])
    return RolloutWindow(
        [
            Transition(i, f"state {i}", a, float(i % 2), False, False, "a", False)
            for i, a in enumerate(actions)
        ]
    )


def test_language_policy_fisher_is_batched_and_equals_the_loop(monkeypatch):
    learner = language_learner()
    learner.batch_from(language_window(learner.policy))
    batched = learner.estimate_fisher()
    sizes = []
    evaluate = learner.policy.evaluate
    monkeypatch.setattr(learner.policy, "evaluate", lambda s: sizes.append(len(s)) or evaluate(s))
    learner.estimate_fisher()
    assert max(sizes) > 1
    monkeypatch.setattr(
        "skyfall_torch.ewc.mean_squared_gradients",
        lambda parameters, modules, likelihood, counts: loop_fisher(parameters, likelihood, counts),
    )
    looped = learner.estimate_fisher()
    for name, fisher in looped.items():
        torch.testing.assert_close(batched[name], fisher, rtol=2e-3, atol=2e-5)


def test_attention_dropout_makes_the_reference_pass_a_draw_and_disabled_does_not():
    model = tiny_model(TinyConfig())
    model.config.attention_dropout = 0.3
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.3
    differences = {}
    for mode in ("disabled", "reference"):
        learner = language_learner(model, fisher_dropout=mode)
        learner.batch_from(language_window(learner.policy))
        one, other = learner.estimate_fisher(), learner.estimate_fisher()
        differences[mode] = max((one[n] - other[n]).abs().max().item() for n in one)
    assert differences["disabled"] == 0.0
    assert differences["reference"] > 0.0
