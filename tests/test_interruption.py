"""A real `skyfall run`, stopped in every way it can be: the trace stays whole and the world is closed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skyfall_core.trace import TraceWriter

SKYFALL = Path(sys.executable).with_name("skyfall")

WORLD = """
import pathlib, threading
import gymnasium
import numpy as np

class World(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, here, waits_at=None, ready_at=None):
        self.here, self.waits_at, self.ready_at, self.count = pathlib.Path(here), waits_at, ready_at, 0

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        if self.count in (self.waits_at, self.ready_at):
            print("ready", flush=True)
        if self.count == self.waits_at:
            while True:  # as a world that waits for its server does
                threading.Event().wait(0.05)
        self.count += 1
        return np.zeros(1, np.float32), 1.0, False, False, {"trace": {"padding": "x" * 200}}

    def close(self):
        (self.here / "closed").write_text(str(self.count))
"""


@contextlib.contextmanager
def running(tmp_path: Path, every: int = 10_000, **kwargs: Any) -> Iterator[subprocess.Popen[str]]:
    """A run of a million steps that has just said that it is ready; gone when the block is left."""
    (tmp_path / "waiting_world.py").write_text(WORLD)
    document = {
        "environment": {"id": "waiting_world:World", "kwargs": {"here": str(tmp_path), **kwargs}},
        "algorithm": {"name": "random"},
        "rollout": {"window_steps": 16, "total_steps": 1_000_000},
        "run": {"name": "one", "output_dir": "runs", "checkpoint_every": every},
    }
    (tmp_path / "doc.yaml").write_text(json.dumps(document))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(
        [SKYFALL, "run", "doc.yaml"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def lines(tmp_path: Path) -> list[bytes]:
    return (tmp_path / "runs" / "one" / "traces.jsonl").read_bytes().split(b"\n")


@pytest.mark.parametrize(
    ("number", "status", "every", "going_on"),
    [
        (signal.SIGINT, 130, 16, "go on with: skyfall run doc.yaml --resume"),
        (
            signal.SIGTERM,
            143,
            10_000,
            "it has no checkpoint to go on from; run.checkpoint_every says how often one is written",
        ),
    ],
    ids=["INT", "TERM"],
)
def test_a_signal_leaves_a_whole_trace_and_a_closed_world(
    tmp_path: Path, number: int, status: int, every: int, going_on: str
) -> None:
    with running(tmp_path, every, waits_at=37) as process:
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == status
    *rows, rest = lines(tmp_path)
    assert [json.loads(row)["step"] for row in rows] == list(range(37))
    assert rest == b""
    assert (tmp_path / "closed").read_text() == "37"
    assert said.splitlines() == [
        "stopped; every step taken is in runs/one/traces.jsonl",
        "score it with: skyfall score runs/one",
        going_on,
        "interrupted",
    ]


def test_a_signal_in_the_middle_of_stepping_leaves_whole_rows(tmp_path: Path) -> None:
    with running(tmp_path, ready_at=500) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    *rows, rest = lines(tmp_path)
    assert rest == b""
    assert [json.loads(row)["step"] for row in rows] == list(range(len(rows)))
    assert len(rows) >= 500
    assert int((tmp_path / "closed").read_text()) in {len(rows), len(rows) + 1}


def test_a_second_signal_ends_the_wait(tmp_path: Path) -> None:
    with running(tmp_path, waits_at=37) as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode in {130, 143}
    assert (tmp_path / "closed").read_text() == "37"


def cart(tmp_path: Path, name: str, steps: int) -> list[str | Path]:
    document = {
        "environment": {"id": "CartPole-v1"},
        "algorithm": {"name": "actor-critic", "kwargs": {"seed": 1}},
        "rollout": {"window_steps": 64, "total_steps": steps, "auto_reset": True},
        "run": {"name": name, "seed": 3, "output_dir": "runs", "checkpoint_every": 256},
    }
    (tmp_path / f"{name}.yaml").write_text(json.dumps(document))
    return [SKYFALL, "run", f"{name}.yaml", "-q"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_and_resumed_run_equals_an_undisturbed_one(tmp_path: Path, number: int) -> None:
    whole, cut = cart(tmp_path, "whole", 8000), cart(tmp_path, "cut", 8000)
    subprocess.run(whole, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    trace = tmp_path / "runs" / "cut" / "traces.jsonl"
    for kilobytes in (20, 300, 700):
        resume = ["--resume"] if trace.exists() else []
        process = subprocess.Popen([*cut, *resume], cwd=tmp_path, stderr=subprocess.PIPE)
        while process.poll() is None and (not trace.exists() or trace.stat().st_size < kilobytes * 1000):
            pass
        process.send_signal(number)
        process.communicate(timeout=60)
    subprocess.run([*cut, "--resume"], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    expected = (tmp_path / "runs" / "whole" / "traces.jsonl").read_bytes()
    assert trace.read_bytes() == expected.replace(b'"run_id":"whole"', b'"run_id":"cut"')


def test_a_killed_run_loses_at_most_the_row_it_was_writing(tmp_path: Path) -> None:
    with running(tmp_path, ready_at=500) as process:
        process.kill()
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    *rows, torn = lines(tmp_path)
    assert [json.loads(row)["step"] for row in rows] == list(range(len(rows)))
    assert len(rows) >= 500
    assert len(torn) < len(rows[-1]) + 10
    with TraceWriter(tmp_path / "runs" / "one" / "traces.jsonl", mode="append") as writer:
        assert writer.repaired_bytes == len(torn)


def test_a_killed_run_can_be_scored(tmp_path: Path) -> None:
    with running(tmp_path, waits_at=40) as process:
        process.kill()
        process.communicate(timeout=60)
    trace = tmp_path / "runs" / "one" / "traces.jsonl"
    trace.write_bytes(trace.read_bytes() + b'{"trace_version":1,"step":40,"rew')
    scored = subprocess.run(
        [SKYFALL, "score", "runs/one"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert scored.returncode == 0
    assert "Reward per configuration" in scored.stdout
    assert "line 41 was cut off" in scored.stderr


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
sys.argv = ["skyfall", *sys.argv[1:]]
from skyfall_core.cli import main
main()
"""

DOCUMENT = {
    "environment": {"id": "CartPole-v1"},
    "algorithm": {"name": "random"},
    "rollout": {"total_steps": 5000, "auto_reset": True},
    "run": {"name": "one"},
}


def failing_run(tmp_path: Path, output_dir: Path, *start: str) -> None:
    """Run until the system takes no more; every step before is there, whole, and named."""
    document = {**DOCUMENT, "run": {"name": "one", "output_dir": str(output_dir)}}
    (tmp_path / "doc.yaml").write_text(json.dumps(document))
    done = subprocess.run(
        [*start, "run", "doc.yaml", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1
    *rows, rest = (output_dir / "one" / "traces.jsonl").read_bytes().split(b"\n")
    assert rest == b""
    assert len(rows) > 50
    assert [json.loads(row)["step"] for row in rows] == list(range(len(rows)))
    assert f"step {len(rows)} could not be written" in done.stderr


def test_a_file_that_may_grow_no_further_stops_the_run_with_whole_rows(tmp_path: Path) -> None:
    failing_run(tmp_path, tmp_path / "runs", sys.executable, "-c", LIMITED)


@contextlib.contextmanager
def small_disk(path: Path, options: str) -> Iterator[Path]:
    """A disk of 64 KiB at `path`, where this machine lets us mount one."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    path.mkdir()
    command = [mount or "mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    if not mount or not umount or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield path
    finally:
        subprocess.run([umount, str(path)], check=True)


def test_a_full_disk_stops_the_run_with_whole_rows(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=64k") as disk:
        failing_run(tmp_path, disk, str(SKYFALL))


def test_a_disk_that_takes_no_writing_is_refused_before_the_run(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=64k,ro") as disk:
        document = {**DOCUMENT, "run": {"name": "one", "output_dir": str(disk)}}
        (tmp_path / "doc.yaml").write_text(json.dumps(document))
        done = subprocess.run(
            [SKYFALL, "run", "doc.yaml"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "is not writable; choose another output_dir" in done.stderr
