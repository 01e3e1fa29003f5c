"""The language policy: acting, remembering, scoring alike whatever the padding, and being saved."""

import dataclasses
import logging
import os
import random
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.torch
import torch

from skyfall_core.base import Policy
from skyfall_core.errors import CheckpointError, ConfigError
from skyfall_torch import value_head as value_heads
from skyfall_torch.collation import TextSample, collate
from skyfall_torch.dispatch import Dispatch
from skyfall_torch.interface import SupportsActBatch, TrainablePolicy
from skyfall_torch.policy import LanguagePolicy, SamplingConfig, ValueHead, language_policy
from skyfall_torch.prompts import bare_prompt, observation_text
from skyfall_torch.tiny import tiny_model, tiny_tokenizer
from skyfall_torch.tokens import ActionTokens
from skyfall_torch.value_head import VALUE_HEAD_FILES, build_value_head, write_value_head

LORA = {"r": 2, "target_modules": ["q_proj", "v_proj"]}
TEXTS = [("a", "long answer here"), ("a much longer prompt", "x"), ("middle one", "medium")]


def sample(policy, prompt, response) -> TextSample:
    tokens = policy.tokenizer
    return TextSample(torch.tensor(tokens(prompt)["input_ids"]), torch.tensor(tokens(response)["input_ids"]))


def answering(policy, texts) -> None:
    """Let generation return these responses, whatever the model thinks."""
    ids = [policy.tokenizer(text)["input_ids"] for text in texts]
    width = max(1, *map(len, ids))
    rows = torch.tensor([row + [policy.tokenizer.pad_token_id] * (width - len(row)) for row in ids])
    policy.model.generate = lambda input_ids, **_: torch.cat([input_ids, rows], dim=1)


# Acting


def test_it_is_a_trainable_policy(build_policy):
    policy = build_policy()
    assert isinstance(policy, TrainablePolicy)
    assert isinstance(policy, SupportsActBatch)
    assert isinstance(policy, Policy)


def test_the_action_is_the_first_object_of_the_response(build_policy):
    policy = build_policy()
    answering(policy, ['I pick {"pick": {"at": "}"}} rather than {"pick": 2}'])
    assert policy.act("go") == {"pick": {"at": "}"}}


@pytest.mark.parametrize(
    ("response", "action"),
    [
        ('{"pick": 3', '{"pick": 3'),
        ('{"a": {"b": [}', '{"a": {"b": [}'),
        ("", ""),
        ("<eos>", ""),
        ("<pad><pad>", ""),
        ("{" * 100_000, "{" * 100_000),
    ],
    ids=lambda value: value[:12],
)
def test_a_malformed_response_is_an_action_that_the_environment_refuses(build_policy, response, action):
    policy, env = build_policy(), Dispatch()
    observation, _ = env.reset(seed=0)
    answering(policy, [response])
    found = policy.act(observation)
    assert found == action
    assert env.step(found)[1] < 0.2
    (recorded,) = policy.take_generated()
    recorded = dataclasses.replace(
        recorded, response_ids=recorded.response_ids[:60]
    )  # what the context holds
    assert torch.isfinite(policy.evaluate([recorded]).values).all()


def test_what_was_generated_is_recorded_in_order_and_cleared_on_read(build_policy):
    policy = build_policy()
    policy.act("first")
    policy.act_batch(["second", "third and longer"])
    taken = policy.take_generated()
    prompts = [policy.tokenizer.decode(each.prompt_ids) for each in taken]
    assert [prompt.split("\n")[0] for prompt in prompts] == ["first", "second", "third and longer"]
    assert policy.take_generated() == []


def test_a_batch_is_one_call_to_generate(build_policy):
    policy, calls = build_policy(), []
    generate = policy.model.generate
    policy.model.generate = lambda **how: (calls.append(how), generate(**how))[1]
    assert len(policy.act_batch(["a", "bb", "ccc"])) == 3
    assert len(calls) == 1
    assert policy.act_batch([]) == []


def test_the_likeliest_response_is_the_same_alone_and_in_a_left_padded_batch(build_policy):
    policy = build_policy(temperature=0.0)
    prompts = ["a", "somewhat longer", "the longest prompt of all three"]
    policy.act_batch(prompts)
    batched = policy.take_generated()
    for prompt in prompts:
        policy.act(prompt)
    for alone, together in zip(policy.take_generated(), batched, strict=True):
        assert torch.equal(alone.response_ids, together.response_ids)


def test_responses_stop_at_the_end_token_and_keep_it(build_policy):
    policy = build_policy()
    end = policy.tokenizer.eos_token_id
    answering(policy, ["ab<eos>cd"])
    assert policy.act("go") == "ab"
    (recorded,) = policy.take_generated()
    assert recorded.response_ids.tolist()[-1] == end
    assert recorded.length == 3


def test_draws_come_from_the_policys_own_generator(build_policy):
    def acted(disturb):
        policy, actions = build_policy(), []
        for index in range(3):
            if disturb:
                torch.manual_seed(index)
                random.seed(index)
                torch.rand(5)
            actions.append(policy.act("go"))
        return actions

    assert acted(disturb=False) == acted(disturb=True)
    assert acted(disturb=False) != [build_policy(seed=1).act("go") for _ in range(3)]


def test_acting_leaves_the_processs_generator_alone(build_policy):
    policy = build_policy()
    before = torch.get_rng_state()
    policy.act("go")
    assert torch.equal(torch.get_rng_state(), before)


def test_acting_never_uses_dropout_and_restores_the_mode(build_policy):
    policy = build_policy(tiny={"attention_dropout": 0.9}, temperature=0.0).train()
    assert policy.act("some observation") == policy.act("some observation")
    assert policy.model.training


def test_the_reinforced_slice_is_recorded_by_rule(build_policy):
    policy = build_policy()
    answering(policy, ['so {"a": 1}'])
    policy.act("go")
    (recorded,) = policy.take_generated()
    assert recorded.action_start(ActionTokens.ALL) == 0
    assert recorded.action_start(ActionTokens.QWEN_THINK) == 3
    assert policy.json_open_ids == {
        index for token, index in policy.tokenizer.get_vocab().items() if token.startswith("{")
    }


def test_prompts_longer_than_the_context_lose_their_beginning_and_are_counted(build_policy, caplog):
    policy = build_policy(temperature=0.0)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            policy.act("x" * 200 + "the end")
    recorded = policy.take_generated()[0]
    assert recorded.prompt_ids.numel() == 96 - 6
    assert policy.tokenizer.decode(recorded.prompt_ids).endswith("the end\nAction:")
    assert policy.truncated_prompts == 3
    assert [record.args[-1] for record in caplog.records] == [1, 2]


def test_the_effective_rank_is_measured_only_on_request(build_policy):
    assert not hasattr(build_policy(), "last_effective_rank")
    policy = build_policy(capture_effective_rank=True)
    policy.act("an observation")
    assert 1 <= policy.last_effective_rank <= 16
    policy.act_batch(["one", "two and more"])
    assert len(policy.last_effective_rank) == 2


def test_prompts_use_the_chat_template_where_there_is_one(build_policy):
    policy = build_policy(system_prompt="Be brief.")
    policy.act({"load": np.float32(0.5)})
    assert (
        policy.tokenizer.decode(policy.take_generated()[0].prompt_ids) == 'Be brief.\n{"load": 0.5}\nAction:'
    )
    start = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    policy.tokenizer.chat_template = start + "{% if add_generation_prompt %}>>{% endif %}"
    policy.act("hi")
    assert policy.tokenizer.decode(policy.take_generated()[0].prompt_ids) == "<system>Be brief.<user>hi>>"


def test_a_prompt_builder_of_ones_own_replaces_the_default():
    def shout(observation, tokenizer):
        return f"{observation}!"

    policy = LanguagePolicy(tiny_model(), tiny_tokenizer(), prompt=shout)
    policy.act("go")
    assert policy.tokenizer.decode(policy.take_generated()[0].prompt_ids) == "go!"


def test_observations_of_any_kind_become_text():
    assert observation_text("as it is") == "as it is"
    assert observation_text({"a": np.arange(2), "b": (1, None)}) == '{"a": [0, 1], "b": [1, null]}'
    assert observation_text(np.float64(0.5)) == "0.5"


@pytest.mark.parametrize("missing", [("pad_token",), ("pad_token", "eos_token")])
def test_tokenizers_without_pad_or_end_token_still_act(missing):
    tokenizer = tiny_tokenizer()
    for name in missing:
        setattr(tokenizer, name, None)
    policy = LanguagePolicy(tiny_model(), tokenizer, sampling=SamplingConfig(max_new_tokens=4))
    policy.act_batch(["a", "longer"])
    scored = policy.evaluate(policy.take_generated())
    assert torch.isfinite(scored.logprobs).all()


# Scoring


@pytest.mark.parametrize("position", ["sequence_end", "prompt_end"])
def test_padding_changes_nothing(build_policy, position):
    policy = build_policy(value_position=position)
    samples = [sample(policy, *texts) for texts in TEXTS]
    together = policy.evaluate(samples)
    for row, each in enumerate(samples):
        alone = policy.evaluate([each])
        torch.testing.assert_close(
            together.logprobs[row, : each.length], alone.logprobs[0], rtol=0, atol=1e-5
        )
        torch.testing.assert_close(together.values[row], alone.values[0], rtol=0, atol=1e-5)
        assert together.mask[row].tolist() == [
            column < each.length for column in range(together.mask.shape[1])
        ]
        assert (together.logprobs[row, each.length :] == 0).all()


@pytest.mark.parametrize("side", ["left", "right"])
def test_forward_agrees_with_evaluate_for_either_padding(build_policy, side):
    policy = build_policy()
    samples = [sample(policy, *texts) for texts in TEXTS]
    scored = policy.evaluate(samples)
    rows = [torch.cat([each.prompt_ids, each.response_ids]) for each in samples]
    width = max(map(len, rows))
    ids, mask = torch.zeros(3, width, dtype=torch.long), torch.zeros(3, width, dtype=torch.long)
    begins = [width - len(row) if side == "left" else 0 for row in rows]
    for index, (row, begin) in enumerate(zip(rows, begins, strict=True)):
        ids[index, begin : begin + len(row)], mask[index, begin : begin + len(row)] = row, 1
    logits, values = policy.forward(ids, mask)
    assert logits.shape == (3, width, len(policy.tokenizer))
    torch.testing.assert_close(values, scored.values, rtol=0, atol=1e-5)
    for index, (each, begin) in enumerate(zip(samples, begins, strict=True)):
        start = begin + each.prompt_ids.numel() - 1
        logprobs = logits[index, start : start + each.length].log_softmax(-1)
        chosen = logprobs.gather(1, each.response_ids.unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(chosen, scored.logprobs[index, : each.length], rtol=0, atol=1e-5)


def test_the_critic_sees_the_action_only_at_the_sequence_end(build_policy):
    values = {}
    for position in ("sequence_end", "prompt_end"):
        policy = build_policy(value_position=position)
        torch.nn.init.ones_(policy.value_head.summary.weight)  # a head of ours begins at zero
        values[position] = [
            policy.evaluate([sample(policy, "state", text)]).values.item() for text in ("left", "up")
        ]
    assert values["sequence_end"][0] != values["sequence_end"][1]
    assert values["prompt_end"][0] == pytest.approx(values["prompt_end"][1], abs=1e-5)


def test_scores_are_those_of_the_distribution_sampled_from(build_policy):
    cool, plain = build_policy(temperature=0.5), build_policy()
    each = sample(plain, "a", "b")
    ids = torch.cat([each.prompt_ids, each.response_ids]).unsqueeze(0)
    logits = plain.forward(ids)[0][0, -2]
    expected = (logits / 0.5).log_softmax(-1)[each.response_ids[0]]
    torch.testing.assert_close(cool.evaluate([each]).logprobs[0, 0], expected)


def test_entropies_are_those_of_the_tokens_distributions_and_only_on_request(build_policy):
    policy = build_policy(report_entropies=True)
    each = sample(policy, "state", "abc")
    ids = torch.cat([each.prompt_ids, each.response_ids]).unsqueeze(0)
    logits = policy.forward(ids)[0][0, -4:-1]
    expected = torch.distributions.Categorical(logits=logits).entropy()
    torch.testing.assert_close(policy.evaluate([each]).entropies[0], expected)
    assert build_policy().evaluate([each]).entropies is None


def test_logits_are_computed_only_around_the_response(build_policy):
    policy, seen = build_policy(), []
    policy.model.lm_head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape))
    policy.evaluate([sample(policy, "p" * 60, "abc")])
    assert seen == [(1, 4, 16)]


@pytest.mark.parametrize("position", ["sequence_end", "prompt_end"])
def test_observations_not_acted_on_are_judged_by_their_prompts_last_token(build_policy, position):
    policy = build_policy(value_position=position, response_prefix='{"to":"')
    observations = ["a", "somewhat longer", "the longest observation of all three"]
    values = policy.values_of(observations)
    assert not values.requires_grad
    assert policy.take_generated() == []
    for observation, value in zip(observations, values, strict=True):
        ids = torch.tensor([policy.tokenizer(f'{observation}\nAction:{{"to":"')["input_ids"]])
        torch.testing.assert_close(value, policy.forward(ids)[1][0], rtol=0, atol=1e-5)
    logits = []
    policy.model.lm_head.register_forward_pre_hook(lambda _, inputs: logits.append(inputs[0].shape))
    policy.values_of(observations)
    assert logits == [(3, 1, 16)]


def test_nothing_to_evaluate_is_an_error(build_policy):
    policy = build_policy()
    with pytest.raises(ValueError, match="no samples"):
        policy.values_of([])
    with pytest.raises(ValueError, match="no samples"):
        policy.evaluate([])
    with pytest.raises(ValueError, match="without prompt"):
        collate([TextSample(torch.tensor([], dtype=torch.long), torch.tensor([1]))], 0, torch.device("cpu"))


# The critic


def test_our_head_and_trls_compute_the_same_from_equal_weights():
    if value_heads._trl_value_head() is None:
        pytest.skip("the installed TRL has no value head (up to 1.12 had one)")
    trl = build_value_head(12)
    torch.nn.init.normal_(trl.summary.weight)
    assert type(trl).__module__.startswith("trl.")
    ours = ValueHead(12)
    ours.load_state_dict(trl.state_dict())
    hidden = torch.randn(3, 5, 12)
    assert torch.equal(trl.train()(hidden), ours(hidden))


def test_our_head_stands_in_where_trl_has_none(monkeypatch):
    monkeypatch.setattr(value_heads, "_TRL_MODULES", ("trl.no_such_module",))
    assert isinstance(build_value_head(4), ValueHead)
    monkeypatch.setattr(value_heads.importlib.util, "find_spec", lambda name: None)
    assert isinstance(build_value_head(4), ValueHead)


@pytest.mark.parametrize("name", VALUE_HEAD_FILES)
@pytest.mark.parametrize("prefix", ["", "summary.", "v_head.summary.", "v_head."])
def test_a_critic_is_found_under_four_names_and_with_any_prefix(build_policy, tmp_path, name, prefix):
    policy = build_policy()
    stored = {f"{prefix}weight": torch.full((1, 16), 0.25), f"{prefix}bias": torch.full((1,), 2.0)}
    if name.endswith(".pt"):
        torch.save(stored, tmp_path / name)
    else:
        safetensors.torch.save_file(stored, tmp_path / name)
    assert policy.load_value_head(tmp_path)
    assert policy.loaded_value_head
    assert policy.value_head.summary.weight.unique().tolist() == [0.25]
    assert policy.value_head.summary.bias.item() == 2.0


def test_no_critic_is_reported_and_not_an_error(build_policy, tmp_path):
    policy = build_policy()
    assert policy.load_value_head(tmp_path) is False
    assert policy.loaded_value_head is False


class Exploit:
    """Creates a file wherever it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"weight": torch.zeros(1, 16)}, "missing keys"),
        ({"weight": torch.zeros(1, 16), "bias": torch.zeros(1), "more": torch.zeros(1)}, "unknown keys"),
        ({"weight": torch.zeros(1, 8), "bias": torch.zeros(1)}, "another hidden size"),
        ([1, 2], "expected a mapping"),
        (None, "not a readable file of tensors"),
    ],
)
def test_a_critic_that_does_not_fit_is_refused(build_policy, tmp_path, stored, message):
    path = tmp_path / "v_head.pt"
    torch.save(Exploit(tmp_path / "ran") if stored is None else stored, path)
    with pytest.raises(CheckpointError, match=message):
        build_policy().load_value_head(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_two_critics_in_one_directory_are_refused_and_saving_leaves_one(build_policy, tmp_path):
    policy = build_policy()
    write_value_head(tmp_path, policy.value_head, "value_head.pt")
    policy.save(tmp_path)
    assert [name for name in VALUE_HEAD_FILES if (tmp_path / name).exists()] == ["v_head.safetensors"]
    torch.save({}, tmp_path / "value_head.pt")
    with pytest.raises(CheckpointError, match="several value heads"):
        policy.load_value_head(tmp_path)


# Saving


@pytest.mark.parametrize("lora", [None, LORA])
def test_a_policy_survives_save_load_save(build_policy, tmp_path, lora):
    policy = build_policy(lora=lora, seed=3)
    with torch.no_grad():
        for parameter in policy.trainable_parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    policy.save(tmp_path / "one")
    again = language_policy(tmp_path / "one", max_new_tokens=6)
    assert again.loaded_value_head
    again.save(tmp_path / "two")
    third = LanguagePolicy.from_checkpoint(tmp_path / "two", max_new_tokens=6)
    each = sample(policy, "some prompt", "answer")
    for restored in (again, third):
        torch.testing.assert_close(
            restored.evaluate([each]).logprobs, policy.evaluate([each]).logprobs, rtol=0, atol=0
        )
        torch.testing.assert_close(
            restored.evaluate([each]).values, policy.evaluate([each]).values, rtol=0, atol=0
        )
        names = [name for name, _ in restored.named_trainable_parameters()]
        assert names == [name for name, _ in policy.named_trainable_parameters()]


@pytest.mark.parametrize("lora", [None, LORA])
def test_load_restores_in_place(build_policy, tmp_path, lora):
    source, target = build_policy(lora=lora), build_policy(lora=lora, tiny={"seed": 0}, seed=5)
    with torch.no_grad():
        for parameter in source.trainable_parameters():
            parameter.add_(0.1)
    identities = [id(parameter) for parameter in target.trainable_parameters()]
    source.save(tmp_path)
    target.load(tmp_path)
    assert [id(parameter) for parameter in target.trainable_parameters()] == identities
    for ours, theirs in zip(target.trainable_parameters(), source.trainable_parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_an_adapter_trains_alone_with_the_critic(build_policy, build_window):
    from skyfall_torch.ppo import PPOBackend  # noqa: PLC0415

    policy = build_policy(lora=LORA)
    frozen = {
        name: value.clone() for name, value in policy.model.named_parameters() if not value.requires_grad
    }
    before = [parameter.detach().clone() for parameter in policy.trainable_parameters()]
    backend = PPOBackend(policy, learning_rate=1e-2, epochs=2)
    policy.act_batch(["one", "two"])
    assert backend.update(build_window([1.0, -1.0]))["kl"] == 0
    for name, value in policy.model.named_parameters():
        assert name not in frozen or torch.equal(value, frozen[name])
    assert all(not torch.equal(a, b) for a, b in zip(policy.trainable_parameters(), before, strict=True))
    names = [name for name, _ in policy.named_trainable_parameters()]
    assert all("lora_" in name or name.startswith("v_head.") for name in names)


def damaged(tmp_path, policy, change):
    policy.save(tmp_path)
    name = "adapter_model.safetensors" if (tmp_path / "adapter_config.json").exists() else "model.safetensors"
    tensors = safetensors.torch.load_file(tmp_path / name)
    change(tensors)
    safetensors.torch.save_file(tensors, tmp_path / name, metadata={"format": "pt"})


@pytest.mark.parametrize("lora", [None, LORA])
@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop(next(iter(tensors))),
        lambda tensors: tensors.update(surplus=torch.zeros(1)),
        lambda tensors: tensors.update({next(iter(tensors)): torch.zeros(3, 3)}),
    ],
    ids=["missing", "extra", "misshapen"],
)
def test_weights_that_are_not_exactly_the_models_are_refused(build_policy, tmp_path, lora, change):
    damaged(tmp_path, build_policy(lora=lora), change)
    with pytest.raises(CheckpointError, match="weights"):
        language_policy(tmp_path)


@pytest.mark.parametrize("lora", [None, LORA])
def test_weights_that_are_code_are_refused_and_not_run(build_policy, tmp_path, lora):
    build_policy(lora=lora).save(tmp_path)
    whole, name = ("adapter_model", "adapter_model.bin") if lora else ("model", "pytorch_model.bin")
    (tmp_path / f"{whole}.safetensors").unlink()
    torch.save({"weight": Exploit(tmp_path / "ran")}, tmp_path / name)
    with pytest.raises(CheckpointError, match="cannot be"):
        language_policy(tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("lora", "name"),
    [
        (None, "config.json"),
        (None, "model.safetensors"),
        (None, "tokenizer.json"),
        (LORA, "adapter_config.json"),
        (LORA, "adapter_model.safetensors"),
        (LORA, "tokenizer.json"),
    ],
)
@pytest.mark.parametrize("damage", ["missing", "empty", "torn"])
def test_a_directory_that_lacks_a_file_is_refused(build_policy, tmp_path, lora, name, damage):
    build_policy(lora=lora).save(tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(whole[: len(whole) // 2] if damage == "torn" else b"")
    with pytest.raises((CheckpointError, ConfigError), match=r"(?s)\S+"):
        language_policy(tmp_path)


def test_files_that_mean_nothing_to_a_checkpoint_are_left_alone(build_policy, tmp_path):
    policy = build_policy()
    policy.save(tmp_path)
    (tmp_path / "notes.md").write_text("seen today")
    (tmp_path / "events").mkdir()
    again = language_policy(tmp_path, max_new_tokens=6)
    again.save(tmp_path)
    assert (tmp_path / "notes.md").read_text() == "seen today"


@pytest.mark.parametrize("lora", [None, LORA])
def test_an_adapter_and_whole_weights_in_one_directory_are_refused(build_policy, tmp_path, lora):
    for each in (LORA, None):
        build_policy(lora=each).save(tmp_path / str(each))
    for file in (tmp_path / "None").iterdir():
        shutil.copy(file, tmp_path / str(LORA))
    with pytest.raises(CheckpointError, match="both an adapter and whole weights"):
        language_policy(tmp_path / str(LORA))
    with pytest.raises(CheckpointError, match="both an adapter and whole weights"):
        build_policy(lora=lora).load(tmp_path / str(LORA))


@pytest.mark.parametrize("first", [None, LORA])
def test_an_adapter_is_not_saved_beside_whole_weights_nor_the_other_way_round(build_policy, tmp_path, first):
    build_policy(lora=first).save(tmp_path)
    with pytest.raises(CheckpointError, match="to another directory"):
        build_policy(lora=None if first else LORA).save(tmp_path)
    language_policy(tmp_path)


def test_adapter_and_whole_weights_are_not_mixed_up(build_policy, tmp_path):
    build_policy(lora=LORA).save(tmp_path)
    with pytest.raises(CheckpointError, match="holds an adapter"):
        build_policy().load(tmp_path)
    with pytest.raises(ConfigError, match="already is an adapter"):
        language_policy(tmp_path, lora=LORA)


def test_an_empty_directory_is_no_checkpoint(tmp_path):
    with pytest.raises((CheckpointError, ConfigError)):
        language_policy(tmp_path)
    with pytest.raises(CheckpointError, match="no such directory"):
        LanguagePolicy.from_checkpoint(tmp_path / "absent")


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 4}, "max_new_tokens"),
        ({"max_new_tokens": 0}, "max_new_tokens 0"),
        ({"max_new_tokens": 96}, "no room for a prompt"),
        ({"temperature": -1.0}, "temperature -1.0"),
        ({"top_p": 0.0}, "top_p 0.0"),
        ({"dtype": "float23"}, "float32"),
        ({"value_position": "end"}, "prompt_end|sequence_end"),
        ({"tiny": {"hiden_size": 8}}, "hidden_size"),
        ({"tiny": {"hidden_size": 9, "heads": 2}}, "divisible"),
        ({"lora": {"rank": 3}}, "LoraConfig"),
        ({"device": "cuda:7"}, "use 'auto' or 'cpu'"),
    ],
)
def test_impossible_options_are_refused_with_a_remedy(build_policy, options, message):
    tiny = {"context": 96} | options.pop("tiny", {})
    with pytest.raises(ConfigError, match=message):
        language_policy("tiny", tiny=tiny, **options)


def test_tiny_options_need_the_tiny_model():
    with pytest.raises(ConfigError, match="model 'tiny'"):
        language_policy("elsewhere", tiny={"layers": 1})


def test_equal_seeds_build_equal_models_and_leave_the_process_alone():
    before = torch.get_rng_state()
    first, second = tiny_model(), tiny_model()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("text", ['héllo {"a": 1}', "日本語\n\t", "<think>x</think>"])
def test_the_tiny_tokenizer_encodes_any_text(text):
    tokenizer = tiny_tokenizer()
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_a_model_without_an_output_layer_is_refused():
    class Headless(torch.nn.Module):
        config = SimpleNamespace(hidden_size=4)

        def forward(self, input_ids): ...

        def get_output_embeddings(self):
            return None

    with pytest.raises(ConfigError, match="causal language model"):
        LanguagePolicy(Headless(), tiny_tokenizer())


def test_a_suffix_belongs_to_the_action_and_not_to_what_is_recorded(build_policy):
    policy = build_policy(response_prefix='{"to":"', response_suffix='"}', max_new_tokens=1, seed=3)
    action = policy.act("ticket a")
    (sample,) = policy.take_generated()
    text = policy.tokenizer.decode(sample.response_ids, skip_special_tokens=True)
    assert sample.length == 1
    assert action == LanguagePolicy.parse('{"to":"' + text + '"}')


def test_the_bare_prompt_is_the_observation_and_nothing_else():
    assert bare_prompt("ticket a", None) == "ticket a"
    assert bare_prompt({"load": 1}, None) == '{"load": 1}'
