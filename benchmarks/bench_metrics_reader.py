"""Reading and scoring one long trace, against msgspec's own `decode_lines` and a `json.loads` loop.

Every round runs all candidates one after the other on the same bytes; ratios are taken within a round and
their median is reported, so that a machine that slows down slows all of them. Times are processor seconds of
this one-threaded process, so waiting for a busy machine does not count. Usage:

    python benchmarks/bench_metrics_reader.py [rows] [rounds]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from skyfall_metrics.api import read_trace, score

RUN = {
    "trace_version": 1,
    "run_id": "quickstart-actor-critic-0",
    "algorithm_id": "actor-critic",
    "task": "cartpole",
    "seed": 0,
    "reward_upper_bounds": {"baseline": 1.0, "heavy": 1.0},
}


class Minimal(msgspec.Struct, gc=False):
    step: int
    reward: float | None
    regime_id: str
    boundary: bool = False
    run_id: str | None = None


class Columns(msgspec.Struct, gc=False):
    step: int
    reward: float | None
    regime_id: str
    boundary: bool | None = None
    origin: str | None = None
    world: int | str | None = None
    effective_rank: float | None = None
    upper_bound: float | None = None
    resumed: bool | None = None
    run_id: str | None = None
    trace_version: int | None = None


def write_trace(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(rows, 4)).tolist()
    rewards = rng.normal(size=rows).round(6).tolist()
    encode = msgspec.json.Encoder().encode
    segment = max(1, rows // 10)
    with path.open("wb") as file:
        for t in range(rows):
            step = {"step": t, "reward": rewards[t], "terminated": False, "truncated": t % 200 == 199}
            step |= {
                "regime_id": ("baseline", "heavy")[t // segment % 2],
                "boundary": t > 0 and t % segment == 0,
            }
            step |= {"action": 1, "observation": observations[t]}
            file.write(encode(RUN | step) + b"\n")


def json_loop(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line)["reward"] for line in file]


def seconds(call: Any) -> float:
    start = time.process_time()
    result = call()
    taken = time.process_time() - start
    del result
    return taken


def peak_megabytes(source: str, path: Path) -> float:
    # not ru_maxrss, which a child inherits from its parent
    report = (
        "\nfor line in open('/proc/self/status'):\n    if line.startswith('VmHWM'): print(line.split()[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", source + report, str(path)], capture_output=True, text=True, check=True
    )
    return float(done.stdout) / 1024


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        write_trace(path, rows)
        imports = "import sys; from skyfall_metrics.api import read_trace, score; "
        peaks = {
            "imports only": peak_megabytes(imports, path),
            "read": peak_megabytes(imports + "t = read_trace(sys.argv[1])", path),
            "read and score": peak_megabytes(imports + "score(read_trace(sys.argv[1]))", path),
        }
        data = path.read_bytes()
        minimal, columns, untyped = (msgspec.json.Decoder(t) for t in (Minimal, Columns, Any))
        candidates = {
            "decode_lines, 5 fields": lambda: minimal.decode_lines(data),
            "decode_lines, the format's columns": lambda: columns.decode_lines(data),
            "read_trace": lambda: read_trace(path),
            "read_trace and score": lambda: score(read_trace(path)),
        }
        times: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(rounds):
            for name, call in candidates.items():
                times[name].append(seconds(call))
        fifth = Path(folder) / "fifth.jsonl"
        fifth.write_bytes(data[: data.index(b"\n", len(data) // 5) + 1])
        slow = {
            "decode_lines, untyped": lambda: untyped.decode_lines(fifth.read_bytes()),
            "json.loads loop": lambda: json_loop(fifth),
        }
        for name, call in slow.items():  # on a fifth of the rows
            times[name] = [5 * seconds(call) for _ in range(rounds)]
        print(f"{rows:,} rows, {len(data) / 1e6:.0f} MB, {rounds} rounds")
        for name, taken in times.items():
            print(f"{name:38s} median {statistics.median(taken):7.2f} s  best {min(taken):7.2f} s")
        for name in ("read_trace", "read_trace and score"):
            for base in ("decode_lines, 5 fields", "decode_lines, the format's columns"):
                ratios = [a / b for a, b in zip(times[name], times[base], strict=True)]
                best = min(times[name]) / min(times[base])
                print(f"{name} / {base}: median {statistics.median(ratios):.2f}, best/best {best:.2f}")
        reading = statistics.median(times["read_trace"])
        for name in slow:
            print(f"{name} / read_trace: {statistics.median(times[name]) / reading:.1f}")
        for name, peak in peaks.items():
            print(f"peak memory, {name}: {peak:.0f} MB")


if __name__ == "__main__":
    main()
