"""PPO with the actor-critic beside stable-baselines3's: speed, and returns with the same options.

    uv run --group dev --with 'stable-baselines3>=2.9,<2.10' python benchmarks/bench_actor_critic.py speed
    … returns Acrobot-v1

Prints rows for benchmarks/results/actor_critic.md. One thread, both in one process, in turn.
"""

import statistics
import sys
import time

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor

from skyfall_core.rollout import RolloutCollector
from skyfall_torch.actor_critic import actor_critic
from skyfall_torch.ppo import PPOBackend
from skyfall_torch.successors import RecordSuccessors

WINDOW = 2048
TEXTBOOK = {
    "gae": "episodic",
    "ratio": "per_token",
    "action_tokens": "all",
    "old_policy_pass": "eval",
    "advantage_scope": "minibatch",
    "truncation": "bootstrap",
    "gamma": 0.99,
    "lam": 0.95,
    "clip_range": 0.2,
    "value_coeff": 0.5,
    "learning_rate": 3e-4,
    "epochs": 10,
    "minibatch_size": 64,
    "max_grad_norm": 0.5,
}


def ours(name, steps, seed):
    """Returns of the finished episodes, and the seconds on the wall and of this process."""
    env = Monitor(gym.make(name))
    policy = actor_critic(env.observation_space, env.action_space, seed=seed)
    learner = PPOBackend(policy, seed=seed, **TEXTBOOK)
    collector = RolloutCollector(
        RecordSuccessors(env), policy, window_steps=WINDOW, auto_reset=True, seed=seed
    )
    clocks = time.perf_counter(), time.process_time()
    for window in collector.windows(steps):
        learner.update(window)
    return env.get_episode_rewards(), time.perf_counter() - clocks[0], time.process_time() - clocks[1]


def theirs(name, steps, seed):
    """The same by stable-baselines3, with its own defaults spelled out where they differ."""
    env = Monitor(gym.make(name))
    optimizer = {"optimizer_kwargs": {"eps": 1e-8}}
    model = PPO("MlpPolicy", env, n_steps=WINDOW, seed=seed, device="cpu", policy_kwargs=optimizer)
    clocks = time.perf_counter(), time.process_time()
    model.learn(steps)
    return env.get_episode_rewards(), time.perf_counter() - clocks[0], time.process_time() - clocks[1]


def interval(values):
    """Mean and half the width of a 95 % bootstrap interval."""
    draws = np.random.default_rng(0).choice(values, (10_000, len(values))).mean(1)
    low, high = np.percentile(draws, [2.5, 97.5])
    return f"{np.mean(values):.1f} [{low:.1f}, {high:.1f}]"


def speed(steps, rounds):
    found = {ours: [], theirs: []}
    for seed in range(rounds):
        for run, rates in found.items():
            _, wall, cpu = run("CartPole-v1", steps, seed)
            rates.append((steps / wall, steps / cpu))
            print(f"{run.__name__}: {steps / wall:.0f} steps/s, {steps / cpu:.0f} per CPU second", flush=True)
    mine, other = (
        [statistics.median(pair[clock] for pair in found[run]) for clock in (0, 1)] for run in (ours, theirs)
    )
    print(f"| steps per second | {mine[0]:.0f} | {other[0]:.0f} | {mine[0] / other[0]:.2f} |")
    print(f"| steps per CPU second | {mine[1]:.0f} | {other[1]:.0f} | {mine[1] / other[1]:.2f} |")


def returns(name, steps, seeds):
    for run in (ours, theirs):
        finals = []
        for seed in range(seeds):
            episodes, _, _ = run(name, steps, seed)
            finals.append(float(np.mean(episodes[-20:])))
            print(f"{run.__name__} {name} seed {seed}: {finals[-1]:.1f}", flush=True)
        print(f"| {name} | {run.__name__} | {interval(finals)} |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, *more = sys.argv[1:]
    if what == "speed":
        speed(*(int(value) for value in more or ("100000", "3")))
    else:
        returns(more[0], *(int(value) for value in more[1:] or ("100000", "5")))
