"""How fast a local world steps: in process, over loopback HTTP, and many worlds on one server for a while.

python benchmarks/bench_morpheus_env.py [--soak SECONDS]
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from skyfall_core.regime import ScheduledRegime
from skyfall_morpheus.client import ClientOptions, MorpheusClient
from skyfall_morpheus.configurations import CANONICAL
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.scripted import ScriptedPolicy
from skyfall_morpheus.vector import PersistentVectorEnv

SOAK_TICK = 60.0


def env_at(url: str, configuration: str = "baseline", **settings: Any) -> MorpheusEnv:
    env = MorpheusEnv(url, **settings)
    env.bind_regime(
        ScheduledRegime({"regimes": [{"regime_id": configuration, "axes": CANONICAL[configuration]}]})
    )
    return env


def steps_per_second(url: str, steps: int, repeats: int = 5) -> tuple[float, float]:
    """Median over repeats: steps per second by the wall clock and per second of this process's CPU time."""
    env, policy = env_at(url), ScriptedPolicy()
    observation, _ = env.reset(seed=0)
    wall, busy = [], []
    for _ in range(repeats):
        began, began_busy = time.perf_counter(), time.process_time()
        for _ in range(steps):
            observation, *_ = env.step(policy.act(observation))
        wall.append(steps / (time.perf_counter() - began))
        busy.append(steps / (time.process_time() - began_busy))
    env.close()
    return statistics.median(wall), statistics.median(busy)


class Server:
    """`skyfall morpheus serve` in a process of its own."""

    def __init__(self, tick_minutes: float = 10.0) -> None:
        self.tick_minutes = tick_minutes

    def __enter__(self) -> Self:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [
            str(Path(sys.executable).parent / "skyfall"),
            "morpheus",
            "serve",
            "--port",
            str(self.port),
            "--tick-minutes",
            str(self.tick_minutes),
            "-q",
        ]
        self.process = subprocess.Popen(command)
        self.url = f"http://127.0.0.1:{self.port}"
        with MorpheusClient(self.url, ClientOptions(attempts=12, pause_seconds=0.1)) as client:
            client.check_reachable()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6


@dataclass
class Soak:
    """What became of many worlds on one server: the server's memory at the start and after each fifth."""

    steps: int = 0
    failed: int = 0
    days: float = 0.0
    memory_mb: list[float] = field(default_factory=list)


def soak(seconds: float, worlds: int = 64) -> Soak:
    """Step many worlds on one server for a while: two things are done in turn, the rest is neglected.

    An hour passes with an action, so that the worlds are as full as they get well before the end.
    """
    found = Soak()
    with Server(tick_minutes=SOAK_TICK) as server:
        envs = PersistentVectorEnv(
            [lambda: env_at(server.url, "edi_spike", observe="text")] * worlds,
            max_workers=16,
            on_error="isolate",
        )
        envs.reset(seed=0)
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < seconds:
            if elapsed >= len(found.memory_mb) * seconds / 5:
                found.memory_mb.append(server.resident_mb)
            actions = [{"tool": "ship_order" if found.steps % 2 else "allocate_order"}] * worlds
            *_, infos = envs.step(actions)
            found.steps += 1
            statuses = infos["trace"]["action_status"]
            found.failed += int((statuses == 0).sum() + (statuses >= 500).sum() + envs.failed.sum())
        found.memory_mb.append(server.resident_mb)
        found.days = found.steps * SOAK_TICK / 1440.0
        envs.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--soak", type=float, default=0.0)
    seconds = parser.parse_args().soak
    wall, busy = steps_per_second("local:", 500)
    with Server() as server:
        before = server.cpu_seconds
        http_wall, http_busy = steps_per_second(server.url, 200)
        serving = (server.cpu_seconds - before) / 1000  # five repeats of 200 steps
    print("| measurement | value | bound |")
    print("|---|---|---|")
    print(f"| in process, full observation, env steps per second | {wall:.0f} | ≥ 1,500 |")
    print(f"| the same per second of CPU time | {busy:.0f} | |")
    print(f"| loopback HTTP, env steps per second | {http_wall:.0f} | ≥ 400 |")
    together = 1 / (1 / http_busy + serving)
    print(f"| the same per second of CPU time, client and server together | {together:.0f} | |")
    print(f"| of a step's CPU time, client and server, µs | {1e6 / http_busy:.0f}, {1e6 * serving:.0f} | |")
    if seconds:
        found = soak(seconds)
        memory = ", ".join(f"{one:.0f}" for one in found.memory_mb)
        lived = f"{found.steps} in {found.days:.1f} days"
        print(f"| 64 worlds on one server, {seconds:.0f} s: steps each, simulated time | {lived} | |")
        print(f"| failed requests | {found.failed} | 0 |")
        print(f"| resident memory at the start and after each fifth, MB | {memory} | flat |")


if __name__ == "__main__":
    main()
