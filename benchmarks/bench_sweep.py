"""What running many cells costs: side by side beside one after another, start-up, planning and resuming.

python benchmarks/bench_sweep.py
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np
import yaml

from skyfall_core.config import ExperimentConfig
from skyfall_core.executors.base import Cell, CellBegan, CellEvent, CellOutcome, CellProgress
from skyfall_core.executors.local import LocalExecutor
from skyfall_core.run_directory import Result, trace_path_for
from skyfall_core.sweep import read_sweep

SKYFALL = Path(sys.executable).with_name("skyfall")


class Busy(gymnasium.Env[np.ndarray, int]):
    """A world whose steps take so many seconds of processor time, however long those last."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        until = time.process_time() + self._seconds
        while time.process_time() < until:
            pass
        return np.zeros(1, np.float32), 0.0, False, False, {}


def busy_cells(folder: Path, count: int, seconds: float) -> list[Cell]:
    return [
        Cell(
            ExperimentConfig.model_validate(
                {
                    "environment": {"id": "bench_sweep:Busy", "kwargs": {"seconds": seconds / 10}},
                    "algorithm": {"name": "random", "kwargs": {"seed": 0}},
                    "rollout": {"window_steps": 1, "total_steps": 10},
                    "run": {"name": f"cell{number}", "seed": 0, "output_dir": str(folder)},
                }
            ),
            "overwrite",
        )
        for number in range(count)
    ]


def seconds_of(cells: list[Cell], jobs: int) -> float:
    began = time.perf_counter()
    outcomes: list[CellOutcome] = []
    LocalExecutor(jobs=jobs).run(
        cells, lambda event: outcomes.append(event) if isinstance(event, CellOutcome) else None
    )
    assert all(outcome.error is None for outcome in outcomes), outcomes
    return time.perf_counter() - began


def start_ups(folder: Path, count: int) -> list[float]:
    """From giving a cell to a process until its first step is done; the first of them starts the worker."""
    began: dict[str, float] = {}
    took: dict[str, float] = {}

    def tell(event: CellEvent) -> None:
        now = time.perf_counter()
        if isinstance(event, CellBegan):
            began[event.name] = now
        elif isinstance(event, CellProgress):
            took.setdefault(event.name, now - began[event.name])

    LocalExecutor().run(busy_cells(folder, count, 0.0), tell)
    return list(took.values())


def ten_thousand(folder: Path) -> Path:
    """A sweep of 9,999 cells with a schedule, every cell recorded as finished."""
    document = yaml.safe_load((Path(__file__).parents[1] / "examples/baselines-sweep.yaml").read_bytes())
    document |= {"seeds": list(range(3333)), "output_dir": str(folder / "runs")}
    folder.mkdir()
    path = folder / "sweep.yaml"
    path.write_text(json.dumps(document))
    for cell in read_sweep(path).cells:
        trace = trace_path_for(cell)
        assert trace is not None
        trace.parent.mkdir(parents=True)
        trace.touch()
        content = json.loads(json.dumps(cell.model_dump(mode="json", exclude_none=True)))
        result = Result(cell.rollout.total_steps, [], {}, content)
        trace.with_name("result.json").write_bytes(msgspec.json.encode(result))
    return path


def command_seconds(*arguments: str, repeats: int = 5) -> tuple[float, float]:
    """Medians of wall-clock and processor time of a command."""
    wall, busy = [], []
    for _ in range(repeats):
        before, began = os.times(), time.perf_counter()
        subprocess.run([SKYFALL, *arguments], check=True, capture_output=True)
        after = os.times()
        wall.append(time.perf_counter() - began)
        busy.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
    return statistics.median(wall), statistics.median(busy)


def main() -> None:
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ratios = []
        for _ in range(3):
            cells = busy_cells(folder, 16, 1.0)
            alone, beside = seconds_of(cells, 1), seconds_of(cells, 2)
            print(f"16 cells: {alone:.1f} s one after another, {beside:.1f} s with --jobs 2")
            ratios.append(alone / beside)
        print(f"16 cells of one core-second, --jobs 2: {statistics.median(ratios):.2f} x one after another")
        first, *further = start_ups(folder, 12)
        print(f"start-up: {first:.2f} s the first cell, {statistics.median(further):.3f} s further ones")
        sweep = str(ten_thousand(folder / "many"))
        for options in (["--dry-run"], ["--resume"]):
            wall, busy = command_seconds("sweep", sweep, *options)
            print(f"{options[0]} of 9,999 cells: {wall:.2f} s wall, {busy:.2f} s processor")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
