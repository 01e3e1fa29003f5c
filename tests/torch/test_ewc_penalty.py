import pytest
import torch

from skyfall_torch.ewc_penalty import (
    ParameterScope,
    PenaltyGradient,
    Snapshot,
    accumulate_online,
    build_parameter_filter,
    flatten,
    penalty_gradient,
)

NAMES = ["base.q_proj.weight", "base.q_proj.lora_A.default.weight", "v_head.summary.weight"]


@pytest.mark.parametrize(
    ("scope", "protected"),
    [
        ("lora_only", NAMES[1:2]),
        ("value_head_only", NAMES[2:]),
        ("lora_and_value_head", NAMES[1:]),
        (ParameterScope.ALL, NAMES),
    ],
)
def test_each_scope_matches_its_naming_convention(scope, protected):
    assert list(filter(build_parameter_filter(scope), NAMES)) == protected


def test_an_unknown_scope_is_refused():
    with pytest.raises(ValueError, match="everything"):
        build_parameter_filter("everything")


def make_parameters(seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(3, 2), (2,), (4,)]
    return [torch.nn.Parameter(torch.randn(s, generator=generator, dtype=torch.float64)) for s in shapes]


def make_snapshot(seed):
    anchor = flatten(make_parameters(seed))
    return Snapshot(anchor=anchor, fisher=flatten(make_parameters(seed + 50)).square())


def test_penalty_on_hand_computed_numbers():
    snapshot = Snapshot(anchor=torch.tensor([1.0, 2.0]), fisher=torch.tensor([0.5, 1.0]))
    penalty, gradient = penalty_gradient(torch.tensor([3.0, 1.0]), [snapshot], 4.0)
    # ½·4·(0.5·2² + 1·1²) = 6; 4·(0.5·2, 1·(−1)) = (4, −4)
    assert penalty.item() == 6.0
    assert gradient.tolist() == [4.0, -4.0]


def test_gradient_in_grad_is_lambda_fisher_times_offset_as_autograd_sees_it():
    parameters, snapshots = make_parameters(), [make_snapshot(1), make_snapshot(2)]
    weights = [p.detach().clone().requires_grad_() for p in parameters]
    flat = torch.cat([w.reshape(-1) for w in weights])
    loss = sum(0.5 * 7.0 * (s.fisher * (flat - s.anchor) ** 2).sum() for s in snapshots)
    expected = torch.autograd.grad(loss, weights)
    penalty = PenaltyGradient(parameters).add(snapshots, 7.0)
    assert penalty.item() == pytest.approx(loss.item(), rel=1e-12)
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-13, atol=1e-13)


def test_penalty_gradient_adds_to_what_the_loss_left_there():
    parameters, snapshot = make_parameters(), make_snapshot(1)
    parameters[1].grad = torch.full((2,), 100.0, dtype=torch.float64)
    alone = make_parameters()
    PenaltyGradient(alone).add([snapshot], 2.0)
    PenaltyGradient(parameters).add([snapshot], 2.0)
    torch.testing.assert_close(parameters[1].grad, alone[1].grad + 100.0)
    torch.testing.assert_close(parameters[0].grad, alone[0].grad)


def test_three_snapshots_of_one_task_act_with_three_lambda():
    weights, snapshot = flatten(make_parameters()), make_snapshot(4)
    once, once_gradient = penalty_gradient(weights, [snapshot], 3.0 * 5.0)
    thrice, thrice_gradient = penalty_gradient(weights, [snapshot] * 3, 5.0)
    torch.testing.assert_close(thrice, once)
    torch.testing.assert_close(thrice_gradient, once_gradient)


def test_online_mode_decays_the_fisher_and_replaces_the_anchor():
    old, new = make_snapshot(1), make_snapshot(2)
    held = accumulate_online(old, new, 0.25)
    torch.testing.assert_close(held.fisher, 0.25 * old.fisher + new.fisher)
    assert held.anchor is new.anchor
    assert accumulate_online(None, new, 0.25) is new


def test_a_snapshot_holds_two_numbers_a_parameter():
    parameters = make_parameters()
    snapshot = Snapshot(anchor=flatten(parameters), fisher=flatten(parameters))
    held = snapshot.anchor.untyped_storage().nbytes() + snapshot.fisher.untyped_storage().nbytes()
    assert held == 2 * sum(p.numel() * p.element_size() for p in parameters)


def test_a_snapshot_of_two_lengths_is_refused():
    with pytest.raises(ValueError, match="one length"):
        Snapshot(anchor=torch.zeros(3), fisher=torch.zeros(2))
