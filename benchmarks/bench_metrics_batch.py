"""Many traces: one process against one a processor, and whether cost grows linearly in rows and in runs.

python benchmarks/bench_metrics_batch.py [traces] [rows]
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench_metrics_reader import write_trace

from skyfall_metrics.api import Job, read_trace, score, score_files


def seconds(paths: list[Path], jobs: int) -> float:
    start = time.perf_counter()
    cards = list(score_files(paths, Job(), jobs=jobs))
    assert len(cards) == len(paths)
    return time.perf_counter() - start


def best_of(path: Path, repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        score(read_trace(path))
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.jsonl" for seed in range(count)]
        write_trace(paths[0], rows)
        for path in paths[1:]:
            shutil.copy(paths[0], path)
        for jobs in (1, 2, 1, 2):
            print(f"{count} traces of {rows:,} rows, jobs={jobs}: {seconds(paths, jobs):.2f} s")
        for part in (count // 4, count // 2, count):
            taken = min(seconds(paths[:part], 1) for _ in range(2))
            print(f"{part} traces: {taken / part * 1000:.1f} ms a trace")
        for size in (rows, 4 * rows, 16 * rows):
            write_trace(paths[0], size)
            print(f"{size:,} rows in one trace: {best_of(paths[0], 5) / size * 1e6:.2f} µs a row")
    print(f"processors: {len(os.sched_getaffinity(0))}")


if __name__ == "__main__":
    main()
