import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.errors import ConfigError
from skyfall_torch.actor_critic import actor_critic
from skyfall_torch.ewc import EWCBackend
from skyfall_torch.ppo import PPOBackend
from skyfall_torch.remedies.l2_init import add_l2_init_gradient
from skyfall_torch.remedies.redo import recycle_dormant_units
from skyfall_torch.remedies.shrink_perturb import shrink_and_perturb

SHIFT = {"previous": "a", "current": "b", "origin": None, "step": 8}


def learner(kind=PPOBackend, *, activation="relu", shared_trunk=False, **options):
    policy = actor_critic(
        spaces.Box(-1, 1, (3,), np.float32),
        spaces.Discrete(3),
        hidden_sizes=(8, 8),
        activation=activation,
        shared_trunk=shared_trunk,
    )
    return kind(policy, **{"epochs": 1, "minibatch_size": 8, "action_tokens": "all", **options})


def window(policy, count=8):
    draws = np.random.default_rng(0)
    rows = []
    for i in range(count):
        observation = draws.uniform(-1, 1, 3).astype(np.float32)
        rows.append(Transition(i, observation, policy.act(observation), 1.0, False, False, "a", False))
    return RolloutWindow(rows)


def weights(one):
    return [p.detach().clone() for p in one.policy.trainable_parameters()]


def test_l2_init_adds_the_gradient_of_the_squared_distance():
    parameters = [nn.Parameter(torch.tensor([3.0, 1.0])), nn.Parameter(torch.tensor([2.0]))]
    parameters[0].grad = torch.ones(2)
    penalty = add_l2_init_gradient(parameters, [torch.tensor([1.0, 1.0]), torch.tensor([5.0])], 0.5)
    assert penalty.item() == pytest.approx(0.5 * (4 + 9))
    assert parameters[0].grad.tolist() == [3.0, 1.0]
    assert parameters[1].grad.tolist() == [-3.0]


def test_shrink_and_perturb_by_hand():
    parameter = nn.Parameter(torch.tensor([2.0, -4.0]))
    shrink_and_perturb([parameter], [torch.tensor([1.0, 1.0])], shrink=0.5, perturb=0.1)
    assert parameter.tolist() == pytest.approx([1.1, -1.9])
    with pytest.raises(ValueError, match=r"shrink 1\.5"):
        shrink_and_perturb([parameter], [torch.ones(2)], shrink=1.5, perturb=0.0)


def test_a_shift_shrinks_and_perturbs_only_on_request():
    plain, renewed = learner(), learner(shrink=0.5)
    before = weights(renewed)
    for one in (plain, renewed):
        one.on_regime_shift(SHIFT)
    for old, same, new in zip(before, weights(plain), weights(renewed), strict=True):
        assert torch.equal(old, same)
        torch.testing.assert_close(new, 0.5 * old)


def test_perturbation_is_a_fresh_draw_that_repeats_with_the_seed():
    one, other = learner(shrink=0.0, perturb=1.0), learner(shrink=0.0, perturb=1.0)
    before = weights(one)
    for renewed in (one, other):
        renewed.on_regime_shift(SHIFT)
    assert all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))
    assert not torch.equal(weights(one)[0], before[0])
    torch.testing.assert_close(weights(one)[2] @ weights(one)[2].T, 2 * torch.eye(8), atol=1e-5, rtol=1e-5)


def test_ewc_anchors_the_weights_before_they_are_perturbed():
    one = learner(EWCBackend, parameter_scope="all", shrink=0.5)
    one.update(window(one.policy))
    before = torch.cat([w.reshape(-1) for w in weights(one)])
    one.on_regime_shift(SHIFT)
    assert torch.equal(one.snapshots[0].anchor, before)
    torch.testing.assert_close(torch.cat([w.reshape(-1) for w in weights(one)]), 0.5 * before)


def dead_unit_network():
    torch.manual_seed(0)
    first, second = nn.Linear(3, 4), nn.Linear(4, 2)
    with torch.no_grad():
        first.bias.fill_(3.0)
        first.weight[1] = 0.0
        first.bias[1] = -1.0
    inputs = torch.randn(20, 3)
    return first, second, inputs


def test_dormant_units_restart_without_changing_the_output():
    first, second, inputs = dead_unit_network()
    before = second(torch.relu(first(inputs)))
    others = first.weight[[0, 2, 3]].clone()
    state = {first.weight: {"exp_avg": torch.ones(4, 3), "step": torch.tensor(1.0)}}
    recycled = recycle_dormant_units(
        [first], [[second]], [torch.relu(first(inputs))], threshold=0.0, optimizer_state=state
    )
    assert recycled == 1
    assert first.weight[1].abs().min() > 0.0
    assert first.bias[1] == 0.0
    assert not second.weight[:, 1].any()
    assert torch.equal(first.weight[[0, 2, 3]], others)
    assert state[first.weight]["exp_avg"].sum(1).tolist() == [3.0, 0.0, 3.0, 3.0]
    torch.testing.assert_close(second(torch.relu(first(inputs))), before)


@pytest.mark.parametrize("shared", [False, True])
def test_updates_recycle_on_schedule_and_keep_the_policy_as_it_was(shared):
    one = learner(redo_every=2, redo_threshold=0.0, shared_trunk=shared)
    with torch.no_grad():
        one.policy.net.trunk[2].bias[5] = -100.0
    first = one.update(window(one.policy))
    taken = window(one.policy)
    samples = list(one.policy._generated)
    second = one.update(taken)
    assert "redo_recycled" not in first
    assert second["redo_recycled"] >= 1.0
    assert one.policy.net.trunk[2].bias[5] == 0.0
    assert not one.policy.net.actor.weight[:, 5].any()
    assert torch.isfinite(one.policy.evaluate(samples).logprobs).all()


@pytest.mark.parametrize("options", [{"shrink": 0.5}, {"redo_every": 1}], ids=str)
def test_policies_that_cannot_be_renewed_are_named(options, monkeypatch):
    one = learner(**options)
    monkeypatch.setattr(one, "policy", object.__new__(type("FixedPolicy", (), {})))
    with pytest.raises(ConfigError, match="FixedPolicy cannot draw fresh weights"):
        one._renewable(next(iter(options)))
