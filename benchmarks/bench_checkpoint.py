"""What checkpoints cost a run of the tiny language model: one every so many steps beside none.

The share of the run that is spent writing is measured inside the run; wall times of whole runs, taken in
turn, are printed beside it and are noisier than what they compare.

    OMP_NUM_THREADS=1 python benchmarks/bench_checkpoint.py [steps] [rounds]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from skyfall_core.config import ExperimentConfig
from skyfall_core.experiment import run_experiment
from skyfall_core.recording import RunDirectory


def config(folder: Path, steps: int, every: int) -> ExperimentConfig:
    """One world of tickets, the tiny model as it comes, an update every 50 steps."""
    return ExperimentConfig.model_validate(
        {
            "environment": {"id": "skyfall_torch.dispatch:DispatchWorlds", "kwargs": {"worlds": 1}},
            "algorithm": {
                "name": "ppo",
                "kwargs": {"action_tokens": "all", "minibatch_size": 16, "epochs": 1, "seed": 0},
                "policy": {
                    "factory": "skyfall_torch.policy:language_policy",
                    "kwargs": {"model": "tiny", "max_new_tokens": 8, "seed": 0},
                },
            },
            "rollout": {"window_steps": 50, "total_steps": steps},
            "run": {"name": "run", "seed": 0, "output_dir": str(folder), "checkpoint_every": every},
        }
    )


def run(steps: int, every: int) -> tuple[float, list[float], int]:
    """Seconds of a run, of each checkpoint in it, and the bytes of the last one."""
    written: list[float] = []
    write = RunDirectory.checkpoint_if_due

    def timed(self: RunDirectory, *arguments: Any, **options: Any) -> None:
        began = time.perf_counter()
        write(self, *arguments, **options)
        written.append(time.perf_counter() - began)

    with tempfile.TemporaryDirectory() as name, patch.object(RunDirectory, "checkpoint_if_due", timed):
        began = time.perf_counter()
        run_experiment(config(Path(name), steps, every))
        took = time.perf_counter() - began
        newest = max(Path(name).glob("run/checkpoints/step-*"), default=Path(name) / "none")
        size = sum(path.stat().st_size for path in newest.rglob("*") if path.is_file())
    return took, written, size


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    every = 1_000
    run(100, 0)  # imports
    plain, checked, shares, each = [], [], [], []
    for _ in range(rounds):
        plain.append(run(steps, 0)[0])
        took, written, size = run(steps, every)
        checked.append(took)
        shares.append(sum(written) / took)
        each += sorted(written)[-(steps // every) :]
    print(
        f"{steps:,} steps of one world, a checkpoint of {size / 1e6:.1f} MB every {every:,}, {rounds} rounds"
    )
    print(f"a checkpoint              median {statistics.median(each) * 1000:8.1f} ms")
    print(f"share of the run's time   median {statistics.median(shares):8.2%}")
    print(f"whole run without         median {statistics.median(plain):8.2f} s")
    print(f"whole run with            median {statistics.median(checked):8.2f} s")


if __name__ == "__main__":
    main()
