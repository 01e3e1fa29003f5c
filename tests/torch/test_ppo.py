"""PPO against a plain script in float64, its switches, its guards and its checkpoints."""

import itertools
import math

import pytest
import torch

from skyfall_core.errors import CheckpointError, ConfigError
from skyfall_torch.checkpoints import STATE_FILE, write_state
from skyfall_torch.collation import TextSample
from skyfall_torch.errors import NonFiniteLossError, SampleCountError
from skyfall_torch.policy import language_policy
from skyfall_torch.ppo import ActionTokens, GAEMode, OldPolicyPass, PPOBackend, RatioMode
from skyfall_torch.weights import temporary_weights

REWARDS = [0.3, -0.4, 1.0, 0.1, 0.7, -0.2]
TERMINALS = [False, True, False, False, True, False]
STREAMS = ((0, 2, 4), (1, 3, 5))  # two worlds stepped in turn
GAMMA, LAM, CLIP, VALUE_COEFF, RATE = 0.9, 0.8, 0.01, 0.5, 0.05


def responses(policy) -> list[str]:
    """One response of each kind that the token rule tells apart, of different lengths."""
    return [
        '<think>hm</think>{"a":1}',
        'so: {"a":2}',
        "nothing",
        '{"b":{"c":1}}',
        '\n<think>x</think>{"a"',
        "a",
    ]


def samples_for(policy) -> list[TextSample]:
    samples = []
    for index, text in enumerate(responses(policy)):
        ids = policy.tokenizer(text)["input_ids"]
        prompt = policy.tokenizer("observe " + "x" * (3 * index))["input_ids"]
        samples.append(policy.sample_of(prompt, ids))
    return samples


def remember(policy, samples) -> None:
    """Make the policy hold these samples as if it had just acted."""
    stored = [policy.sample_state(sample) for sample in samples]
    policy.load_acting_state(policy.acting_state() | {"generated": stored})


def score_alone(policy, sample):
    """One sample by the book: whole logits, log-softmax, and the critic at the last token."""
    ids = torch.cat([sample.prompt_ids, sample.response_ids]).unsqueeze(0)
    output = policy.model(input_ids=ids, output_hidden_states=True)
    logits = output.logits[0, len(sample.prompt_ids) - 1 : -1]
    logprobs = torch.log_softmax(logits, dim=-1)
    chosen = logprobs[torch.arange(len(sample.response_ids)), sample.response_ids]
    linear = policy.value_head.summary
    return chosen, output.hidden_states[-1][0, -1] @ linear.weight[0] + linear.bias[0]


def first_reinforced(text: str, policy, tokens: ActionTokens) -> int:
    """The token rule, told once more from the text."""
    if tokens is ActionTokens.ALL or "</think>" in text or text.startswith("<think>") or "{" not in text:
        return 0
    before = text[: text.rindex("{")]
    return len(policy.tokenizer(before)["input_ids"])


def slow_advantages(values, gae: GAEMode):
    """By definition: sums of discounted residuals inside each episode of each world."""
    if gae is GAEMode.DEGENERATE:
        return {i: REWARDS[i] - values[i] for i in range(len(REWARDS))}
    advantages = {}
    for stream in STREAMS:
        for place, start in enumerate(stream):
            total, weight = 0.0, 1.0
            for offset, i in enumerate(stream[place:]):
                ended = TERMINALS[i] or place + offset + 1 == len(stream)
                following = 0.0 if ended else values[stream[place + offset + 1]]
                total += weight * (REWARDS[i] + GAMMA * following - values[i])
                weight *= GAMMA * LAM
                if ended:
                    break
            advantages[start] = total
    return advantages


def plain_update(policy, gae, ratio_mode, tokens, *, epochs, anchor):
    """The whole update as a script over single samples; returns what should be reported."""
    samples = samples_for(policy)
    starts = [first_reinforced(text, policy, tokens) for text in responses(policy)]
    parameters = [*policy.model.parameters(), *policy.value_head.parameters()]
    initial = [parameter.detach().clone() for parameter in parameters]
    with torch.no_grad():
        old = [score_alone(policy, sample) for sample in samples]
    values = [value.item() for _, value in old]
    advantages = slow_advantages(values, gae)
    returns = [advantages[i] + values[i] for i in range(len(samples))]
    ordered = torch.tensor([advantages[i] for i in range(len(samples))], dtype=torch.float64)
    normal = (ordered - ordered.mean()) / (ordered.std() + 1e-8)
    policy_losses, value_losses = [], []
    for _ in range(epochs):
        surrogates, errors = [], []
        for i, sample in enumerate(samples):
            new, value = score_alone(policy, sample)
            new, before = new[starts[i] :], old[i][0][starts[i] :]
            if ratio_mode is RatioMode.PER_TOKEN:
                ratios = torch.exp(new - before)
            else:
                ratios = torch.exp(new.mean() - before.mean()).reshape(1)
            clipped = torch.clip(ratios, 1 - CLIP, 1 + CLIP)
            surrogates.append(torch.min(ratios * normal[i], clipped * normal[i]))
            errors.append((value - returns[i]) ** 2)
        policy_loss = -torch.cat(surrogates).mean()
        value_loss = torch.stack(errors).mean()
        drift = sum(((p - p0) ** 2).sum() for p, p0 in zip(parameters, initial, strict=True))
        loss = policy_loss + VALUE_COEFF * value_loss + anchor * drift
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(RATE * gradient)
        policy_losses.append(policy_loss.item())
        value_losses.append(value_loss.item())
    return sum(policy_losses) / epochs, sum(value_losses) / epochs


@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize(
    ("gae", "ratio", "tokens", "old_pass"),
    list(itertools.product(GAEMode, RatioMode, ActionTokens, OldPolicyPass)),
)
def test_an_update_equals_a_plain_script(
    build_double_policy, build_window, gae, ratio, tokens, old_pass, accumulation
):
    actual, expected = (build_double_policy() for _ in range(2))
    for policy in (actual, expected):
        with torch.no_grad():
            policy.value_head.summary.weight.copy_(torch.linspace(-1, 1, 16, dtype=torch.float64))
    optimizer = torch.optim.SGD(actual.trainable_parameters(), lr=RATE)
    backend = PPOBackend(
        actual,
        optimizer,
        gae=gae,
        ratio=ratio.value,
        action_tokens=tokens,
        old_policy_pass=old_pass.value,
        gamma=GAMMA,
        lam=LAM,
        clip_range=CLIP,
        value_coeff=VALUE_COEFF,
        kl_coeff=0.02,
        epochs=3,
        minibatch_size=len(REWARDS),
        gradient_accumulation=accumulation,
        max_grad_norm=1e9,
    )
    remember(actual, samples_for(actual))
    measured = backend.update(build_window(REWARDS, TERMINALS, STREAMS))
    policy_loss, value_loss = plain_update(expected, gae, ratio, tokens, epochs=3, anchor=0.02)
    assert measured["policy_loss"] == pytest.approx(policy_loss, abs=1e-10)
    assert measured["value_loss"] == pytest.approx(value_loss, abs=1e-10)
    assert 0 < measured["clip_fraction"] < 1
    pairs = zip(actual.named_trainable_parameters(), expected.trainable_parameters(), strict=True)
    for (name, ours), plain in pairs:
        # Three steps of size RATE: equal to 1e-11 means every gradient is equal to 1e-10.
        torch.testing.assert_close(
            ours, plain, rtol=0, atol=1e-11, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("old_pass", OldPolicyPass)
def test_first_minibatch_has_ratio_one_without_dropout(build_policy, build_window, old_pass):
    measured = one_step(build_policy(), build_window, old_policy_pass=old_pass)
    assert measured["ratio_mean"] == pytest.approx(1, abs=1e-6)
    assert measured["approx_kl"] == pytest.approx(0, abs=1e-9)
    assert measured["clip_fraction"] == 0


def test_dropout_in_the_reference_pass_moves_the_ratio_before_any_step(build_policy, build_window):
    measured = one_step(
        build_policy(tiny={"attention_dropout": 0.5}), build_window, old_policy_pass=OldPolicyPass.TRAIN
    )
    assert measured["approx_kl"] > 1e-6


def test_the_old_policy_is_measured_without_dropout_in_eval_mode(build_policy, build_window):
    policy = build_policy(tiny={"attention_dropout": 0.5})
    torch.nn.init.ones_(policy.value_head.summary.weight)  # a head of ours begins at zero
    backend = PPOBackend(policy, old_policy_pass=OldPolicyPass.EVAL)
    remember(policy, samples_for(policy))
    batch = backend.batch_from(build_window(REWARDS))
    first, second = backend._measure(batch), backend._measure(batch)
    torch.testing.assert_close(first.logprobs, second.logprobs, rtol=0, atol=0)
    assert not torch.equal(*(PPOBackend(policy)._measure(batch).values[:1], first.values[:1]))


def one_step(policy, build_window, **options):
    backend = PPOBackend(policy, ratio="per_token", epochs=1, minibatch_size=len(REWARDS), **options)
    remember(policy, samples_for(policy))
    return backend.update(build_window(REWARDS, TERMINALS))


def test_degenerate_advantages_ignore_the_discounts(build_policy, build_window):
    reported = []
    for gamma, lam in ((0.99, 0.95), (0.1, 0.2)):
        measured = one_step(build_policy(), build_window, gamma=gamma, lam=lam)
        reported.append({name: value for name, value in measured.items() if "seconds" not in name})
    assert reported[0] == reported[1]


def test_what_an_update_reports(build_policy, build_window):
    policy = build_policy()
    measured = one_step(policy, build_window)
    tokens = sum(sample.length for sample in samples_for(policy))
    assert measured["tokens"] == tokens
    assert 0 < measured["tokens_reinforced"] < tokens
    assert measured["reward_mean"] == pytest.approx(sum(REWARDS) / len(REWARDS))
    assert (measured["reward_min"], measured["reward_max"]) == (-0.4, 1.0)
    assert measured["advantage_mean"] == pytest.approx(sum(REWARDS) / 6 - measured["value_mean"], abs=1e-6)
    assert measured["kl"] == 0
    assert measured["seconds_measure"] + measured["seconds_optimize"] <= measured["seconds_update"] + 1e-9
    expected = {
        "policy_loss",
        "value_loss",
        "clip_fraction",
        "approx_kl",
        "ratio_mean",
        "grad_norm",
        "explained_variance",
    }
    assert expected <= measured.keys()


def test_a_single_sample_trains_without_touching_nan(build_policy, build_window):
    policy = build_policy()
    remember(policy, samples_for(policy)[:1])
    measured = PPOBackend(policy).update(build_window([1.0]))
    assert all(math.isfinite(value) for value in measured.values())
    assert all(bool(torch.isfinite(parameter).all()) for parameter in policy.trainable_parameters())


def test_the_gradient_is_clipped_over_policy_and_critic_together(build_policy, build_window):
    policy = build_policy(dtype="float64")
    before = [parameter.detach().clone() for parameter in policy.trainable_parameters()]
    optimizer = torch.optim.SGD(policy.trainable_parameters(), lr=1.0)
    backend = PPOBackend(policy, optimizer, epochs=1, minibatch_size=6, max_grad_norm=0.25)
    remember(policy, samples_for(policy))
    assert backend.update(build_window([10 * reward for reward in REWARDS]))["grad_norm"] > 0.25
    moved = zip(policy.trainable_parameters(), before, strict=True)
    length = math.sqrt(sum(float((now - then).detach().square().sum()) for now, then in moved))
    assert length == pytest.approx(0.25, rel=1e-4)


def test_an_auxiliary_penalty_lands_inside_the_clipped_norm_once_a_step(build_policy, build_window):
    class Penalized(PPOBackend):
        calls = 0

        def _apply_auxiliary_regularization(self, batch):
            Penalized.calls += 1
            penalty = 100 * sum(parameter.sum() for parameter in self.trainable_parameters())
            penalty.backward()
            return {"penalty": penalty.item()}

    policy = build_policy(dtype="float64")
    before = [parameter.detach().clone() for parameter in policy.trainable_parameters()]
    optimizer = torch.optim.SGD(policy.trainable_parameters(), lr=1.0)
    backend = Penalized(
        policy, optimizer, epochs=2, minibatch_size=3, gradient_accumulation=3, max_grad_norm=0.1
    )
    remember(policy, samples_for(policy))
    measured = backend.update(build_window(REWARDS))
    assert Penalized.calls == 4
    assert "penalty" in measured
    assert measured["grad_norm"] > 100
    moved = zip(policy.trainable_parameters(), before, strict=True)
    assert math.sqrt(sum(float((a - b).detach().square().sum()) for a, b in moved)) <= 0.4 + 1e-9


def test_no_copy_of_the_weights_is_held_without_an_anchor(build_policy):
    assert PPOBackend(build_policy())._initial is None
    assert PPOBackend(build_policy(), kl_coeff=0.1)._initial is not None


def test_the_divergence_from_the_start_grows_and_leaves_the_weights_alone(build_policy, build_window):
    policy = build_policy()
    backend = PPOBackend(policy, kl_coeff=1e-6, learning_rate=1e-2)
    found = []
    for _ in range(3):
        remember(policy, samples_for(policy))
        found.append(backend.update(build_window(REWARDS))["kl"])
    assert found[0] == 0
    assert 0 < found[1] < found[2]
    before = [parameter.detach().clone() for parameter in policy.trainable_parameters()]
    with temporary_weights(policy.trainable_parameters(), backend._initial):
        assert any(not torch.equal(a, b) for a, b in zip(policy.trainable_parameters(), before, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(policy.trainable_parameters(), before, strict=True))


def test_warm_up_raises_the_learning_rate_linearly(build_policy, build_window):
    policy = build_policy()
    backend = PPOBackend(policy, warmup_steps=4, learning_rate=1e-3, epochs=1, minibatch_size=6)
    rates = []
    for _ in range(5):
        remember(policy, samples_for(policy))
        rates.append(backend.update(build_window(REWARDS))["learning_rate"])
    assert rates == pytest.approx([0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3])


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_trains_full_precision_weights(build_policy, build_window, precision):
    policy = build_policy()
    before = policy.value_head.summary.weight.detach().clone()
    backend = PPOBackend(
        policy, precision=precision, epochs=8, minibatch_size=6
    )  # float16 begins by skipping
    remember(policy, samples_for(policy))
    measured = backend.update(build_window(REWARDS))
    assert measured["ratio_mean"] == pytest.approx(1, abs=1e-2)
    assert math.isfinite(measured["grad_norm"])
    assert policy.value_head.summary.weight.dtype == torch.float32
    assert not torch.equal(policy.value_head.summary.weight, before)


def test_gradient_checkpointing_changes_no_gradient(build_policy, build_window):
    after = []
    for checkpointing in (False, True):
        policy = build_policy(gradient_checkpointing=checkpointing)
        one_step(policy, build_window)
        after.append(policy.trainable_parameters())
    for plain, recomputed in zip(*after, strict=True):
        torch.testing.assert_close(recomputed, plain, rtol=0, atol=1e-7)


# Hindsight replay


def replaying(policy, **options):
    return PPOBackend(policy, replay_size=50, gae="episodic", epochs=1, **options)


def test_the_first_update_fills_and_the_second_mixes(build_policy, build_window):
    policy = build_policy()
    backend = replaying(policy)
    counts = []
    for _ in range(2):
        remember(policy, samples_for(policy))
        measured = backend.update(build_window(REWARDS, TERMINALS))
        counts.append((measured["samples"], measured["samples_replayed"]))
    admitted_once = 4  # 0.3, the raised -0.4 and 1.0 of the first episodes, and so on: strictly above 0
    assert counts[0] == (6, 0)
    assert counts[1][1] == min(6, len(backend.replay))
    assert len(backend.replay) >= admitted_once


def test_fresh_rows_enter_before_the_draw_and_a_mixed_batch_has_no_episodes(build_policy, build_window):
    policy = build_policy()
    backend = replaying(policy)
    backend._updates = 1
    remember(policy, samples_for(policy))
    batch = backend.batch_from(build_window([1.0] * 6, TERMINALS))
    assert batch.episode_lengths == [2, 3, 1]
    mixed = backend.mix_replay(batch)
    assert len(mixed) == 12
    assert mixed.episode_lengths is None
    assert {id(sample) for sample in mixed.samples[6:]} == {id(sample) for sample in batch.samples}
    assert list(mixed.steps) == list(batch.steps)


def test_replay_gets_no_episodes_under_degenerate_advantages(build_policy, build_window):
    policy = build_policy()
    backend = PPOBackend(policy, replay_size=50)
    remember(policy, samples_for(policy))
    backend.update(build_window([0.0] * 6, TERMINALS))
    assert [reward for _, reward in backend.replay.entries] == [0.5]


def test_disabled_replay_leaves_the_batch_alone(build_policy, build_window):
    policy = build_policy()
    backend = PPOBackend(policy)
    remember(policy, samples_for(policy))
    batch = backend.batch_from(build_window(REWARDS))
    assert backend.mix_replay(batch) is batch
    assert not backend.replay.enabled


# Several worlds


def test_rows_go_world_by_world_with_their_own_episodes_and_steps(build_policy, build_window):
    policy = build_policy()
    backend = PPOBackend(policy, gae="episodic")
    samples = samples_for(policy)
    remember(policy, samples)
    batch = backend.batch_from(build_window(REWARDS, TERMINALS, STREAMS))
    assert list(batch.rewards) == [0.3, 1.0, 0.7, -0.4, 0.1, -0.2]
    assert batch.episode_lengths == [3, 1, 2]
    assert list(batch.steps) == [0, 2, 4, 1, 3, 5]
    lengths = [sample.length for sample in batch.samples]
    assert lengths == [samples[i].length for i in (0, 2, 4, 1, 3, 5)]


# What goes wrong


@pytest.mark.parametrize("kept", [0, 5, 7])
def test_a_record_that_does_not_match_the_window_is_an_error(build_policy, build_window, kept):
    policy = build_policy()
    remember(policy, (samples_for(policy) * 2)[:kept])
    with pytest.raises(SampleCountError, match=f"recorded {kept} actions for a window of 6"):
        PPOBackend(policy).update(build_window(REWARDS))


@pytest.mark.parametrize("ratio", RatioMode)
def test_responses_without_tokens_train_the_critic_and_nothing_else(build_policy, build_window, ratio):
    policy = build_policy()
    remember(policy, [policy.sample_of(sample.prompt_ids.tolist(), ()) for sample in samples_for(policy)])
    actor = policy.model.lm_head.weight.detach().clone()
    measured = PPOBackend(policy, ratio=ratio, epochs=1).update(build_window(REWARDS))
    assert all(math.isfinite(value) for value in measured.values()), measured
    assert measured["tokens"] == 0
    assert torch.equal(policy.model.lm_head.weight, actor)
    assert policy.value_head.summary.bias.abs() > 0


def test_a_loss_that_is_no_number_stops_before_the_step_and_names_the_steps(build_policy, build_window):
    policy = build_policy()
    backend = PPOBackend(policy, epochs=1, minibatch_size=6)
    evaluate = policy.evaluate

    def poisoned(samples):
        scored = evaluate(samples)
        return scored._replace(logprobs=scored.logprobs * math.nan) if torch.is_grad_enabled() else scored

    policy.evaluate = poisoned
    remember(policy, samples_for(policy))
    before = [parameter.detach().clone() for parameter in policy.trainable_parameters()]
    with pytest.raises(NonFiniteLossError, match="40, 41, 42, 43, 44, 45") as raised:
        backend.update(build_window(REWARDS, first_step=40))
    assert raised.value.steps == [40, 41, 42, 43, 44, 45]
    assert all(torch.equal(a, b) for a, b in zip(policy.trainable_parameters(), before, strict=True))
    assert all(parameter.grad is None for parameter in policy.trainable_parameters())


def test_a_gradient_that_is_no_number_stops_before_the_step(build_policy, build_window):
    class Broken(PPOBackend):
        def _apply_auxiliary_regularization(self, batch):
            self.trainable_parameters()[0].grad.fill_(math.inf)
            return {}

    policy = build_policy()
    remember(policy, samples_for(policy))
    before = [parameter.detach().clone() for parameter in policy.trainable_parameters()]
    with pytest.raises(NonFiniteLossError, match="gradient's norm"):
        Broken(policy).update(build_window(REWARDS))
    assert all(torch.equal(a, b) for a, b in zip(policy.trainable_parameters(), before, strict=True))


def test_a_critic_that_is_no_number_stops_before_any_step(build_policy, build_window):
    policy = build_policy()
    with torch.no_grad():
        policy.value_head.summary.bias.fill_(math.nan)
    remember(policy, samples_for(policy))
    with pytest.raises(NonFiniteLossError, match="advantage"):
        PPOBackend(policy).update(build_window(REWARDS))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip_ragne": 0.2}, "clip_range"),
        ({"gae": "episodes"}, "episodic"),
        ({"ratio": "token"}, "per_token"),
        ({"replay_size": -2}, "replay_size -2"),
        ({"gamma": 1.5}, "between 0 and 1"),
        ({"epochs": 0}, "epochs 0"),
        ({"learning_rate": 0.0}, "learning_rate 0.0"),
        ({"precision": "fp16"}, "float16"),
    ],
)
def test_impossible_options_are_refused_with_a_remedy(build_policy, options, message):
    with pytest.raises(ConfigError, match=message):
        PPOBackend(build_policy(), **options)


# Checkpoints


OPTIONS = {
    "replay_size": 20,
    "kl_coeff": 0.01,
    "learning_rate": 1e-2,
    "warmup_steps": 6,
    "epochs": 2,
    "minibatch_size": 4,
    "replay_strategy": "future",
}


def live(backend, build_window, updates):
    """Act and learn; rewards depend on what was written, so any difference in the draws shows."""
    for _ in range(updates):
        actions = backend.policy.act_batch([f"observation {index}" for index in range(6)])
        backend.update(build_window([(len(str(action)) % 5) / 5 for action in actions]))


def test_going_on_from_a_checkpoint_gives_bit_equal_weights(build_policy, build_window, tmp_path):
    tiny = {"attention_dropout": 0.2}
    whole = PPOBackend(build_policy(tiny=tiny), **OPTIONS)
    live(whole, build_window, 4)
    first = PPOBackend(build_policy(tiny=tiny), **OPTIONS)
    live(first, build_window, 2)
    first.save_checkpoint(tmp_path)
    second = PPOBackend(build_policy(tiny=tiny | {"seed": 9}, seed=7), **(OPTIONS | {"seed": 5}))
    second.load_checkpoint(tmp_path)
    torch.rand(3)  # nothing else in the process may matter
    live(second, build_window, 2)
    for ours, theirs in zip(
        second.policy.trainable_parameters(), whole.policy.trainable_parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)
    assert [reward for _, reward in second.replay.entries] == [reward for _, reward in whole.replay.entries]


def test_samples_that_were_not_read_yet_survive_a_checkpoint(build_policy, tmp_path):
    first = PPOBackend(build_policy())
    first.policy.act("pending")
    first.save_checkpoint(tmp_path)
    second = PPOBackend(build_policy(seed=3))
    second.load_checkpoint(tmp_path)
    (expected,), (found,) = first.policy.take_generated(), second.policy.take_generated()
    assert torch.equal(expected.response_ids, found.response_ids)


def test_a_checkpoint_is_a_model_directory(build_policy, tmp_path):
    backend = PPOBackend(build_policy())
    backend.save_checkpoint(tmp_path)
    assert language_policy(tmp_path, max_new_tokens=6).loaded_value_head


@pytest.mark.parametrize(
    "damage",
    ["missing", "truncated", "pickle", "empty", "algorithm", "incomplete", "no_head", "other_size"],
)
def test_a_damaged_or_foreign_checkpoint_is_refused(build_policy, tmp_path, damage):
    PPOBackend(build_policy()).save_checkpoint(tmp_path)
    state = tmp_path / STATE_FILE
    target = build_policy()
    match damage:
        case "missing":
            state.unlink()
        case "truncated":
            state.write_bytes(state.read_bytes()[:200])
        case "pickle":
            torch.save({"format": 2}, state)
        case "empty":
            state.write_bytes(b"")
        case "algorithm":
            write_state(tmp_path, {"algorithm": "Other"})
        case "incomplete":
            write_state(tmp_path, {"algorithm": "PPOBackend", "initial": None})
        case "no_head":
            (tmp_path / "v_head.safetensors").unlink()
        case "other_size":
            target = build_policy(tiny={"hidden_size": 32})
    with pytest.raises(CheckpointError):
        PPOBackend(target).load_checkpoint(tmp_path)
