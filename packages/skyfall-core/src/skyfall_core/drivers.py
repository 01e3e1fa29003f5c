"""The loops that step one world, or several at once.

Both drivers share a contract: `reset` begins, `collect` takes a number of steps and returns them as a
window, and nothing is reset in between unless `auto_reset` says so. An environment that raises stops
the run with the step named, and every step before it is in the trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.errors import InputError, RewardSpecError, RunError, SkyfallError
from skyfall_core.protocols import describe_run
from skyfall_core.seeding import spread_seed
from skyfall_core.steps import (
    Recorder,
    RegimeLabeller,
    as_reward,
    environment_failed,
    owned,
    owned_info,
    policy_failed,
    reward_refused,
)
from skyfall_core.world_state import Restored

__all__ = ["Driver", "SeveralWorldsDriver", "SingleWorldDriver", "world_info"]


class Driver(Protocol):
    """What the collector needs of either loop.

    Attributes:
        step_index: Steps taken since the run began; each world's own.
        run: What the environment reported about itself.
        recorder: Where steps are written, or None.
    """

    step_index: int
    run: Mapping[str, Any]
    recorder: Recorder | None

    def reset(self, seed: int | None) -> None:
        """Begin; without a seed the environment's own generator goes on."""

    def collect(self, steps: int) -> RolloutWindow:
        """Take `steps` steps in every world."""

    def position(self) -> dict[str, Any]:
        """Where the loop stands between two windows, as plain values; the environment's state apart."""

    def go_on(self, position: Mapping[str, Any], restored: Restored, seed: int | None) -> None:
        """Continue from a position, with a fresh reset where the environment could not be restored."""


class SingleWorldDriver:
    """Steps one `gymnasium.Env`, or anything that behaves like one.

    Args:
        env: The environment.
        policy: Anything with `act`.
        provider: Configuration provider for an environment that reports none, or None.
        auto_reset: Whether an ended episode is followed by a reset.
    """

    def __init__(self, env: Any, policy: Any, provider: Any, *, auto_reset: bool) -> None:
        self.step_index = 0
        self.run: Mapping[str, Any] = {}
        self.recorder: Recorder | None = None
        self._env, self._policy, self._provider = env, policy, provider
        self._auto_reset = auto_reset
        self._label = RegimeLabeller(provider)
        self._observation: Any = None
        self._ended = False

    def reset(self, seed: int | None) -> None:
        """Begin with the environment's first observation."""
        self.step_index = 0
        self._label = RegimeLabeller(self._provider)
        self._ended = False
        self._observation = self._first_observation(seed, 0)
        self.run = _description(self._env)

    def collect(self, steps: int) -> RolloutWindow:  # noqa: C901 - one loop, because calls are what a step costs
        """Take `steps` steps, in acting order.

        What costs a cheap environment's run a fifth of its time is dealt with in place: usual kinds of
        action, observation and reward, and a step that reports nothing under an unchanged label.
        """
        env, policy, recorder, array = self._env, self._policy, self.recorder, np.ndarray
        says_logprob, says_value = _says(policy, "last_logprob"), _says(policy, "last_value")
        says_rank = recorder is not None and _says(policy, "last_effective_rank")
        label_of, auto_reset, is_finite = self._label, self._auto_reset, math.isfinite
        transitions: list[Transition] = []
        steady_until: float = 0
        done, observation, ended = self.step_index, self._observation, self._ended
        try:
            for step in range(done, done + steps):
                if ended:
                    observation, ended = self._first_observation(None, step), False
                try:
                    action = policy.act(observation)
                    logprob = owned(policy.last_logprob) if says_logprob else None
                    value = owned(policy.last_value) if says_value else None
                    rank = policy.last_effective_rank if says_rank else None
                except SkyfallError:
                    raise
                except Exception as error:
                    raise policy_failed(policy, step, error) from error
                taken = action if type(action) is int else owned(action)
                try:
                    following, given, terminated, truncated, info = env.step(action)
                    if type(terminated) is not bool or type(truncated) is not bool:
                        terminated, truncated = bool(terminated), bool(truncated)
                    nothing_told = type(info) is dict and not info
                    info = {} if nothing_told else owned_info(info)
                except RewardSpecError:
                    raise
                except Exception as error:
                    raise environment_failed(env, f"at step {step}", error) from error
                if step >= steady_until or not nothing_told:
                    label, boundary, origin = label_of(step, info)
                    steady_until = 0 if boundary else label_of.steady_until
                reward = given if type(given) is float else as_reward(given)
                transition = Transition(
                    step,
                    observation,
                    taken,
                    reward,
                    terminated,
                    truncated,
                    label,
                    boundary,
                    {} if nothing_told else info.get("reward_components") or {},
                    logprob,
                    value,
                    info,
                )
                done = step + 1
                observation = following.copy() if type(following) is array else owned(following)
                ended = auto_reset and (terminated or truncated)
                if recorder is not None:
                    recorder(transition, origin, rank)
                if not is_finite(reward):
                    raise reward_refused(env, step, given)
                transitions.append(transition)
        finally:
            self.step_index, self._observation, self._ended = done, observation, ended
        return RolloutWindow(transitions, self.run)

    def position(self) -> dict[str, Any]:
        """Step, next observation, whether the episode ended, and the label of the step before."""
        return {
            "step": self.step_index,
            "observation": self._observation,
            "ended": self._ended,
            "label": self._label.previous,
        }

    def go_on(self, position: Mapping[str, Any], restored: Restored, seed: int | None) -> None:
        """Continue from a position; `seed` is for the reset of what could not be restored."""
        self.step_index = int(position["step"])
        self._label = RegimeLabeller(self._provider)
        self._label.previous = position["label"]
        self._observation, self._ended = position["observation"], bool(position["ended"])
        if not restored.exact:
            self._observation, self._ended = self._first_observation(seed, self.step_index), False
        elif restored.observation is not None:
            self._observation = owned(restored.observation)
        self.run = _description(self._env)

    def _first_observation(self, seed: int | None, step: int) -> Any:
        try:
            observation, _ = self._env.reset() if seed is None else self._env.reset(seed=seed)
        except Exception as error:
            raise environment_failed(self._env, f"to reset before step {step}", error) from error
        return owned(observation)


class Act(NamedTuple):
    """What a policy did in one world, and what it thought about it."""

    action: Any
    logprob: Any
    value: Any
    effective_rank: Any


class SeveralWorldsDriver:
    """Steps a `gymnasium.vector.VectorEnv` of persistent worlds, all of them at once.

    A window holds step 0 of every world, then step 1 of every world, and so on; its `streams` tell
    which position belongs to which world. The policy's `act_batch` is used when it has one.

    Args:
        env: A vector environment that never resets by itself.
        policy: Anything with `act`, better with `act_batch`.
        provider: Configuration provider for worlds that report none, or None.
        auto_reset: Whether a world whose episode ended is reset, alone.

    Raises:
        InputError: If the vector environment resets its worlds by itself.
    """

    def __init__(self, env: Any, policy: Any, provider: Any, *, auto_reset: bool) -> None:
        mode = env.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.DISABLED:
            name = getattr(mode, "name", mode)
            raise InputError(
                f"{type(env).__name__} has autoreset_mode {name}, which resets worlds by itself; "
                "build it with AutoresetMode.DISABLED and let rollout.auto_reset decide"
            )
        self.step_index = 0
        self.run: Mapping[str, Any] = {}
        self.recorder: Recorder | None = None
        self._env, self._policy, self._provider = env, policy, provider
        self._auto_reset = auto_reset
        self._labels = self._new_labels()
        self._observations: list[Any] = []
        self._ended: Any = None
        act_batch = getattr(policy, "act_batch", None)
        self._act_batch: Callable[[list[Any]], Any] | None = act_batch if callable(act_batch) else None

    def reset(self, seed: int | None) -> None:
        """Begin in every world; a seed is spread so that no two runs share a world's."""
        self.step_index = 0
        self._labels = self._new_labels()
        self._ended = None
        seeds = None if seed is None else spread_seed(seed, self._env.num_envs)
        self._observations = self._first_observations(seed=seeds)
        self.run = _description(self._env)

    def collect(self, steps: int) -> RolloutWindow:
        """Take `steps` steps in every world."""
        worlds, transitions = self._env.num_envs, []
        for step in range(self.step_index, self.step_index + steps):
            transitions.extend(self._step_all(step))
        streams = tuple(range(world, len(transitions), worlds) for world in range(worlds))
        return RolloutWindow(transitions, self.run, streams)

    def position(self) -> dict[str, Any]:
        """Step, next observations, which worlds ended, and the labels of the step before."""
        return {
            "step": self.step_index,
            "observations": self._observations,
            "ended": self._ended,
            "labels": [label.previous for label in self._labels],
        }

    def go_on(self, position: Mapping[str, Any], restored: Restored, seed: int | None) -> None:
        """Continue from a position; `seed` is for the reset of what could not be restored."""
        self.step_index = int(position["step"])
        self._labels = self._new_labels()
        for label, previous in zip(self._labels, position["labels"], strict=True):
            label.previous = previous
        self._observations, self._ended = list(position["observations"]), position["ended"]
        if not restored.exact:
            seeds = None if seed is None else spread_seed(seed, self._env.num_envs)
            self._observations, self._ended = self._first_observations(seed=seeds), None
        elif restored.observation is not None:
            self._observations = self._split(restored.observation)
        self.run = _description(self._env)

    def _step_all(self, step: int) -> list[Transition]:
        if self._ended is not None:
            self._observations = self._first_observations(options={"reset_mask": self._ended})
        acts = self._act()
        try:
            observations, rewards, terminations, truncations, infos = self._env.step(self._batched(acts))
            by_world = [owned_info(world_info(infos, world)) for world in range(self._env.num_envs)]
            ends = [(bool(end), bool(cut)) for end, cut in zip(terminations, truncations, strict=True)]
        except RewardSpecError:
            raise
        except Exception as error:
            raise environment_failed(self._env, f"at step {step}", error) from error
        transitions = []
        for world, (act, info, end) in enumerate(zip(acts, by_world, ends, strict=True)):
            label, boundary, origin = self._labels[world](step, info)
            transition = Transition(
                step,
                self._observations[world],
                act.action,
                as_reward(rewards[world]),
                *end,
                label,
                boundary,
                info.get("reward_components") or {},
                act.logprob,
                act.value,
                info,
            )
            transitions.append(transition)
            if self.recorder is not None:
                self.recorder(transition, origin, act.effective_rank, world)
        self.step_index = step + 1
        self._observations = self._split(observations)
        ended = np.logical_or(terminations, truncations)
        self._ended = ended if self._auto_reset and ended.any() else None
        for world, transition in enumerate(transitions):
            if not math.isfinite(transition.reward):
                raise reward_refused(self._env, step, rewards[world], world)
        return transitions

    def _act(self) -> list[Act]:
        try:
            if self._act_batch is None:
                return [self._act_alone(observation) for observation in self._observations]
            actions = list(self._act_batch(self._observations))
            self._check_count("act_batch", actions)
            beside = [self._reported(name) for name in ("last_logprob", "last_value", "last_effective_rank")]
        except SkyfallError:
            raise
        except Exception as error:
            raise policy_failed(self._policy, self.step_index, error) from error
        return [Act(*map(owned, of_world)) for of_world in zip(actions, *beside, strict=True)]

    def _act_alone(self, observation: Any) -> Act:
        policy = self._policy
        return Act(
            owned(policy.act(observation)),
            owned(getattr(policy, "last_logprob", None)),
            owned(getattr(policy, "last_value", None)),
            getattr(policy, "last_effective_rank", None),
        )

    def _reported(self, name: str) -> Sequence[Any]:
        """What the policy said about its last batch of actions, a world each; one number is for all."""
        value = getattr(self._policy, name, None)
        if value is None or np.ndim(value) == 0:
            return [value] * self._env.num_envs
        self._check_count(name, value)
        return list(value)

    def _check_count(self, name: str, values: Sized) -> None:
        if len(values) != self._env.num_envs:
            problem = f"{name} gave {len(values)} values for {self._env.num_envs} worlds"
            raise RunError(
                f"{type(self._policy).__name__}.{problem} at step {self.step_index}; one each is needed"
            )

    def _batched(self, acts: Sequence[Act]) -> Any:
        space, actions = self._env.single_action_space, [act.action for act in acts]
        return concatenate(space, actions, create_empty_array(space, n=len(actions)))  # type: ignore[arg-type]  # Gymnasium's annotation leaves out its own result

    def _split(self, observations: Any) -> list[Any]:
        return [owned(observation) for observation in iterate(self._env.observation_space, observations)]

    def _first_observations(self, **how: Any) -> list[Any]:
        try:
            observations, _ = self._env.reset(**how)
        except Exception as error:
            raise environment_failed(self._env, f"to reset before step {self.step_index}", error) from error
        return self._split(observations)

    def _new_labels(self) -> list[RegimeLabeller]:
        return [RegimeLabeller(self._provider) for _ in range(self._env.num_envs)]


def _says(policy: Any, name: str) -> bool:
    """Whether `policy` has `name`; so it has where asking fails, and reading it will tell why."""
    try:
        return hasattr(policy, name)
    except Exception:  # noqa: BLE001 - named with the step when it is read
        return True


def _description(env: Any) -> Mapping[str, Any]:
    """What `env` reports about the run."""
    try:
        return describe_run(env)
    except Exception as error:
        raise environment_failed(env, "to describe the run", error) from error


def world_info(infos: Mapping[str, Any], world: int) -> dict[str, Any]:
    """One world's `info` out of infos merged the way Gymnasium's vector environments merge them.

    Args:
        infos: Key to an array over worlds, or to a mapping merged likewise; a boolean array under
            `_key` tells which worlds reported the key at all. A value that is neither array nor
            mapping and has no such mask is every world's.
        world: Index of the world.
    """
    info: dict[str, Any] = {}
    for key, value in infos.items():
        if key.startswith("_") and key[1:] in infos:
            continue
        reported = infos.get(f"_{key}")
        if reported is not None and not reported[world]:
            continue
        if isinstance(value, Mapping):
            info[key] = world_info(value, world)
        else:
            of_all = reported is None and not isinstance(value, np.ndarray)
            info[key] = value if of_all else value[world]
    return info
