"""What happens to a single step between the environment and the record.

Labelling it with its configuration, making what it stores safe from later changes, and writing it as
a row of the trace. All of this runs once a step, so it stays free of copies beyond arrays, of
validation and of logging.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from skyfall_core.base import Transition
from skyfall_core.errors import EnvironmentFailedError, NonFiniteRewardError, RunError
from skyfall_core.protocols import (
    DEFAULT_REGIME_ID,
    record_from_info,
    regime_from_info,
    regime_origin_from_info,
)
from skyfall_core.trace import TraceWriter

__all__ = [
    "Recorder",
    "RegimeLabeller",
    "as_reward",
    "environment_failed",
    "owned",
    "owned_info",
    "policy_failed",
    "reward_refused",
]


_Array = np.ndarray
_IMMUTABLE = frozenset({type(None), bool, int, float, str, bytes, np.bool_, np.int64, np.float32, np.float64})


def owned(value: Any) -> Any:
    """`value` with its arrays and containers copied, so that whoever reuses a buffer cannot change it."""
    kind = type(value)
    if kind in _IMMUTABLE:
        return value
    if kind is _Array or isinstance(value, _Array):
        return value.copy()
    if isinstance(value, dict):
        return {key: owned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [owned(item) for item in value]
    if isinstance(value, tuple):
        items = [owned(item) for item in value]
        return tuple(items) if kind is tuple else getattr(kind, "_make", tuple)(items)
    return value


def owned_info(info: Any) -> dict[str, Any]:
    """A step's `info`, owned.

    Raises:
        TypeError: If it or its `reward_components` is no mapping.
    """
    if type(info) is not dict and not isinstance(info, Mapping):  # asking an ABC is slow
        raise TypeError(f"info is {info!r}, not a mapping")
    if "reward_components" in info and not isinstance(info["reward_components"], Mapping | None):
        raise TypeError(f"info['reward_components'] is {info['reward_components']!r}, not a mapping")
    return {key: owned(value) for key, value in info.items()} if info else {}


def as_reward(reward: Any) -> float:
    """`reward` as a float; NaN for what is no number, such as a string that looks like one."""
    if type(reward) is float:
        return reward
    if isinstance(reward, (str, bytes, bytearray)):
        return math.nan
    try:
        return float(reward)
    except (TypeError, ValueError, OverflowError):
        return math.nan


class RegimeLabeller:
    """Says which configuration each step of one world happened under.

    The environment's own label wins. Without one the provider's is stamped, and without a provider
    the run is one stationary configuration. Where the environment reports a label and no boundary
    flag, a boundary is where its label changes.

    Args:
        provider: A regime provider, or None. One with `next_boundary` is asked once a configuration
            instead of once a step.
    """

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider
        self._next_boundary = getattr(provider, "next_boundary", None)
        self._regime_at = getattr(provider, "regime_at", None)
        self._valid_until: float = math.inf if provider is None else 0
        self._label = DEFAULT_REGIME_ID
        self._origin: str | None = None
        self._previous: str | None = None
        self._again: tuple[str, bool, str | None] | None = None

    def __call__(self, step: int, info: Mapping[str, Any]) -> tuple[str, bool, str | None]:
        """Label, boundary flag and origin of `step`, given the `info` it returned."""
        if self._again is not None and step < self._valid_until and "regime" not in info:
            return self._again
        flagged = False
        if "regime" in info:
            self._again = None
            reported = info["regime"]
            try:
                label, boundary = regime_from_info(info)
            except ValueError as error:
                raise EnvironmentFailedError(f"the environment's step {step}: {error}") from None
            origin = regime_origin_from_info(info)
            flagged = isinstance(reported, Mapping) and "boundary" in reported
        else:
            if step >= self._valid_until:
                self._ask(step)
            label, origin = self._label, self._origin
            self._again = label, False, origin
        if not flagged:
            boundary = self._previous is not None and label != self._previous
        self._previous = label
        return label, boundary, origin

    @property
    def steady_until(self) -> float:
        """The first step that might be answered otherwise than the last, were it to report nothing."""
        return 0 if self._again is None else self._valid_until

    @property
    def previous(self) -> str | None:
        """The label of the step before, which is all that a later process needs to go on from."""
        return self._previous

    @previous.setter
    def previous(self, label: str | None) -> None:
        self._previous = label

    def _ask(self, step: int) -> None:
        try:
            if self._regime_at is not None:
                regime = self._regime_at(step)
                self._label, self._origin = regime.regime_id, regime.origin
            else:
                self._label = str(self._provider.regime_id(step))
            upcoming = step + 1 if self._next_boundary is None else self._next_boundary(step)
        except Exception as error:
            problem = f"failed to say the configuration of step {step}: {type(error).__name__}: {error}"
            raise RunError(f"{type(self._provider).__name__} {problem}") from error
        self._valid_until = math.inf if upcoming is None else upcoming


class Recorder:
    """Lays transitions out as rows of a trace and writes them.

    Args:
        writer: The trace.
        record_observations: Whether rows carry the observation.
    """

    def __init__(self, writer: TraceWriter, *, record_observations: bool = False) -> None:
        self._writer = writer
        self._record_observations = record_observations

    def __call__(
        self,
        transition: Transition,
        origin: str | None = None,
        effective_rank: float | None = None,
        world: int | None = None,
    ) -> None:
        """Write one step; the environment's own record of it is kept whole below the harness's keys.

        A world whose `info` says `world_failed` took no step: whatever stands for its reward is written
        as null, so that no score counts it.
        """
        info = transition.info
        row: dict[str, Any] = {
            "step": transition.step,
            "reward": None if info.get("world_failed") else transition.reward,
            "terminated": transition.terminated,
            "truncated": transition.truncated,
            "regime_id": transition.regime_id,
            "boundary": transition.boundary,
        }
        if world is not None:
            row = {"step": transition.step, "world": world, **row}
        if origin is not None:
            row["origin"] = origin
        if transition.reward_components:
            row["reward_components"] = transition.reward_components
        if effective_rank is not None:
            row["effective_rank"] = effective_rank
        if transition.logprob is not None:
            row["logprob"] = transition.logprob
        if transition.value is not None:
            row["value"] = transition.value
        row["action"] = transition.action
        if self._record_observations:
            row["observation"] = transition.observation
        self._writer.write(row, record_from_info(info) if "trace" in info else None)


def environment_failed(env: Any, doing: str, error: Exception) -> EnvironmentFailedError:
    """The error for an environment that raised; whoever raises it chains the cause."""
    return EnvironmentFailedError(f"{_name_of(env)} failed {doing}: {type(error).__name__}: {error}")


def policy_failed(policy: Any, step: int, error: Exception) -> RunError:
    """The error for a policy that raised; whoever raises it chains the cause."""
    return RunError(f"{type(policy).__name__} failed to act at step {step}: {type(error).__name__}: {error}")


def reward_refused(env: Any, step: int, reward: Any, world: int | None = None) -> NonFiniteRewardError:
    """The error for a reward that no average survives."""
    where = f"step {step}" if world is None else f"step {step} of world {world}"
    problem = f"{_name_of(env)} returned reward {reward!r} at {where}; rewards are finite numbers"
    return NonFiniteRewardError(f"{problem}. A recorded row of this step has a null reward")


def _name_of(env: Any) -> str:
    """What messages call an environment: its registered id, or its class."""
    spec = getattr(env, "spec", None)
    return str(getattr(spec, "id", None) or type(env).__name__)
