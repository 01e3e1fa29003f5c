"""A lifelong run end to end, against l2metrics 3.1.0 on the same rewards.

l2metrics runs in an environment of its own, whose interpreter is the argument; it reads what l2logger wrote,
we read a trace of the same rewards. Both start a new process and print a report.

    uv venv other && uv pip install --python other/bin/python 'l2metrics==3.1.0' 'l2logger==1.8.2' \\
        'numpy<2' 'pandas<2.2' 'scipy<1.12' 'matplotlib<3.9' 'pyarrow<18'
    python benchmarks/bench_metrics_l2metrics.py other/bin/python [rows] [rounds]
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

from skyfall_metrics.api import convert_l2logger

RECORD = """
import sys
import numpy as np
from l2logger.l2logger import DataLogger
base, rows = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
log = DataLogger(base, "scenario", {"metrics_columns": ["reward"]}, {"author": "x", "complexity": "simple",
                 "difficulty": "easy", "scenario_type": "custom"})
tasks = ["cart", "heavy", "cart", "windy"]
n, block = 0, 0
for task in tasks:
    for other in sorted(set(tasks)):
        for _ in range(20):
            log.log_record({"block_num": block, "block_type": "test", "task_name": other, "task_params": {},
                            "exp_num": n, "reward": float(rng.normal(50, 5))})
            n += 1
        block += 1
    size = rows // len(tasks)
    for k in range(size):
        level = 100 * (1 - np.exp(-4 * k / size))
        log.log_record({"block_num": block, "block_type": "train", "task_name": task, "task_params": {},
                        "exp_num": n, "reward": float(level + rng.normal(0, 5))})
        n += 1
    block += 1
log.close()
"""


def seconds(command: list[str], folder: Path) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return time.perf_counter() - start


def main() -> None:
    python = sys.argv[1]
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 160_000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([python, "-c", RECORD, str(folder / "logs"), str(rows)], check=True)
        log = next((folder / "logs").iterdir())
        trace = folder / "traces.jsonl"
        convert_l2logger(log, trace)
        theirs = [
            python,
            "-m",
            "l2metrics",
            "-l",
            str(log),
            "-p",
            "reward",
            "--no-plot",
            "-o",
            "out",
            "-O",
            "out",
        ]
        ours = [sys.executable, "-m", "skyfall_metrics", "score", str(trace), "--json"]
        times: dict[str, list[float]] = {"l2metrics": [], "ours": []}
        for _ in range(rounds):
            times["l2metrics"].append(seconds(theirs, folder))
            times["ours"].append(seconds(ours, folder))
        ratios = [a / b for a, b in zip(times["l2metrics"], times["ours"], strict=True)]
        print(json.dumps({"rows": rows} | {key: statistics.median(value) for key, value in times.items()}))
        print(f"l2metrics / ours, median of {rounds}: {statistics.median(ratios):.1f}")


if __name__ == "__main__":
    main()
