"""Scripted play written down: demonstrations to learn from, and the rewards they earned as bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec

from skyfall_core.regime import ScheduledRegime
from skyfall_core.seeding import spread_seed
from skyfall_morpheus.brief import brief
from skyfall_morpheus.configurations import CANONICAL
from skyfall_morpheus.env import MorpheusEnv, Observe
from skyfall_morpheus.scripted import PLAYBOOKS, ScriptedPolicy
from skyfall_morpheus.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = [
    "Demonstration",
    "best_level",
    "demonstrate",
    "discounted",
    "measure_bounds",
    "write_demonstrations",
]


_SHOWN: Mapping[Observe, Callable[[Any], Any]] = {
    Observe.FULL: lambda observation: observation,
    Observe.TEXT: lambda observation: observation["text"],
    Observe.BRIEF: lambda observation: brief(observation["state"]),
}


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One scripted step.

    Attributes:
        configuration: What it was played under.
        observation: What the policy saw, as the environment shows it.
        action: What it did.
        reward: What that earned.
    """

    configuration: str
    observation: Any
    action: dict[str, Any]
    reward: float


def demonstrate(
    configuration: str, steps: int, seed: int, *, playbook: str | None = None, observe: str = "full"
) -> Iterator[Demonstration]:
    """Play one configuration by its playbook in a private local world.

    Args:
        configuration: One of the canonical ones.
        steps: How long.
        seed: Of the world.
        playbook: Another configuration's playbook instead.
        observe: What is recorded as the observation: `full`, `text` or `brief`.
    """
    kind = Observe(observe)
    policy = ScriptedPolicy(playbook or configuration)
    env = MorpheusEnv("local:", observe=Observe.FULL)
    schedule = {"regimes": [{"regime_id": configuration, "axes": CANONICAL[configuration]}]}
    env.bind_regime(ScheduledRegime(schedule))
    try:
        observation, _ = env.reset(seed=seed)
        for _ in range(steps):
            action = policy.act(observation)
            shown = _SHOWN[kind](observation)
            observation, reward, _, _, _ = env.step(action)
            yield Demonstration(configuration, shown, action, reward)
    finally:
        env.close()


def write_demonstrations(
    path: Path,
    configurations: Sequence[str],
    steps: int,
    seed: int,
    *,
    observe: str = "text",
    arguments: bool = True,
    gamma: float = 0.95,
) -> int:
    """Write one JSON object a step: `observation`, `action`, `reward`, `return`, `configuration`.

    Args:
        path: The file, replaced.
        configurations: What to play.
        steps: Steps in each.
        seed: Spread over them.
        observe: `text`, `full`, or `brief`; with the last, actions are a tool's letter alone.
        arguments: Whether a tool's arguments are recorded; the name alone is easier to imitate.
        gamma: Discount of the returns, which a critic may be fitted to.

    Returns:
        How many lines were written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("wb") as file:
        seeds = spread_seed(seed, len(configurations))
        for configuration, own in zip(configurations, seeds, strict=True):
            played = list(demonstrate(configuration, steps, own, observe=observe))
            returns = discounted([one.reward for one in played], gamma)
            for one, value in zip(played, returns, strict=True):
                line = {
                    "observation": one.observation,
                    "action": _said(one.action, observe, arguments=arguments),
                    "reward": one.reward,
                    "return": value,
                    "configuration": one.configuration,
                }
                file.write(msgspec.json.encode(line) + b"\n")
                written += 1
    return written


def _said(action: Mapping[str, Any], observe: str, *, arguments: bool) -> dict[str, Any]:
    """An action as it is recorded."""
    if observe == Observe.BRIEF:
        return {"tool": TOOLS[action["tool"]].letter}
    return dict(action) if arguments else {"tool": action["tool"]}


def discounted(rewards: Sequence[float], gamma: float) -> list[float]:
    """Per step, the sum of its reward and the later ones, each step further on worth `gamma` times less."""
    returns, following = [0.0] * len(rewards), 0.0
    for step in range(len(rewards) - 1, -1, -1):
        returns[step] = following = rewards[step] + gamma * following
    return returns


def measure_bounds(steps: int, seeds: Sequence[int]) -> dict[str, float]:
    """The highest level that any playbook held in each configuration, its revisit included.

    A level is the mean reward per step over a quarter of a life, which is how long a scorecard's settled
    part is; any quarter counts but the first, in which a new world has little to do. The best of all
    playbooks, seeds and quarters is taken, not a mean, so that chance alone lets nobody settle above
    it. It is what scripts reached, no proof: a learner may do better.

    Args:
        steps: Length of a life.
        seeds: Of the worlds; each playbook lives once in each.
    """
    bounds = {
        configuration: max(
            best_level([one.reward for one in demonstrate(configuration, steps, seed, playbook=playbook)])
            for playbook in PLAYBOOKS
            for seed in seeds
        )
        for configuration in CANONICAL
    }
    return {**bounds, "baseline_revisit": bounds["baseline"]}


def best_level(rewards: Sequence[float]) -> float:
    """The highest mean over as many steps as a quarter of them, none of the first quarter's among them."""
    length = max(1, len(rewards) // 4)
    sums = [0.0, *accumulate(rewards)]
    first = min(length, len(rewards) - length)
    return max((sums[at + length] - sums[at]) / length for at in range(first, len(rewards) - length + 1))
