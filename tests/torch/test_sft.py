"""Supervised warm start: documents, records, encoding, and the chain into reinforcement learning."""

import json
import subprocess
import sys

import pytest
import torch

from skyfall_core.errors import CheckpointError, ConfigError, InputError, MissingExtraError
from skyfall_torch import sft
from skyfall_torch.policy import language_policy
from skyfall_torch.ppo import PPOBackend
from skyfall_torch.sft_config import DataConfig, load_sft
from skyfall_torch.sft_data import Example, action_text, read_examples

SIZES = "{hidden_size: 32, layers: 1, heads: 2, context: 96}"
TINY = "{model: tiny, tiny: %s, max_new_tokens: 12, temperature: 0.0}" % SIZES  # noqa: UP031 - full of braces


@pytest.fixture
def document(tmp_path):
    """Writes records and a document over them; returns the document's path."""

    def write(records=None, extra="", policy=TINY, data="{records: data.jsonl}"):
        rows = (
            records
            or [
                {"observation": f"ticket {kind}", "action": {"to": kind}, "return": float(kind == "a")}
                for kind in "ab"
            ]
            * 8
        )
        (tmp_path / "data.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
        path = tmp_path / "sft.yaml"
        path.write_text(f"policy: {policy}\ndata: {data}\noutput_dir: out\n{extra}", encoding="utf-8")
        return path

    return write


def trace_of(tmp_path, rows):
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def step(reward, *, world=0, terminated=False, **more):
    fields = {"observation": "o", "action": {"a": reward}, "world": world, "terminated": terminated}
    return {"reward": reward, "truncated": False, **fields, **more}


def test_a_policy_imitates_and_goes_on_by_reinforcement(document, build_window, tmp_path):
    path = document(
        extra="training: {epochs: 60, learning_rate: 1e-2, batch_size: 8}\n"
        "value: {epochs: 20, learning_rate: 0.05, batch_size: 8}\n"
    )
    measured = sft.train_sft(load_sft(path))
    assert measured["examples"] == 16
    assert measured["value_loss_last"] < measured["value_loss_first"]
    assert (tmp_path / "out" / "v_head.pt").exists()
    policy = language_policy(tmp_path / "out", max_new_tokens=12, temperature=0.0)
    assert policy.loaded_value_head
    assert policy.act_batch(["ticket a", "ticket b"]) == [{"to": "a"}, {"to": "b"}]
    backend = PPOBackend(policy)
    assert backend.update(build_window([1.0, 0.0]))["samples"] == 2


def test_without_a_value_section_the_critic_starts_fresh(document, tmp_path):
    sft.train_sft(load_sft(document(extra="training: {epochs: 1}\n")))
    assert not language_policy(tmp_path / "out").loaded_value_head


def test_an_adapter_is_what_is_written_when_one_is_trained(document, tmp_path):
    lora = TINY[:-1] + ", lora: {r: 2, target_modules: [q_proj]}}"
    sft.train_sft(load_sft(document(policy=lora, extra="training: {epochs: 1}\n")))
    assert (tmp_path / "out" / "adapter_config.json").exists()
    names = [name for name, _ in language_policy(tmp_path / "out").named_trainable_parameters()]
    assert all("lora_" in name or name.startswith("v_head.") for name in names)


def test_training_that_is_cut_short_leaves_nothing(document, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sft, "save_language_model", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sft.train_sft(load_sft(document(extra="training: {epochs: 1}\n")))
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_model_is_replaced_on_request_only_and_nothing_else_ever(document, tmp_path):
    again = load_sft(document(extra="training: {epochs: 1}\n"))
    again.output_dir.mkdir()  # an empty folder is in nobody's way
    sft.train_sft(again)
    (again.output_dir / "of_the_first").touch()
    with pytest.raises(ConfigError, match=r"already holds a model; replace it with --overwrite"):
        sft.train_sft(again)
    sft.train_sft(again, overwrite=True)
    assert not (again.output_dir / "of_the_first").exists()
    elsewhere = again.model_copy(update={"output_dir": tmp_path})
    with pytest.raises(ConfigError, match="is there and holds no model"):
        sft.train_sft(elsewhere, overwrite=True)


def test_an_empty_directory_is_no_model(tmp_path):
    with pytest.raises(CheckpointError, match=r"an empty directory; `skyfall sft` writes"):
        language_policy(tmp_path)


def test_values_need_returns(document):
    rows = [{"observation": "x", "action": "y"}]
    with pytest.raises(ConfigError, match="no `return`"):
        sft.train_sft(load_sft(document(records=rows, extra="training: {epochs: 1}\nvalue: {epochs: 1}\n")))


def test_trl_is_asked_for_where_it_is_missing(document, monkeypatch):
    monkeypatch.setattr(sft.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"skyfall-crl\[torch,trl\]"):
        sft.train_sft(load_sft(document()))


def test_an_example_becomes_the_prompt_the_policy_acts_on_and_the_action_with_its_end(build_policy):
    policy = build_policy(response_prefix='{"to":"')
    policy.act("ticket a")
    acted = policy.take_generated()[0].prompt_ids
    encoded = sft.encode_example(policy, Example("ticket a", '{"to":"b"}'), 96)
    assert torch.equal(encoded.prompt_ids, acted)
    assert policy.tokenizer.decode(encoded.response_ids) == 'b"}<eos>'


def test_long_prompts_lose_their_beginning_and_long_actions_are_refused(build_policy):
    policy = build_policy()
    encoded = sft.encode_example(policy, Example("x" * 100, "ab"), 20)
    assert encoded.prompt_ids.numel() + encoded.response_ids.numel() == 20
    with pytest.raises(ConfigError, match="fewer than max_length 20"):
        sft.encode_example(policy, Example("x", "a" * 30), 20)


def test_an_action_without_the_prefix_is_refused(build_policy):
    with pytest.raises(ConfigError, match="response_prefix"):
        sft.encode_example(build_policy(response_prefix="{"), Example("x", "go"), 90)


def test_a_suffix_is_not_learned_and_an_action_without_it_is_refused(build_policy):
    policy = build_policy(response_prefix='{"to":"', response_suffix='"}')
    encoded = sft.encode_example(policy, Example("ticket a", '{"to":"b"}'), 96)
    assert policy.tokenizer.decode(encoded.response_ids) == "b<eos>"
    with pytest.raises(ConfigError, match="response_suffix"):
        sft.encode_example(policy, Example("ticket a", '{"to":"b"'), 96)


def test_chat_records_use_the_template_where_there_is_one(build_policy):
    policy = build_policy()
    example = Example(
        None, "hello", [{"role": "system", "content": "Greet."}, {"role": "user", "content": "hi"}]
    )
    assert (
        policy.tokenizer.decode(sft.encode_example(policy, example, 90).prompt_ids) == "Greet.\nhi\nAction:"
    )
    policy.tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}>>"
    decoded = policy.tokenizer.decode(sft.encode_example(policy, example, 90).prompt_ids)
    assert decoded == "<system>Greet.<user>hi>>"


def test_records_of_both_kinds_are_read(tmp_path):
    path = trace_of(
        tmp_path,
        [
            {"observation": {"load": 1}, "action": {"to": "a"}},
            {
                "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
                "return": 2,
            },
        ],
    )
    first, second = read_examples(DataConfig(records=path))
    assert (first.observation, first.action, first.observed_return) == ({"load": 1}, '{"to":"a"}', None)
    assert (second.messages, second.action, second.observed_return) == (
        [{"role": "user", "content": "hi"}],
        "yo",
        2.0,
    )


def test_a_trace_is_filtered_by_reward_after_its_returns_are_known(tmp_path):
    rows = [
        step(1.0),
        step(5.0, world=1),
        step(0.0, terminated=True),
        step(2.0, world=1),
        step(4.0),
    ]
    examples = read_examples(DataConfig(trace=trace_of(tmp_path, rows), min_reward=1.0), gamma=0.5)
    assert [example.observed_return for example in examples] == [1.0, 6.0, 2.0, 4.0]
    assert [example.action for example in examples] == ['{"a":1.0}', '{"a":5.0}', '{"a":2.0}', '{"a":4.0}']


def test_a_torn_last_line_is_left_out_and_damage_elsewhere_named(tmp_path):
    path = trace_of(tmp_path, [step(1.0)])
    path.write_text(path.read_text() + '{"reward": 1', encoding="utf-8")
    assert len(read_examples(DataConfig(trace=path))) == 1
    path.write_text("{oops\n" + json.dumps(step(1.0)) + "\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"traces.jsonl:1: no JSON"):
        read_examples(DataConfig(trace=path))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"observation": "x"}], "`observation` and `action`"),
        ([{"messages": []}], "`messages` must be a list"),
        ([{"messages": [{"role": "user", "content": "hi"}]}], "must be the assistant's"),
        ([[1]], "one object a line"),
    ],
)
def test_records_that_cannot_be_used_are_named(tmp_path, rows, message):
    with pytest.raises(ConfigError, match=message):
        read_examples(DataConfig(records=trace_of(tmp_path, rows)))


def test_traces_without_observations_or_without_good_steps_are_errors(tmp_path):
    with pytest.raises(ConfigError, match="record_observations"):
        read_examples(DataConfig(trace=trace_of(tmp_path, [{"reward": 1.0, "action": 1}])))
    with pytest.raises(InputError, match=r"reward 3\.0 or more"):
        read_examples(DataConfig(trace=trace_of(tmp_path, [step(1.0)]), min_reward=3.0))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{}", "either `records` or `trace`"),
        ("{records: a, trace: b}", "either `records` or `trace`"),
        ("{records: a, min_reward: 1.0}", "filters a `trace`"),
        ("{record: a}", "did you mean 'records'"),
    ],
)
def test_a_document_with_faults_names_place_and_remedy(document, data, message):
    with pytest.raises(ConfigError, match=message):
        load_sft(document(data=data))


def test_a_document_needs_a_model(document):
    with pytest.raises(ConfigError, match="`model` is missing"):
        load_sft(document(policy="{seed: 1}"))


def test_paths_are_relative_to_the_document_and_values_can_be_replaced(document, tmp_path):
    read = load_sft(document(), ["training.epochs=7", "policy.model=../base"])
    assert read.output_dir == tmp_path / "out"
    assert read.data.records == tmp_path / "data.jsonl"
    assert read.training.epochs == 7
    assert read.policy["model"] == str(tmp_path / "../base")


def test_actions_are_written_compactly():
    assert action_text({"to": "é", "n": [1]}) == '{"to":"é","n":[1]}'
    assert action_text("as is") == "as is"


@pytest.mark.parametrize(
    "module", ["skyfall_torch.sft_command", "skyfall_torch.sft_config", "skyfall_torch.sft_data"]
)
def test_command_and_document_import_no_torch(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
