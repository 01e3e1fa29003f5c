import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from skyfall_core.advantage import GAEMode
from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.errors import CheckpointError, ConfigError
from skyfall_torch.actor_critic import actor_critic
from skyfall_torch.lcm import LCMBackend, RegimeContextEncoder, consistency_loss, state_features
from skyfall_torch.lcm_warmup_file import save_warmup
from skyfall_torch.policy import LanguagePolicy
from skyfall_torch.tiny import TinyConfig, tiny_model, tiny_tokenizer

SHAPE = {"context_steps": 3, "latent_dim": 4, "hidden_dim": 8, "state_dim": 300}
PPO = {"epochs": 2, "minibatch_size": 4, "learning_rate": 1e-2, "action_tokens": "all"}
STATES = [{"cash": 1}, {"cash": 2, "debt": {"due": 3}}, {"staff": [1, 2]}, {"cash": 5, "staff": []}]


class NumbersOfKeys:
    """An actor-critic that reads how many keys a mapping has."""

    def __init__(self):
        self._inner = actor_critic(spaces.Box(0, 9, (1,), np.float32), spaces.Discrete(2), hidden_sizes=(4,))

    def act(self, observation):
        return self._inner.act(np.array([len(observation)], np.float32))

    def __getattr__(self, name):
        return getattr(self._inner, name)


def backend(policy=None, **options):
    return LCMBackend(policy or NumbersOfKeys(), **{"encoder_shape": SHAPE, **PPO, **options})


def window(policy, states, *, terminals=(), streams=None):
    transitions = [
        Transition(i, state, policy.act(state), 0.5 * i, i in terminals, False, "a", False)
        for i, state in enumerate(states)
    ]
    return RolloutWindow(transitions, streams=streams)


def spelled_out(states, context_steps=3, rewards=None):
    """Full-width left-padded window of the last observations, as `forward` takes it."""
    rows = torch.zeros(1, context_steps, 301)
    recent = list(enumerate(states))[-context_steps:]
    for slot, (i, state) in enumerate(recent, start=context_steps - len(recent)):
        rows[0, slot, :300] = torch.tensor(state_features(state, width=300))
        rows[0, slot, 300] = 0.0 if rewards is None else rewards[i]
    return rows


def test_advantages_are_episodic_by_default_and_switchable():
    assert backend().config.gae is GAEMode.EPISODIC
    assert backend(gae="degenerate").config.gae is GAEMode.DEGENERATE


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_acting_window_is_left_padded_and_slides(count):
    learner = backend()
    for state in STATES[:count]:
        learner.observe(state)
    latent, logits = learner.encode_recent()
    expected_latent, expected_logits = learner.encoder(spelled_out(STATES[:count]))
    torch.testing.assert_close(latent, expected_latent[0])
    torch.testing.assert_close(logits, expected_logits[0])


def test_prefix_words_the_classifiers_two_likeliest_regimes():
    learner = backend()
    with torch.no_grad():
        learner.encoder.regime_head.weight.zero_()
        learner.encoder.regime_head.bias.copy_(torch.tensor([0.04, 0.19, 0.03, 0.68, 0.03, 0.03]).log())
    learner.observe(STATES[0])
    assert learner.regime_prefix() == "[REGIME: financial_pressure(0.68) | edi_spike(0.19)]"


def test_worlds_have_windows_of_their_own():
    learner = backend()
    learner.observe(STATES[0], world=0)
    learner.observe(STATES[2], world=1)
    expected = learner.encoder(spelled_out(STATES[2:3]))[0][0]
    torch.testing.assert_close(learner.encode_recent(world=1)[0], expected)


def test_a_shift_forgets_the_context():
    learner = backend()
    learner.observe(STATES[1])
    learner.on_regime_shift({"previous": "a", "current": "b", "origin": None, "step": 4})
    empty = learner.encoder(torch.zeros(1, 3, 301))[0][0]
    torch.testing.assert_close(learner.encode_recent()[0], empty)


def slow_consistency(learner, histories):
    """Mean over neighbouring steps of one episode, every window spelled out."""
    latents = [learner.encoder(spelled_out(history))[0][0] for history, _ in histories]
    lengths = [n for _, n in histories if n]
    return consistency_loss(torch.stack(latents), lengths)


def test_update_slides_the_same_windows_as_acting_and_stops_pairs_at_episode_ends():
    learner = backend(epochs=1, minibatch_size=8, learning_rate=1e-12)
    reported = learner.update(window(learner.policy, STATES, terminals={1}))
    histories = [(STATES[: i + 1], [0, 2, 0, 2][i]) for i in range(4)]
    assert reported["lcm_consistency"] == pytest.approx(slow_consistency(learner, histories).item(), abs=1e-6)


def test_context_reaches_over_the_edge_of_an_update_window():
    learner = backend(epochs=1, minibatch_size=8, learning_rate=1e-12)
    learner.update(window(learner.policy, STATES[:2]))
    reported = learner.update(window(learner.policy, STATES[2:]))
    histories = [(STATES[:3], 0), (STATES[:4], 2)]
    assert reported["lcm_consistency"] == pytest.approx(slow_consistency(learner, histories).item(), abs=1e-6)


def test_worlds_are_encoded_stream_by_stream():
    learner = backend(epochs=1, minibatch_size=8, learning_rate=1e-12)
    mixed = [STATES[0], STATES[2], STATES[1], STATES[3]]
    reported = learner.update(window(learner.policy, mixed, streams=(range(0, 4, 2), range(1, 4, 2))))
    histories = [(STATES[:1], 0), (STATES[:2], 2), (STATES[2:3], 0), (STATES[2:4], 2)]
    assert reported["lcm_consistency"] == pytest.approx(slow_consistency(learner, histories).item(), abs=1e-6)


def test_update_trains_the_encoder_and_leaves_the_regime_head():
    learner = backend()
    before = {name: p.clone() for name, p in learner.encoder.named_parameters()}
    learner.update(window(learner.policy, STATES * 2))
    moved = {name for name, p in learner.encoder.named_parameters() if not torch.equal(p, before[name])}
    assert moved >= {"input.weight", "lstm.weight_ih_l0", "latent.weight"}
    assert not any(name.startswith("regime_head") for name in moved)


def test_consistency_falls_when_it_is_trained():
    learner = backend(consistency_coeff=10.0, max_grad_norm=1e9)
    reported = [learner.update(window(learner.policy, STATES * 4))["lcm_consistency"] for _ in range(6)]
    assert reported[-1] < 0.5 * reported[0]


def test_reward_input_is_zero_by_default_and_the_previous_steps_reward_on_request():
    fed, dead = backend(reward_input=True), backend()
    for learner in (fed, dead):
        learner.batch_from(window(learner.policy, STATES))
    assert dead._context[0].steps[:, -1].tolist() == [0.0] * len(dead._context[0].steps)
    assert sorted(fed._context[0].steps[:, -1].tolist()) == [0.0, 0.0, 0.5, 1.0]
    fed.observe(STATES[0], 7.0)
    expected = fed.encoder(spelled_out(STATES[:1], rewards=[7.0]))[0][0]
    torch.testing.assert_close(fed.encode_recent()[0], expected)


def test_arrays_have_no_keys_and_train_all_the_same():
    policy = actor_critic(spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(2))
    learner = backend(policy)
    states = [np.array([i, -i], np.float32) for i in range(8)]
    assert math.isfinite(learner.update(window(policy, states))["lcm_consistency"])


def test_an_observation_that_is_not_json_like_is_refused():
    with pytest.raises(TypeError, match="'tool' is a object"):
        backend().observe({"tool": object()})


def test_a_warmup_file_is_loaded_with_its_report(tmp_path, caplog):
    save_warmup(RegimeContextEncoder(**SHAPE, regimes=("a", "b", "c")), tmp_path / "warm.safetensors")
    learner = backend(warmup=tmp_path / "warm.safetensors")
    assert set(learner.warmup_report.dropped) == {"regime_head.weight", "regime_head.bias"}
    assert caplog.text.count("was not taken over") == 2
    assert "regime_head.weight was not taken over: shape (3, " in caplog.text


def test_a_warmup_file_with_another_k_is_refused(tmp_path):
    save_warmup(RegimeContextEncoder(**{**SHAPE, "context_steps": 9}), tmp_path / "warm.safetensors")
    with pytest.raises(CheckpointError, match="context_steps is 9 in the file and 3 here"):
        backend(warmup=tmp_path / "warm.safetensors")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"consistency_coeff": -1.0}, "consistency_coeff"),
        ({"top_k": 0}, "top_k 0"),
        ({"encoder_shape": {"context_step": 3}}, "encoder_shape"),
        ({"encoder_shape": {"latent_dim": 0}}, "latent_dim is 0"),
        ({"inject_prefix": True}, "builds no prompts"),
        ({"injectprefix": True}, "did you mean 'inject_prefix'"),
        ({"encoder": RegimeContextEncoder(**SHAPE)}, "leave one out"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        backend(**options)


def test_a_passed_encoder_is_trained_and_rules_k():
    encoder = RegimeContextEncoder(**{**SHAPE, "context_steps": 5})
    learner = LCMBackend(NumbersOfKeys(), encoder=encoder, **PPO)
    assert learner.context_steps == 5
    assert any(p is encoder.input.weight for p in learner.trainable_parameters())


def test_a_restored_backend_goes_on_bit_for_bit(tmp_path):
    learner = backend()
    learner.update(window(learner.policy, STATES))
    learner.observe(STATES[3])
    learner.save_checkpoint(tmp_path)
    restored = backend(encoder_seed=4)
    restored.load_checkpoint(tmp_path)
    assert restored.regime_prefix() == learner.regime_prefix()
    for one in (learner, restored):
        one.update(window(one.policy, STATES))
    for mine, theirs in zip(learner.trainable_parameters(), restored.trainable_parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.fixture(scope="module")
def language():
    policy = LanguagePolicy(tiny_model(TinyConfig()), tiny_tokenizer())
    return LCMBackend(policy, encoder_shape=SHAPE, inject_prefix=True, **PPO)


def test_an_observation_behind_a_cut_has_no_prefix_to_be_judged_with():
    policy = LanguagePolicy(tiny_model(TinyConfig(hidden_size=16, heads=2)), tiny_tokenizer())
    with pytest.raises(ConfigError, match=r"inject_prefix.*use 'terminal'"):
        LCMBackend(policy, encoder_shape=SHAPE, inject_prefix=True, truncation="bootstrap", **PPO)


def text_of(learner, sample):
    return learner.policy.tokenizer.decode(sample.prompt_ids.tolist())


def test_injected_prefix_is_in_the_prompt_acted_on_and_in_the_one_scored_again(language):
    language.on_regime_shift({"previous": "a", "current": "b", "step": 0})
    action = language.policy.act(STATES[0])
    expected = language.regime_prefix()
    (sample,) = language.policy.take_generated()
    assert f"{expected}\n" in text_of(language, sample)
    assert '"cash": 1' in text_of(language, sample)
    language.policy._inner._generated.append(sample)
    transition = Transition(0, STATES[0], action, 1.0, False, False, "a", False)
    batch = language.batch_from(RolloutWindow([transition]))
    assert torch.equal(batch.samples[0].prompt_ids, sample.prompt_ids)
    assert math.isfinite(float(language.policy.evaluate(batch.samples).logprobs.detach().sum()))


def test_injected_prefixes_of_several_worlds_come_from_their_own_contexts(language):
    language.on_regime_shift({"previous": "a", "current": "b", "step": 0})
    for states in (STATES[:2], STATES[2:4]):
        language.policy.act_batch(states)
    samples = language.policy.take_generated()[2:]
    for world, sample in enumerate(samples):
        alone = LCMBackend(NumbersOfKeys(), encoder=language.encoder, **PPO)
        alone.observe(STATES[world])
        alone.observe(STATES[2 + world])
        assert f"{alone.regime_prefix()}\n" in text_of(language, sample)
