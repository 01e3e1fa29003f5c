"""`skyfall validate`: the document resolved, or what is wrong with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from skyfall_core.cli.app import build_app
from skyfall_core.config import load_config
from skyfall_core.sweep import load_sweep

EXPERIMENT = """\
environment: {id: CartPole-v1}
algorithm: {name: random, kwargs: {seed: SEED}}
rollout: {total_steps: 10}
run: {seed: 3, output_dir: runs}
"""
SWEEP = """\
base:
  environment: {id: CartPole-v1}
  algorithm: {name: random}
  rollout: {total_steps: 10}
families: {one: {}, two: {algorithm: {name: frozen}}}
seeds: [0, 1]
output_dir: runs
"""
SCHEDULE = """\
regimes:
- {regime_id: a, duration_steps: 5000, axes: {gravity: 9.8}}
- {regime_id: b, duration_steps: 20}
- {regime_id: c, alias_of: a}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "document.yaml"


def validate(file: Path, text: str | None, *arguments: str) -> Result:
    if text is not None:
        file.write_text(text)
    return CliRunner().invoke(build_app(), ["validate", str(file), *arguments])


def test_experiment_is_printed_resolved_and_reads_back_equal(file: Path, tmp_path: Path) -> None:
    done = validate(file, EXPERIMENT, "--set", "rollout.total_steps=99")
    assert (done.exit_code, done.stderr) == (0, "")
    again = tmp_path / "again" / "resolved.yaml"
    again.parent.mkdir()
    again.write_text(done.stdout)
    assert load_config(again) == load_config(file, ["rollout.total_steps=99"])
    assert load_config(again).algorithm.kwargs == {"seed": 3}


def test_sweep_is_printed_as_its_cells(file: Path) -> None:
    done = validate(file, SWEEP)
    assert (done.exit_code, done.stderr) == (0, "")
    printed = list(yaml.safe_load_all(done.stdout))
    assert [cell["run"]["name"] for cell in printed] == ["one-seed0", "one-seed1", "two-seed0", "two-seed1"]
    assert done.stdout == "---\n".join(cell.to_yaml() for cell in load_sweep(file))


def test_schedule_is_printed_entry_by_entry(file: Path) -> None:
    done = validate(file, SCHEDULE)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "0: a, 5,000 steps, {'gravity': 9.8}",
        "1: b, 20 steps, {}",
        "2: c, until the end, repeats a, {'gravity': 9.8}",
    ]


@pytest.mark.parametrize(
    ("text", "arguments", "problem"),
    [
        (None, [], "FILE: cannot be read: No such file or directory"),
        ("", [], "FILE: the document is empty"),
        ("[]", [], "FILE: the document is a list; a mapping of sections is expected"),
        (
            EXPERIMENT.replace("10", "-1"),
            [],
            "FILE:3: rollout.total_steps: -1 should be greater than or equal to 1",
        ),
        (
            EXPERIMENT,
            ["--set", "rollout.total_steps=x"],
            "--set rollout.total_steps=x: rollout.total_steps: 'x' should be a valid integer",
        ),
        (
            EXPERIMENT,
            ["--set", "nonsense"],
            "--set nonsense: expected dotted.path=value, such as rollout.total_steps=500",
        ),
        (
            SWEEP.replace("[0, 1]", "[0, 0]"),
            [],
            "FILE:6: seeds: 0 stands 2 times; each cell needs its own",
        ),
        (
            SCHEDULE.replace("20", "0"),
            [],
            "FILE:3: regimes[1].duration_steps: 0 is no duration; at least 1 step, or none on the last entry",
        ),
        (
            SCHEDULE,
            ["--set", "shift_mode=cyclic"],
            "FILE:4: regimes[2].duration_steps: missing; a cyclic schedule needs every duration",
        ),
        (
            SCHEDULE,
            ["--set", "shift_mode=cyclc"],
            (
                "--set shift_mode=cyclc: shift_mode: 'cyclc': did you mean 'cyclic'? "
                "known: 'abrupt', 'cyclic', 'linear_drift'"
            ),
        ),
    ],
)
def test_bad_document_exits_2_with_one_line_and_nothing_on_standard_output(
    file: Path, text: str | None, arguments: list[str], problem: str
) -> None:
    done = validate(file, text, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"error: {problem}\n".replace("FILE", str(file))


def test_directory_exits_2(tmp_path: Path) -> None:
    done = validate(tmp_path, None)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"error: {tmp_path}: cannot be read: Is a directory\n"


def test_every_fault_is_a_line(file: Path) -> None:
    done = validate(file, "environment: {}\nalgorithm: {name: nope}\nrollout: {total_steps: 0}\n")
    assert done.exit_code == 2
    assert [line.split(": ")[:3] for line in done.stderr.splitlines()] == [
        ["error", f"{file}:1", "environment.id"],
        ["error", f"{file}:2", "algorithm.name"],
        ["error", f"{file}:3", "rollout.total_steps"],
    ]


def test_naming_a_torch_backend_imports_no_torch(file: Path) -> None:
    file.write_text(
        "environment: {id: CartPole-v1}\n"
        "algorithm: {name: ppo, policy: {factory: 'skyfall_torch.policy:language_policy'}}\n"
        "rollout: {total_steps: 10}\n"
    )
    code = (
        "import sys\nfrom skyfall_core.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code in (None, 0), end.code\n"
        "heavy = ('torch', 'transformers', 'peft')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "validate", str(file)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert done.stderr == "[]\n"
    assert yaml.safe_load(done.stdout)["algorithm"]["name"] == "ppo"
