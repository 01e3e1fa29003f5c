import math
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from skyfall_core.errors import CheckpointError, ConfigError, SpaceError
from skyfall_torch.actor_critic import (
    ActorCriticConfig,
    ActorCriticPolicy,
    actor_critic,
)
from skyfall_torch.actor_critic_net import RunningScale
from skyfall_torch.errors import ObservationError
from skyfall_torch.interface import SupportsActBatch, SupportsRenewal, SupportsValues, TrainablePolicy
from skyfall_torch.remedies.redo import dormant_share, unit_scores

BOX = spaces.Box(-1.0, 1.0, (4,), np.float32)
ACTIONS = {
    "discrete": spaces.Discrete(3, start=5),
    "multi_discrete": spaces.MultiDiscrete([2, 4]),
    "box": spaces.Box(-0.5, 0.5, (2, 3), np.float32),
}


def build(action="discrete", observation=BOX, **options):
    return actor_critic(observation, ACTIONS[action], **options)


def observations(count, seed=0):
    return list(np.random.default_rng(seed).uniform(-1, 1, (count, 4)).astype(np.float32))


@pytest.fixture(params=list(ACTIONS))
def action(request):
    return request.param


def test_it_is_a_trainable_policy_that_acts_in_batches():
    assert isinstance(build(), TrainablePolicy)
    for capability in (SupportsActBatch, SupportsValues, SupportsRenewal):
        assert isinstance(build(), capability)


@pytest.mark.parametrize("shared", [False, True])
def test_what_was_acted_on_is_scored_again_with_the_same_numbers(action, shared):
    policy = build(action, shared_trunk=shared, initial_log_std=-0.3)
    logprobs, values = [], []
    for observation in observations(40):
        assert ACTIONS[action].contains(policy.act(observation))
        logprobs.append(policy.last_logprob)
        values.append(policy.last_value)
    samples = policy.take_generated()
    evaluation = policy.evaluate(samples)
    assert evaluation.logprobs.shape == evaluation.mask.shape == (40, 1)
    assert evaluation.mask.all()
    torch.testing.assert_close(evaluation.logprobs[:, 0], torch.tensor(logprobs), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(evaluation.values, torch.tensor(values), rtol=1e-5, atol=1e-5)
    assert [sample.length for sample in samples] == [1] * 40
    assert {sample.action_start("all") for sample in samples} == {0}
    assert policy.take_generated() == []


def test_scores_equal_torch_distributions(action):
    policy = build(action, initial_log_std=0.4)
    for observation in observations(20):
        policy.act(observation)
    samples = policy.take_generated()
    logprobs, entropies, _ = policy.score(samples)
    outputs, log_std, _ = policy.net(torch.stack([torch.from_numpy(s.row) for s in samples]))
    recorded = torch.from_numpy(np.array([s.action for s in samples]))
    if action == "box":
        normal = torch.distributions.Normal(outputs, log_std.exp())
        expected, entropy = normal.log_prob(recorded).sum(1), normal.entropy().sum(1)
    else:
        sizes = [3] if action == "discrete" else [2, 4]
        choices = [torch.distributions.Categorical(logits=part) for part in outputs.split(sizes, 1)]
        expected = sum(choice.log_prob(recorded[:, i]) for i, choice in enumerate(choices))
        entropy = sum(choice.entropy() for choice in choices)
    torch.testing.assert_close(logprobs, expected)
    torch.testing.assert_close(entropies, entropy)


def test_batch_and_single_acting_draw_from_the_same_distribution_and_record_alike(action):
    single, batch = build(action), build(action)
    one = [single.act(observation) for observation in observations(30)]
    many = batch.act_batch(observations(30))
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert batch.last_logprob == pytest.approx(
        single.evaluate(single.take_generated()).logprobs[:, 0].tolist(), abs=1e-5
    )
    assert len(batch.take_generated()) == 30


def test_categorical_draws_follow_their_probabilities():
    policy = build(seed=3)
    with torch.no_grad():
        policy.net.actor.weight.zero_()
        policy.net.actor.bias.copy_(torch.log(torch.tensor([0.2, 0.7, 0.1])))
    counts = Counter(policy.act_batch(observations(1) * 20000))
    assert [counts[a] / 20000 for a in (5, 6, 7)] == pytest.approx([0.2, 0.7, 0.1], abs=0.015)


def test_gaussian_draws_have_the_learned_mean_and_scale_and_are_clipped_for_the_environment():
    policy = build("box", initial_log_std=math.log(0.3))
    actions = np.stack(policy.act_batch(observations(1) * 5000))
    recorded = np.stack([sample.action for sample in policy.take_generated()])
    assert recorded.std(0) == pytest.approx(np.full(6, 0.3), abs=0.02)
    assert np.abs(actions).max() == 0.5
    assert np.abs(recorded).max() > 0.6


def test_acting_sees_weights_an_optimizer_stepped_in_place():
    policy = build()
    policy.act(observations(1)[0])
    before = policy.last_value
    with torch.no_grad():
        for parameter in policy.trainable_parameters():
            parameter.add_(0.1)
    policy.act(observations(1)[0])
    assert policy.last_value != before
    values = policy.evaluate(policy.take_generated()).values
    assert values[1].item() == pytest.approx(policy.last_value, abs=1e-5)


def test_acting_sees_weights_that_were_cast():
    policy = build()
    policy.act(observations(1)[0])
    policy.double()
    policy.act(observations(1)[0])
    assert policy.evaluate(policy.take_generated()).values.dtype == torch.float64


def test_draws_neither_change_nor_follow_the_process_wide_generators():
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the global state is the subject
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = [build(seed=1).act(o) for o in observations(5)]
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    torch.manual_seed(99)
    assert [build(seed=1).act(o) for o in observations(5)] == first


def test_seeds_decide_weights_and_actions():
    same = [build(seed=4).act_batch(observations(50)) for _ in range(2)]
    assert same[0] == same[1]
    assert build(seed=5).act_batch(observations(50)) != same[0]
    assert not torch.equal(build(seed=4).net.actor.weight, build(seed=5).net.actor.weight)


def test_initial_weights_are_orthogonal_with_the_documented_gains():
    net = build(hidden_sizes=(8, 8)).net
    square = net.trunk[2].weight
    torch.testing.assert_close(square @ square.T, 2.0 * torch.eye(8), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        net.actor.weight @ net.actor.weight.T, 1e-4 * torch.eye(3), rtol=1e-4, atol=1e-9
    )
    assert not any(p.any() for n, p in net.named_parameters() if n.endswith("bias"))


def test_critic_parameters_are_named_as_the_interface_says():
    separate = [name for name, _ in build().named_trainable_parameters() if name.startswith("v_head")]
    shared = [
        name for name, _ in build(shared_trunk=True).named_trainable_parameters() if name.startswith("v_head")
    ]
    assert len(separate) == 6
    assert len(shared) == 2


def test_observation_scaling_is_the_running_mean_and_deviation():
    scale, rows = RunningScale(4), observations(50)
    outputs = [scale.observe(row) for row in rows]
    stacked = np.stack(rows).astype(np.float64)
    expected = (rows[-1] - stacked.mean(0)) / stacked.std(0)
    np.testing.assert_allclose(outputs[-1], expected, rtol=1e-4)
    np.testing.assert_allclose(outputs[0], np.zeros(4))
    np.testing.assert_allclose(scale.scaled(np.full(4, 1e6, np.float32)), np.full(4, 10.0))


def test_scaled_rows_are_recorded_as_the_network_saw_them():
    policy = build(normalize_observations=True)
    for observation in observations(20):
        policy.act(observation)
    value, samples = policy.last_value, policy.take_generated()
    assert policy.evaluate(samples[-1:]).values.item() == pytest.approx(value, abs=1e-5)
    assert not np.allclose(samples[-1].row, observations(20)[-1])


def test_saved_policy_acts_the_same_after_loading(tmp_path, action):
    policy = build(action, normalize_observations=True, seed=1)
    policy.act_batch(observations(30))
    policy.save(tmp_path)
    restored = build(action, normalize_observations=True, seed=2, checkpoint=tmp_path)
    restored.load_acting_state(policy.acting_state())
    assert len(restored.take_generated()) == len(policy.take_generated()) == 30
    for observation in observations(700, seed=5):
        np.testing.assert_array_equal(policy.act(observation), restored.act(observation))


def test_acting_state_survives_a_file_without_pickled_code(tmp_path):
    policy = build()
    policy.act_batch(observations(3))
    torch.save(policy.acting_state(), tmp_path / "state.pt")
    restored = build(seed=9)
    restored.load_acting_state(torch.load(tmp_path / "state.pt", weights_only=True))
    kept, mine = restored.take_generated(), policy.take_generated()
    for one, other in zip(kept, mine, strict=True):
        np.testing.assert_array_equal(one.row, other.row)
        np.testing.assert_array_equal(one.action, other.action)


def test_a_checkpoint_for_other_spaces_layers_or_none_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="not a saved actor-critic"):
        build(checkpoint=tmp_path)
    build().save(tmp_path)
    with pytest.raises(CheckpointError, match="MultiDiscrete"):
        build("multi_discrete", checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="32"):
        build(hidden_sizes=(32,), checkpoint=tmp_path)
    (tmp_path / "actor_critic.safetensors").write_bytes(b"torn")
    with pytest.raises(CheckpointError, match="not a saved actor-critic"):
        build(checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("observation", "act", "message"),
    [
        (spaces.Dict({"a": BOX}), spaces.Discrete(2), "FlattenObservation"),
        (BOX, spaces.Text(5), "Text"),
        (BOX, spaces.Box(0, 5, (1,), np.int64), "Box of at least one float"),
        (BOX, spaces.Box(0, 1, (0,)), "Box of at least one float"),
        (spaces.Box(0, 1, (0,)), spaces.Discrete(2), "no number"),
        (BOX, spaces.MultiDiscrete([[2, 2]]), "one-dimensional"),
    ],
)
def test_spaces_it_cannot_handle_are_named_with_what_it_can(observation, act, message):
    with pytest.raises(SpaceError, match=message):
        actor_critic(observation, act)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_observation_that_is_not_finite_is_refused_before_it_counts(value):
    policy = build(normalize_observations=True)
    policy.act(np.ones(4))
    before = policy.scaling.mean.clone()
    with pytest.raises(ObservationError, match=rf"holds {value} at \(flat\) index 2"):
        policy.act(np.array([0.0, 1.0, value, 0.0]))
    assert torch.equal(policy.scaling.mean, before)
    assert len(policy.take_generated()) == 1


def test_huge_finite_observations_are_acted_on():
    assert build().act(np.full(4, 1e19)) in ACTIONS["discrete"]


def test_an_observation_of_another_shape_is_refused():
    with pytest.raises(SpaceError, match=r"\(3,\).*\(4,\)"):
        build().act(np.zeros(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hiden_sizes": (3,)}, "did you mean 'hidden_sizes'"),
        ({"hidden_sizes": ()}, "hidden_sizes"),
        ({"activation": "gelu"}, "tanh"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        build(**options)


def test_evaluating_nothing_is_an_error():
    with pytest.raises(ValueError, match="no samples"):
        build().evaluate([])


def test_discrete_observations_are_one_hot():
    policy = build(observation=spaces.Discrete(4, start=1))
    policy.act(3)
    assert policy.take_generated()[0].row.tolist() == [0.0, 0.0, 1.0, 0.0]


def test_values_of_unacted_observations_leave_no_trace():
    policy = build(normalize_observations=True)
    policy.act(observations(1)[0])
    count = policy.scaling.count.clone()
    values = policy.values_of(observations(3))
    assert values.shape == (3,)
    assert len(policy.take_generated()) == 1
    assert torch.equal(policy.scaling.count, count)


def test_effective_rank_is_reported_once_every_64_actions():
    policy = build(capture_effective_rank=True)
    ranks = []
    for observation in observations(130):
        policy.act(observation)
        ranks.append(policy.last_effective_rank)
    assert [i for i, rank in enumerate(ranks) if rank is not None] == [63, 127]
    assert 1.0 < ranks[63] <= 64.0


def test_dormant_units_are_those_that_hardly_respond():
    alive, dead = torch.ones(5, 3), torch.zeros(5, 1)
    layer = torch.cat([alive, dead], 1)
    assert unit_scores(layer).tolist() == pytest.approx([4 / 3, 4 / 3, 4 / 3, 0.0])
    assert dormant_share([layer]) == 0.25
    assert dormant_share([torch.zeros(5, 4)]) == 1.0


@pytest.mark.parametrize("shared", [False, True])
def test_hidden_activations_cover_every_hidden_layer(shared):
    policy = build(shared_trunk=shared, activation="relu")
    policy.act_batch(observations(6))
    activations = policy.hidden_activations(policy.take_generated())
    assert [tuple(a.shape) for a in activations] == [(6, 64)] * (2 if shared else 4)
    assert all(bool((a >= 0).all()) for a in activations)


def test_it_acts_in_gymnasium_environments():
    for name in ("CartPole-v1", "Pendulum-v1"):
        env = gym.make(name)
        policy = ActorCriticPolicy(env.observation_space, env.action_space, ActorCriticConfig(seed=0))
        observation, _ = env.reset(seed=0)
        for _ in range(5):
            observation, *_ = env.step(policy.act(observation))
        assert len(policy.take_generated()) == 5
        env.close()
