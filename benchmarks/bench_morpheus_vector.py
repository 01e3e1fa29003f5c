"""What driving worlds together costs: waiting worlds against their own latency, cheap ones against a loop."""

from __future__ import annotations

import statistics
import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from skyfall_morpheus.vector import PersistentVectorEnv

LATENCY_SECONDS = 0.020


class Cheap(gym.Env[Any, Any]):
    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.observation = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.observation, {}

    def step(self, action: Any) -> Any:
        return self.observation, 0.0, False, False, {"reward_parts": 1.0}


class Waiting(Cheap):
    def step(self, action: Any) -> Any:
        time.sleep(LATENCY_SECONDS)
        return super().step(action)


def timed(call: Any, repeats: int) -> list[float]:
    durations = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        durations.append(time.perf_counter() - start)
    return durations


def waiting_worlds(count: int = 64, steps: int = 300) -> dict[str, float]:
    envs = PersistentVectorEnv([Waiting] * count)
    envs.reset()
    actions = np.zeros(count, dtype=np.int64)
    timed(lambda: envs.step(actions), 5)
    durations = timed(lambda: envs.step(actions), steps)
    envs.close()
    cuts = statistics.quantiles(durations, n=100)
    return {"median": statistics.median(durations) / LATENCY_SECONDS, "p99": cuts[98] / LATENCY_SECONDS}


def cheap_worlds(count: int = 8, steps: int = 3000) -> dict[str, float]:
    envs = PersistentVectorEnv([Cheap] * count)
    envs.reset()
    actions = np.zeros(count, dtype=np.int64)
    plain = [Cheap() for _ in range(count)]

    def loop() -> None:
        for env, action in zip(plain, actions, strict=True):
            env.step(action)

    timed(lambda: envs.step(actions), 100)
    together = statistics.median(timed(lambda: envs.step(actions), steps))
    alone = statistics.median(timed(loop, steps))
    return {
        "together_us": together * 1e6,
        "loop_us": alone * 1e6,
        "per_world_us": (together - alone) / count * 1e6,
    }


def main() -> None:
    waiting = waiting_worlds()
    cheap = cheap_worlds()
    print("| measurement | value | bound |")
    print("|---|---|---|")
    print(f"| 64 worlds of 20 ms, median / latency | {waiting['median']:.2f} | ≤ 1.3 |")
    print(f"| 64 worlds of 20 ms, 99th percentile / latency | {waiting['p99']:.2f} | ≤ 1.6 |")
    print(f"| 8 cheap worlds, one batch, µs | {cheap['together_us']:.0f} | |")
    print(f"| 8 cheap worlds, plain loop, µs | {cheap['loop_us']:.1f} | |")
    print(f"| 8 cheap worlds, extra per world, µs | {cheap['per_world_us']:.1f} | ≤ 60 |")


if __name__ == "__main__":
    main()
