"""The documented chain from the command line: demonstrations, warm start, reinforcement learning."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
pytest.importorskip("trl")


@pytest.mark.timeout(600)
def test_demonstrations_warm_start_and_reinforcement_learning_follow_each_other(tmp_path: Path) -> None:
    """The documents as they are, but for how long: six configurations of two steps in eight worlds."""
    (tmp_path / "examples").mkdir()
    for name in ("morpheus_sft.yaml", "morpheus_ppo.yaml"):
        shutil.copy(EXAMPLES / name, tmp_path / "examples")
    demo = "morpheus demo -o runs/morpheus-demo.jsonl --steps 8 --observe brief --gamma 0.9"
    skyfall(tmp_path, *demo.split())
    skyfall(tmp_path, "sft", "examples/morpheus_sft.yaml", "--set", "training.epochs=1")
    short = ("rollout.total_steps=12", "rollout.window_steps=6", "regime.params.duration_steps=2")
    options = [word for setting in short for word in ("--set", setting)]
    skyfall(tmp_path, "run", "examples/morpheus_ppo.yaml", "--quiet", *options)
    skyfall(tmp_path, "run", "examples/morpheus_ppo.yaml", "--quiet", *options, *frozen())

    learned, warm = (rows(tmp_path, name) for name in ("morpheus-ppo", "morpheus-warm-start"))
    for found in (learned, warm):
        assert {(row["step"], row["world"]) for row in found} == {(s, w) for s in range(12) for w in range(8)}
        assert len({row["regime_id"] for row in found}) == 6
    first_window = [row for row in learned if row["step"] < 6]
    assert [row["action"] for row in first_window] == [row["action"] for row in warm if row["step"] < 6]


def frozen() -> list[str]:
    """The options that the example names for its control."""
    text = (EXAMPLES / "morpheus_ppo.yaml").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "algorithm.name=frozen" in line)
    return line.partition("morpheus_ppo.yaml ")[2].split()


def rows(folder: Path, name: str) -> list[dict[str, object]]:
    text = (folder / "runs" / name / "traces.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def skyfall(folder: Path, *words: str) -> None:
    """One command, as a user would give it."""
    command = [str(Path(sys.executable).parent / "skyfall"), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
