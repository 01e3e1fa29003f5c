"""Interquartile mean with its stratified bootstrap interval, against rliable 1.2.0 on the same scores.

rliable runs in an environment of its own, whose interpreter is the argument:

    uv venv other && uv pip install --python other/bin/python 'rliable==1.2.0' 'arch<7' 'pandas<2.2' 'numpy<2'
    python benchmarks/bench_metrics_rliable.py other/bin/python [resamples]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

import numpy as np

from skyfall_metrics.statistics import Bootstrap, bootstrap_interval, interquartile_mean

SEEDS, TASKS = 10, 6

THEIRS = """
import json, sys, time
import numpy as np
from rliable import library, metrics
scores = {name: np.array(values) for name, values in json.load(sys.stdin).items()}
start = time.perf_counter()
points, intervals = library.get_interval_estimates(
    scores, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=int(sys.argv[1]))
taken = time.perf_counter() - start
print(json.dumps({"seconds": taken, "points": {k: float(v[0]) for k, v in points.items()},
                  "intervals": {k: v[:, 0].tolist() for k, v in intervals.items()}}))
"""


def main() -> None:
    python = sys.argv[1]
    resamples = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    rng = np.random.default_rng(0)
    scores = {name: rng.normal(loc, 1, size=(SEEDS, TASKS)) for name, loc in (("a", 0.0), ("b", 0.5))}
    done = subprocess.run(
        [python, "-c", THEIRS, str(resamples)],
        input=json.dumps({name: values.tolist() for name, values in scores.items()}),
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(done.stdout.splitlines()[-1])
    bootstrap = Bootstrap(resamples=resamples)
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        points = {name: float(interquartile_mean(values.ravel())) for name, values in scores.items()}
        intervals = {
            name: bootstrap_interval(list(values.T), interquartile_mean, bootstrap)
            for name, values in scores.items()
        }
        taken.append(time.perf_counter() - start)
    ours = statistics.median(taken)
    print(f"2 families, {SEEDS} seeds, {TASKS} tasks, {resamples:,} resamples")
    ratio = theirs["seconds"] / ours
    print(f"rliable {theirs['seconds']:.2f} s, ours {ours:.3f} s (median of 5): {ratio:.0f} times")
    for name in scores:
        interval = intervals[name]
        assert interval is not None
        print(f"{name}: point differs by {abs(points[name] - theirs['points'][name]):.1e}; ", end="")
        low, high = theirs["intervals"][name]
        print(f"ours [{interval.low:.4f}, {interval.high:.4f}], rliable [{low:.4f}, {high:.4f}]")


if __name__ == "__main__":
    main()
