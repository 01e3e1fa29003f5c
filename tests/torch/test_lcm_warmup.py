import gzip
import json
import subprocess
import sys

import pytest

from skyfall_core.errors import ConfigError, InputError
from skyfall_torch.errors import WarmupError
from skyfall_torch.lcm_encoder import RegimeContextEncoder
from skyfall_torch.lcm_warmup import train_warmup
from skyfall_torch.lcm_warmup_config import load_warmup_document
from skyfall_torch.lcm_warmup_file import load_encoder_weights, read_warmup

KEYS = {
    "calm": {"cash": 1},
    "strained": {"cash": 1, "overdraft": {"rate": 2}},
    "short": {"staff": [{"id": 1}]},
}
SHAPE = {"context_steps": 4, "latent_dim": 8, "hidden_dim": 16, "state_dim": 300, "regimes": list(KEYS)}


def write_trace(path, *, steps=20, rounds=2, **changes):
    rows, step = [], 0
    for _ in range(rounds):
        for regime, observation in KEYS.items():
            for _ in range(steps):
                row = {"step": step, "reward": 0.0, "terminated": step % 7 == 6, "truncated": False}
                rows.append(
                    {**row, "regime_id": regime, "boundary": False, "observation": observation, **changes}
                )
                step += 1
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_document(folder, **changes):
    document = {
        "traces": ["traces.jsonl"],
        "encoder": SHAPE,
        "training": {"steps": 60, "learning_rate": 0.01},
        "output": "warm/encoder.safetensors",
        **changes,
    }
    (folder / "warmup.yaml").write_text(json.dumps(document), encoding="utf-8")
    return folder / "warmup.yaml"


def test_configurations_with_other_keys_are_told_apart_on_held_out_steps(tmp_path):
    write_trace(tmp_path / "traces.jsonl")
    result = train_warmup(load_warmup_document(write_document(tmp_path)))
    assert result.accuracy_by_regime == dict.fromkeys(KEYS, 1.0)
    assert result.held_out_steps == dict.fromkeys(KEYS, 8)
    assert result.training_steps == 96


def test_configurations_that_differ_in_values_only_look_the_same(tmp_path, monkeypatch):
    for index, name in enumerate(KEYS):
        monkeypatch.setitem(KEYS, name, {"cash": index})
    write_trace(tmp_path / "traces.jsonl")
    result = train_warmup(load_warmup_document(write_document(tmp_path)))
    assert result.accuracy == pytest.approx(1 / 3)


def test_what_is_written_is_what_load_warmup_reads(tmp_path):
    write_trace(tmp_path / "traces.jsonl")
    document = load_warmup_document(write_document(tmp_path))
    train_warmup(document)
    encoder = RegimeContextEncoder(**SHAPE)
    report = load_encoder_weights(encoder, *read_warmup(document.output), "file")
    assert not report.dropped
    assert not report.missing


def test_worlds_and_repeated_configurations_are_read_by_their_labels(tmp_path):
    write_trace(tmp_path / "traces.jsonl", world=1, regime_id="calm_again", origin="calm")
    result = train_warmup(load_warmup_document(write_document(tmp_path)))
    assert set(result.held_out_steps) == {"calm"}


def test_a_torn_last_row_is_left_out_and_damage_before_it_refused(tmp_path):
    trace = write_trace(tmp_path / "traces.jsonl")
    whole = trace.read_text()
    trace.write_text(whole + '{"step": 9')
    assert train_warmup(load_warmup_document(write_document(tmp_path))).training_steps == 96
    trace.write_text('{"step": 9\n' + whole)
    with pytest.raises(InputError, match=r"traces\.jsonl:1: damaged"):
        train_warmup(load_warmup_document(write_document(tmp_path)))


def test_a_compressed_trace_teaches_the_same(tmp_path):
    trace = write_trace(tmp_path / "traces.jsonl")
    plain = train_warmup(load_warmup_document(write_document(tmp_path)))
    packed = tmp_path / "traces.jsonl.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    assert train_warmup(load_warmup_document(write_document(tmp_path, traces=[packed.name]))) == plain
    packed.write_bytes(packed.read_bytes()[:50])
    with pytest.raises(InputError, match=r"traces\.jsonl\.gz: not a readable trace"):
        train_warmup(load_warmup_document(write_document(tmp_path, traces=[packed.name])))
    with pytest.raises(InputError, match="decompress it first"):
        train_warmup(load_warmup_document(write_document(tmp_path, traces=["traces.jsonl.zst"])))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"step": 0, "regime_id": "calm"}\n', "record_observations"),
        ('{"step": 0, "regime_id": "clam", "observation": {}}\n', "did you mean 'calm'"),
        ("[1]\n", "expected an object"),
        ('{"regime_id": "calm", "world": [1], "observation": {}}\n', r"world \[1\]"),
        ("[" * 100_000 + "\n", r"traces\.jsonl:1: damaged"),
        ("", "no steps"),
    ],
)
def test_traces_nothing_can_be_learned_from_are_refused(tmp_path, content, message):
    (tmp_path / "traces.jsonl").write_text(content)
    with pytest.raises(InputError, match=message):
        train_warmup(load_warmup_document(write_document(tmp_path)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": "encoder.pt"}, "must end in .safetensors"),
        ({"traces": []}, "traces"),
        ({"training": {"stpes": 3}}, "did you mean"),
        ({"encoder": {"context_step": 3}}, "encoder"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_documents_that_cannot_be_are_refused(tmp_path, changes, message):
    write_trace(tmp_path / "traces.jsonl")
    with pytest.raises(ConfigError, match=message):
        train_warmup(load_warmup_document(write_document(tmp_path, **changes)))


@pytest.mark.parametrize("output", ["taken.safetensors", "traces.jsonl/encoder.safetensors"])
def test_an_output_that_cannot_be_written_is_refused_before_training(tmp_path, output):
    write_trace(tmp_path / "traces.jsonl")
    (tmp_path / "taken.safetensors").mkdir()
    document = load_warmup_document(write_document(tmp_path, output=output))
    with pytest.raises(InputError, match=r"output .*(is a directory|cannot be written)") as caught:
        train_warmup(document)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("option", ["learning_rate", "consistency_coeff"])
def test_a_training_that_diverges_writes_nothing(tmp_path, option):
    write_trace(tmp_path / "traces.jsonl")
    document = load_warmup_document(write_document(tmp_path))
    training = document.training.model_copy(update={option: float("inf"), "steps": 1})
    document = document.model_copy(update={"training": training})
    with pytest.raises(WarmupError, match="nothing was written"):
        train_warmup(document)
    assert not document.output.exists()


def test_the_command_prints_the_file_and_the_accuracy(tmp_path):
    write_trace(tmp_path / "traces.jsonl")
    program = "from skyfall_core.cli import main; main()"
    finished = subprocess.run(
        [sys.executable, "-c", program, "lcm-warmup", str(write_document(tmp_path)), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    printed = json.loads(finished.stdout)
    assert printed["accuracy"] == 1.0
    assert (tmp_path / "warm" / "encoder.safetensors").is_file()
