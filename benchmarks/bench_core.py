"""What the core costs: collecting against a bare loop, starting up, looking a step up, memory over a run.

Each pair is measured side by side, in turn, several times; the table quotes medians, and for a pair the
median of its ratios. `python benchmarks/bench_core.py` prints it and writes benchmarks/results/core.md.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym

from skyfall_core.regime import RegimeSchedule
from skyfall_core.rollout import RolloutCollector
from skyfall_core.trace import TraceWriter

RESULTS = Path(__file__).parent / "results" / "core.md"
STEPS = 5_000
REPEATS = 15

MEMORY = """
import resource, sys
from skyfall_core.config import ExperimentConfig
from skyfall_core.experiment import run_experiment

def peak(*_):
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

windows = []
config = ExperimentConfig.model_validate({
    "environment": {"id": "CartPole-v1"},
    "algorithm": {"name": "random"},
    "rollout": {"window_steps": 256, "total_steps": int(sys.argv[1]), "auto_reset": True},
    "run": {"name": "memory", "output_dir": sys.argv[2]},
})
run_experiment(config, on_window=lambda _: windows.append(peak()))
print(windows[-1], peak())
"""


class Constant:
    def act(self, observation: Any) -> int:
        return 0


def seconds(call: Callable[[], object]) -> float:
    """Processor time of this process: on a shared machine, the part of the time that is ours."""
    start = time.process_time()
    call()
    return time.process_time() - start


def wall_seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def child_seconds(command: list[str]) -> tuple[float, float]:
    """Wall and processor time of a whole process."""
    before = os.times()
    wall = wall_seconds(lambda: subprocess.run(command, capture_output=True, check=True))
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


def bare_loop() -> None:
    env = gym.make("CartPole-v1")
    env.reset(seed=0)
    for _ in range(STEPS):
        _, _, terminated, truncated, _ = env.step(0)
        if terminated or truncated:
            env.reset()


def collected(writer: TraceWriter | None = None) -> None:
    env = gym.make("CartPole-v1")
    collector = RolloutCollector(env, Constant(), window_steps=256, auto_reset=True, seed=0, writer=writer)
    for _ in collector.windows(STEPS):
        pass


def recorded(folder: str) -> None:
    with TraceWriter(Path(folder) / "t.jsonl", {"run_id": "bench", "seed": 0}, "overwrite") as writer:
        collected(writer)


def collecting() -> list[str]:
    """Speed of the collector as a share of the bare loop's."""
    with tempfile.TemporaryDirectory() as folder:
        for warm_up in (bare_loop, collected, lambda: recorded(folder)):
            warm_up()
        rounds = [
            (seconds(bare_loop), seconds(collected), seconds(lambda: recorded(folder)))
            for _ in range(REPEATS)
        ]
    loop = statistics.median(STEPS / bare for bare, _, _ in rounds)
    plain = statistics.median(bare / collector for bare, collector, _ in rounds)
    written = statistics.median(bare / recorder for bare, _, recorder in rounds)
    return [
        f"| bare `env.step` loop, CartPole | {loop:,.0f} steps/s | |",
        f"| collector, no trace | {plain:.2f} × the loop | ≥ 0.80 × |",
        f"| collector, trace written | {written:.2f} × the loop | ≥ 0.50 × |",
    ]


def starting() -> list[str]:
    """Wall time of whole processes."""
    skyfall = str(Path(sys.executable).with_name("skyfall"))
    commands = {
        "`import skyfall_core`": [sys.executable, "-c", "import skyfall_core"],
        "`skyfall --help`": [skyfall, "--help"],
        "an empty Python process": [sys.executable, "-c", ""],
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(11):
        for name, command in commands.items():
            taken[name].append(child_seconds(command))
    lines = []
    for name, times in taken.items():
        wall, used = (statistics.median(column) for column in zip(*times, strict=True))
        target = "" if name == "an empty Python process" else "< 0.4 s"
        lines.append(f"| {name} | {wall:.3f} s wall, {used:.3f} s processor | {target} |")
    return lines


def looking_up() -> list[str]:
    """`regime_at` over many configurations against over few."""
    few, many = (
        RegimeSchedule(
            [{"regime_id": f"r{n}", "duration_steps": 100, "axes": {"g": n}} for n in range(count)]
        )
        for count in (10, 10_000)
    )

    def asked(schedule: RegimeSchedule) -> float:
        stride = schedule.total_steps // 10_000 or 1
        steps = [(number * stride) % schedule.total_steps for number in range(10_000)]
        return seconds(lambda: [schedule.regime_at(step) for step in steps])

    rounds = [(asked(few), asked(many)) for _ in range(REPEATS)]
    cost = statistics.median(of_few / 10_000 for of_few, _ in rounds)
    ratio = statistics.median(of_many / of_few for of_few, of_many in rounds)
    return [
        f"| `regime_at`, 10 configurations | {cost * 1e6:.2f} µs | |",
        f"| `regime_at`, 10,000 configurations | {ratio:.2f} × as long | ≤ 2 × |",
    ]


def remembering() -> list[str]:
    """Peak memory of runs of two lengths, each in a process of its own, traced and then scored."""
    peaks: dict[int, list[list[float]]] = {20_000: [], 200_000: []}
    for _ in range(2):
        for steps, seen in peaks.items():
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-c", MEMORY, str(steps), folder]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
            seen.append([int(number) / 1024 for number in done.stdout.split()])
    (short, _), (long, scored) = (map(statistics.median, zip(*seen, strict=True)) for seen in peaks.values())
    return [
        f"| peak memory until the last window, 20,000 steps | {short:.1f} MB | |",
        f"| the same, 200,000 steps | {long - short:+.1f} MB | within 10 MB |",
        f"| and with the scorecard at its end, which reads the trace | {scored - short:+.1f} MB | |",
    ]


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    machine = f"Python {platform.python_version()}, Gymnasium {gym.__version__}, {cores} cores"
    load = f"load average {os.getloadavg()[0]:.1f}"
    head = [
        "# The core",
        "",
        f"`python benchmarks/bench_core.py`; {machine}, {load} at the start.",
        "Pairs are measured in turn in one run, in processor time; figures are medians, ratios medians of",
        "ratios.",
        "",
        "| what | measured | target |",
        "|---|---|---|",
    ]
    lines = head + [line for measure in (collecting, starting, looking_up, remembering) for line in measure()]
    text = "\n".join(lines) + "\n"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
