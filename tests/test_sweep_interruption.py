"""A real `skyfall sweep`, stopped in every way it can be, then continued: nothing lost, doubled or left.

Kills at a few random points; `SKYFALL_KILLS=50 pytest tests/test_sweep_interruption.py -k killed_at` at 50.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SKYFALL = Path(sys.executable).with_name("skyfall")
KILLS = int(os.environ.get("SKYFALL_KILLS", "4"))
WORLD_FOLDER = Path(__file__).parent / "core"

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")


def document(folder: Path, steps: int = 400) -> Path:
    """Three deterministic families by two seeds, with a shift and checkpoints in every cell."""
    regimes = [
        {"regime_id": "baseline", "duration_steps": steps // 2},
        {"regime_id": "reversed", "axes": {"force_mag": -10.0}},
    ]
    content = {
        "base": {
            "environment": {
                "id": "CartPole-v1",
                "wrappers": [{"factory": "skyfall_core.envs:AttributeShift"}],
            },
            "rollout": {"window_steps": 20, "total_steps": steps, "auto_reset": True},
            "regime": {"provider": "scheduled", "params": {"schedule": {"regimes": regimes}}},
            "run": {"checkpoint_every": 60},
        },
        "families": {
            name: {"algorithm": {"name": name, "kwargs": {"seed": "SEED"}}}
            for name in ("actor-critic", "random", "frozen")
        },
        "seeds": [0, 1],
        "output_dir": "runs",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sweep.yaml"
    path.write_text(json.dumps(content))
    return path


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [str(SKYFALL), "sweep", "sweep.yaml", "--jobs", "2", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(WORLD_FOLDER)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def finish(folder: Path, *arguments: str) -> None:
    process = start(folder, "-q", *arguments)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said


def descendants(pid: int) -> set[int]:
    """Every process below `pid`, at this moment."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    found, above = set(), {pid}
    while above:
        above = {child for child, parent in parents.items() if parent in above}
        found |= above
    return found


def wait_until_gone(pids: set[int]) -> None:
    """Return once none of the processes runs; the test's own timeout ends the waiting."""
    while any(_runs(pid) for pid in pids):
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def records(folder: Path) -> dict[str, tuple[bytes, Any]]:
    """Each cell's trace and scorecard."""
    return {
        trace.parent.name: (
            trace.read_bytes(),
            json.loads((trace.parent / "scorecard.json").read_text()),
        )
        for trace in sorted(folder.glob("runs/*/traces.jsonl"))
    }


def waiting_document(folder: Path, does: str) -> None:
    content = {
        "base": {
            "environment": {
                "id": "executor_world:World",
                "kwargs": {"here": str(folder), "does": does, "at": 7},
            },
            "algorithm": {"name": "random", "kwargs": {"seed": "SEED"}},
            "rollout": {"window_steps": 5, "total_steps": 1_000_000},
        },
        "families": {"a": {}},
        "seeds": [0, 1, 2],
        "output_dir": "runs",
    }
    (folder / "sweep.yaml").write_text(json.dumps(content))


def wait_for(folder: Path, process: subprocess.Popen[str], count: int) -> set[int]:
    """The processes of so many cells, once they have come to the step at which they tell."""
    while len(list(folder.glob("waiting-*[0-9]"))) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return descendants(process.pid)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_windows_writes_checkpoints_and_prints_how_to_go_on(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    waiting_document(tmp_path, "waits_a_little")
    process = start(tmp_path)
    running = wait_for(tmp_path, process, 2)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status
    wait_until_gone(running)
    assert said.splitlines()[-3:] == [
        "stopped: 2 interrupted, 1 not begun; every step taken is recorded",
        "go on with: skyfall sweep sweep.yaml --jobs 2 --resume",
        "interrupted",
    ]
    assert len(list(tmp_path.glob("closed-*"))) == 2
    for name in ("a-seed0", "a-seed1"):
        rows = (tmp_path / "runs" / name / "traces.jsonl").read_bytes().splitlines()
        assert [json.loads(row)["step"] for row in rows] == list(range(len(rows)))
        assert len(rows) % 5 == 0
        newest = max((tmp_path / "runs" / name / "checkpoints").iterdir())
        assert newest.name == f"step-{len(rows):012d}"


def test_no_process_is_left_when_the_sweep_itself_is_killed(tmp_path: Path) -> None:
    waiting_document(tmp_path, "waits_with_a_child")
    process = start(tmp_path)
    running = wait_for(tmp_path, process, 2)
    assert len(running) >= 6  # two workers, two cells, two children of theirs
    process.kill()
    process.communicate(timeout=60)
    wait_until_gone(running)
    assert len(list(tmp_path.glob("closed-*"))) == 2


def test_killed_at_random_points_and_resumed_a_sweep_is_what_it_would_have_been(tmp_path: Path) -> None:
    document(tmp_path / "whole")
    began = time.monotonic()
    finish(tmp_path / "whole")
    took = time.monotonic() - began
    whole = records(tmp_path / "whole")
    assert len(whole) == 6
    draws = random.Random(7)  # noqa: S311 - where to kill
    for kill in range(KILLS):
        folder = tmp_path / f"killed{kill}"
        document(folder)
        for attempt in range(draws.randint(1, 3)):
            process = start(folder, "-q", *(["--resume"] if attempt else []))
            try:
                _, said = process.communicate(timeout=draws.uniform(0.2, took))
                assert process.returncode == 0, said
                break
            except subprocess.TimeoutExpired:
                running = descendants(process.pid)
                process.kill()
                process.communicate(timeout=60)
                wait_until_gone(running)
        finish(folder, "--resume")
        assert _without_place(records(folder)) == _without_place(whole)


def _without_place(found: dict[str, tuple[bytes, Any]]) -> dict[str, tuple[bytes, Any]]:
    """Records without the one thing that differs: where they are."""
    return {name: (trace, _nowhere(card)) for name, (trace, card) in found.items()}


def _nowhere(card: Any) -> Any:
    if isinstance(card, dict):
        return {key: _nowhere(value) for key, value in card.items() if key not in {"path", "source", "trace"}}
    return [_nowhere(value) for value in card] if isinstance(card, list) else card
