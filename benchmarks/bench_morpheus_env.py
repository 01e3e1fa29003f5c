"""How fast a local world steps: in process, over loopback HTTP, and many worlds on one server for a while.

python benchmarks/bench_morpheus_env.py [--soak SECONDS]
"""

from __future__ import annotations

import argparse
import resource
import socket
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn

from skyfall_core.regime import ScheduledRegime
from skyfall_morpheus.configurations import CANONICAL
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.local.api import LocalApi
from skyfall_morpheus.local.app import LocalApp
from skyfall_morpheus.scripted import ScriptedPolicy
from skyfall_morpheus.vector import PersistentVectorEnv


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
    """uvicorn in a thread."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.api = LocalApi()
        config = uvicorn.Config(LocalApp(self.api), port=self.port, log_level="error", access_log=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self) -> str:
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{self.port}"

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join(10)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def soak(seconds: float, worlds: int = 64) -> dict[str, float]:
    """Many worlds on one server; memory after a warm-up fifth and at the end."""
    with Server() as url:
        envs = PersistentVectorEnv(
            [lambda: env_at(url, "edi_spike", observe="text")] * worlds, max_workers=16, on_error="isolate"
        )
        envs.reset(seed=0)
        deadline, warm = time.monotonic() + seconds, time.monotonic() + seconds / 5
        first, steps, lost = 0.0, 0, 0
        while time.monotonic() < deadline:
            actions = [{"tool": "allocate_order"} if steps % 2 else {"tool": "ship_order"}] * worlds
            *_, infos = envs.step(actions)
            steps += 1
            lost += int(infos["trace"]["action_status"].size - (infos["trace"]["action_status"] > 0).sum())
            lost += int(envs.failed.sum())
            if not first and time.monotonic() > warm:
                first = resident_mb()
        last = resident_mb()
        envs.close()
    return {"worlds": worlds, "steps": steps, "lost": lost, "warm_mb": first, "end_mb": last}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--soak", type=float, default=0.0)
    seconds = parser.parse_args().soak
    wall, busy = steps_per_second("local:", 500)
    with Server() as url:
        http_wall, _ = steps_per_second(url, 200)
    print("| measurement | value | bound |")
    print("|---|---|---|")
    print(f"| in process, full observation, env steps per second | {wall:.0f} | ≥ 1,500 |")
    print(f"| the same per second of CPU time | {busy:.0f} | |")
    print(f"| loopback HTTP, env steps per second | {http_wall:.0f} | ≥ 400 |")
    if seconds:
        found = soak(seconds)
        memory = f"{found['warm_mb']:.0f}, {found['end_mb']:.0f}"
        print(f"| 64 worlds on one server, {seconds:.0f} s: steps each | {found['steps']:.0f} | |")
        print(f"| failed requests | {found['lost']:.0f} | 0 |")
        print(f"| resident memory after a fifth of that and at its end, MB | {memory} | flat |")


if __name__ == "__main__":
    main()
