"""PPO with the actor-critic beside stable-baselines3's: returns and speed, with the same options.

    uv run --group dev --with 'stable-baselines3>=2.9,<2.10' --with matplotlib \\
        python benchmarks/bench_actor_critic.py returns CartPole-v1 [steps] [seeds]
    … curves docs/assets/curves

Prints rows for benchmarks/results/actor_critic.md. One thread, both in one process, in turn. `returns` keeps
the learning curves beside those results; `curves` draws what was kept.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor

from skyfall_core.rollout import RolloutCollector
from skyfall_torch.actor_critic import actor_critic
from skyfall_torch.ppo import PPOBackend
from skyfall_torch.successors import RecordSuccessors

RESULTS = Path(__file__).parent / "results"
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
    """The environment with its record of episodes, and the seconds on the wall and of this process."""
    env = Monitor(gym.make(name))
    policy = actor_critic(env.observation_space, env.action_space, seed=seed)
    learner = PPOBackend(policy, seed=seed, **TEXTBOOK)
    collector = RolloutCollector(
        RecordSuccessors(env), policy, window_steps=WINDOW, auto_reset=True, seed=seed
    )
    clocks = time.perf_counter(), time.process_time()
    for window in collector.windows(steps):
        learner.update(window)
    return env, time.perf_counter() - clocks[0], time.process_time() - clocks[1]


def theirs(name, steps, seed):
    """The same by stable-baselines3, with its own defaults spelled out where they differ."""
    env = Monitor(gym.make(name))
    optimizer = {"optimizer_kwargs": {"eps": 1e-8}}
    model = PPO("MlpPolicy", env, n_steps=WINDOW, seed=seed, device="cpu", policy_kwargs=optimizer)
    clocks = time.perf_counter(), time.process_time()
    model.learn(steps)
    return env, time.perf_counter() - clocks[0], time.process_time() - clocks[1]


def curve(env, steps, points=50):
    """Mean return of the last 20 episodes that had ended by each of `points` steps."""
    ends, found = np.cumsum(env.get_episode_lengths()), env.get_episode_rewards()
    counts = np.searchsorted(ends, np.linspace(steps / points, steps, points), side="right")
    return [float(np.mean(found[max(0, n - 20) : n])) if n else None for n in counts]


def interval(values):
    """Mean and half the width of a 95 % bootstrap interval."""
    draws = np.random.default_rng(0).choice(values, (10_000, len(values))).mean(1)
    low, high = np.percentile(draws, [2.5, 97.5])
    return f"{np.mean(values):.1f} [{low:.1f}, {high:.1f}]"


def rates_row(clock, rates):
    mine, other = (statistics.median(rates[run]) for run in (ours, theirs))
    print(f"| steps per second, {clock} | {mine:.0f} | {other:.0f} | {mine / other:.2f} |", flush=True)


def returns(name, steps, seeds):
    """Returns and speed in one go, a seed of ours and the same of theirs in turn."""
    found = {ours: [], theirs: []}
    wall, cpu = ({ours: [], theirs: []} for _ in range(2))
    for seed in range(seeds):
        for run, lines in found.items():
            env, on_wall, of_process = run(name, steps, seed)
            wall[run].append(steps / on_wall)
            cpu[run].append(steps / of_process)
            lines.append(curve(env, steps))
            print(
                f"{run.__name__} {name} seed {seed}: {lines[-1][-1]:.1f}, {steps / of_process:.0f} a CPU-s",
                flush=True,
            )
    for run, lines in found.items():
        print(f"| {name} | {run.__name__} | {interval([line[-1] for line in lines])} |")
    rates_row("wall", wall)
    rates_row("of the processor", cpu)
    kept = {"environment": name, "steps": steps} | {run.__name__: lines for run, lines in found.items()}
    (RESULTS / f"returns-{name}.json").write_text(json.dumps(kept))


def curves(folder):
    """One figure an environment: mean and range over the seeds, ours and stable-baselines3's."""
    for file in sorted(RESULTS.glob("returns-*.json")):
        kept = json.loads(file.read_text())
        figure = Figure(figsize=(7, 3), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot(
            xlabel="steps", ylabel="return, last 20 episodes", title=kept["environment"]
        )
        for who, color, dashes in (("ours", "#0072B2", "-"), ("theirs", "#D55E00", "--")):
            lines = np.array(kept[who], dtype=float)
            at = np.linspace(kept["steps"] / lines.shape[1], kept["steps"], lines.shape[1])
            label = {"ours": "skyfall-torch", "theirs": "stable-baselines3"}[who]
            axes.fill_between(at, lines.min(0), lines.max(0), color=color, alpha=0.2, linewidth=0)
            axes.plot(at, lines.mean(0), color=color, linestyle=dashes, label=label)
        axes.legend()
        with rc_context({"svg.hashsalt": "skyfall", "svg.fonttype": "none"}):
            figure.savefig(folder / f"{file.stem}.svg", metadata={"Date": None})


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, *more = sys.argv[1:]
    if what == "curves":
        curves(Path(more[0]))
    else:
        returns(more[0], *(int(value) for value in more[1:] or ("100000", "5")))
