"""Several independent worlds, stepped at once and never reset behind the caller's back.

A step of a persistent world is mostly waiting for a server, so worlds are driven from a thread pool.
`PersistentVectorEnv` works for any `gymnasium.Env` whose life should outlast its truncations:
truncation is reported, the next step simply goes on, and a reset happens when, and for which
worlds, the caller asks for one.

One world's exception never costs another world's work: every world finishes first. What happens
then is `OnError`'s choice. Importing this module needs neither a network nor an HTTP library.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from enum import Enum
from typing import Any, SupportsIndex

import numpy as np
from gymnasium import Env
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from skyfall_core.errors import SpaceError
from skyfall_core.protocols import capability
from skyfall_core.seeding import spread_seed
from skyfall_morpheus.crew import Crew
from skyfall_morpheus.errors import WorldsFailedError
from skyfall_morpheus.merging import as_objects, batching_copies, blank, needs_objects

__all__ = ["OnError", "PersistentVectorEnv"]


class OnError(str, Enum):
    """What a failing world means for the batch.

    `RAISE` raises `WorldsFailedError` once every world is done. `ISOLATE` marks the world in `info`
    (`world_failed`, `world_error`), reports it truncated with reward 0 and its last observation, and
    leaves it out until it is reset; with no world left it raises after all. Its record (`info["trace"]`)
    holds the same marks, and its configuration stays the one it last reported.
    """

    RAISE = "raise"
    ISOLATE = "isolate"


class PersistentVectorEnv(VectorEnv[Any, Any, Any]):
    """N persistent worlds behind Gymnasium's vector interface, autoreset disabled.

    Args:
        env_fns: One factory a world, called here, so that this object owns what it closes.
        max_workers: Threads; one a world by default, since a step is spent waiting.
        on_error: What one failing world means for the batch.

    Raises:
        SpaceError: No factory was given, or the worlds' spaces differ.

    Attributes:
        envs: The worlds, in order.
        failed: Boolean mask `(num_envs,)` of worlds left out until their next reset.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], Env[Any, Any]]],
        max_workers: int | None = None,
        *,
        on_error: OnError | str = OnError.RAISE,
    ) -> None:
        super().__init__()
        self.on_error = OnError(on_error)
        self.envs = _build(env_fns)
        self.num_envs = len(self.envs)
        first = self.envs[0]
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {**first.metadata, "autoreset_mode": AutoresetMode.DISABLED}
        self.render_mode = first.render_mode
        self.closed = False
        self.failed = np.zeros(self.num_envs, dtype=np.bool_)
        self._observations: list[Any] = [None] * self.num_envs
        self._regimes: list[Any] = [None] * self.num_envs
        self._started = np.zeros(self.num_envs, dtype=np.bool_)
        self._copies = batching_copies(self.single_observation_space)
        self._crew = Crew(max_workers or self.num_envs)
        # A capability counts as present when the attribute exists: only where every world has it.
        for name, method in (
            ("describe_run", self._describe_run),
            ("bind_regime", self._bind_regime),
            ("resume_token", self._resume_token),
            ("resume", self._resume),
        ):
            if all(capability(env, name) is not None for env in self.envs):
                setattr(self, name, method)

    def reset(
        self,
        *,
        seed: SupportsIndex | Sequence[SupportsIndex | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in every world, or in those that `options["reset_mask"]` selects.

        Args:
            seed: One seed, spread so that no two base seeds share a world's seed; or one seed a world.
            options: Handed to each world, without `reset_mask`, a boolean array `(num_envs,)`. Worlds
                outside the mask keep their latest observation and are not touched.

        Returns:
            Batched observations and merged infos; only worlds that were reset report an info.

        Raises:
            ValueError: The seeds are not one a world, or the mask selects nothing, has the wrong shape
                or leaves out a world that was never reset.
            TypeError: The mask is no boolean array.
            WorldsFailedError: A world failed to reset.
        """
        self._require_open("reset")
        mask, rest = self._split_options(options)
        seeds = self._seeds(seed)
        indices = [int(index) for index in np.flatnonzero(mask)]

        def start(index: int) -> tuple[Any, dict[str, Any]]:
            return self.envs[index].reset(seed=seeds[index], options=None if rest is None else dict(rest))

        results, failures = self._crew.run(start, indices)
        infos: dict[str, Any] = {}
        for index, (observation, info) in results.items():
            self._observations[index] = observation
            self._started[index] = True
            self.failed[index] = False
            infos = self._add_info(infos, info, index)
        infos = self._mark_failures(infos, failures)
        batch = self._batch(), infos
        self._raise_if_needed("reset", failures, batch)
        return batch

    def step(
        self, actions: Any
    ) -> tuple[Any, np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], dict[str, Any]]:
        """Advance every world by one step; a world that reported its end simply goes on.

        Args:
            actions: A batch as the batched action space holds it, or one action a world.

        Returns:
            Batched observations, rewards (float64), terminations, truncations and merged infos.

        Raises:
            ValueError: The batch does not hold one action a world.
            WorldsFailedError: A world failed and `on_error` is `raise`, or no world is left.
        """
        self._require_open("step")
        if not self._started.all():
            missing = np.flatnonzero(~self._started).tolist()
            raise ValueError(f"step: worlds {missing} were never reset; call reset() first")
        per_world = list(iterate(self.action_space, actions))
        if len(per_world) != self.num_envs:
            raise ValueError(f"step: {len(per_world)} actions for {self.num_envs} worlds")
        active = [index for index in range(self.num_envs) if not self.failed[index]]
        results, failures = self._crew.run(lambda index: self.envs[index].step(per_world[index]), active)

        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminations = np.zeros(self.num_envs, dtype=np.bool_)
        truncations = np.zeros(self.num_envs, dtype=np.bool_)
        infos: dict[str, Any] = {}
        for index, (observation, reward, terminated, truncated, info) in results.items():
            self._observations[index] = observation
            rewards[index] = reward
            terminations[index] = terminated
            truncations[index] = truncated
            if "regime" in info:
                self._regimes[index] = _standing(info["regime"])
            infos = self._add_info(infos, info, index)
        infos = self._mark_failures(infos, failures)
        truncations[self.failed] = True
        truncations[list(failures)] = True
        batch = self._batch(), rewards, terminations, truncations, infos
        self._raise_if_needed("step", failures, batch)
        return batch

    def close(self, **kwargs: Any) -> None:  # noqa: ARG002  # Gymnasium's signature
        """Release every world, each on its own terms about disposal; a second call does nothing.

        A step still in flight (after an interrupt) is waited for, then all worlds are closed at once.

        Raises:
            WorldsFailedError: Worlds that failed to close, all together, after every one was tried.
        """
        if self.closed:
            return
        self.closed = True
        try:
            _, failures = self._crew.run(lambda index: self.envs[index].close(), range(self.num_envs))
        finally:
            self._crew.dismiss()
        if failures:
            raise WorldsFailedError("close", failures)

    def render(self) -> tuple[Any, ...] | None:
        """One frame a world."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Per world, the result of its method `name`, or its attribute of that name."""
        found = [env.get_wrapper_attr(name) for env in self.envs]
        return tuple(value(*args, **kwargs) if callable(value) else value for value in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Per world, its attribute `name`, looked up through wrappers."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute in every world.

        Args:
            name: The attribute.
            values: A list or tuple with one value a world, or one value for all.

        Raises:
            ValueError: A list or tuple of another length.
        """
        per_world = list(values) if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(per_world) != self.num_envs:
            raise ValueError(f"set_attr {name!r}: {len(per_world)} values for {self.num_envs} worlds")
        for env, value in zip(self.envs, per_world, strict=True):
            env.set_wrapper_attr(name, value)

    def _describe_run(self) -> Mapping[str, Any]:
        return {
            "num_worlds": self.num_envs,
            "worlds": [dict(env.get_wrapper_attr("describe_run")()) for env in self.envs],
        }

    def _bind_regime(self, provider: Any) -> None:
        for env in self.envs:
            env.get_wrapper_attr("bind_regime")(provider)

    def _resume_token(self) -> dict[str, Any]:
        """Each world's token, taken at once; a failed world has none and is begun anew on its next reset."""
        self._require_open("resume_token")
        active = [index for index in range(self.num_envs) if self._started[index] and not self.failed[index]]
        tokens, failures = self._crew.run(
            lambda index: self.envs[index].get_wrapper_attr("resume_token")(), active
        )
        if failures:
            raise WorldsFailedError("resume_token", failures)
        return {"worlds": [tokens.get(index) for index in range(self.num_envs)]}

    def _resume(self, token: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Go on in every world where its token was taken; returns what `reset` returns."""
        self._require_open("resume")
        tokens = token["worlds"]
        if len(tokens) != self.num_envs:
            raise ValueError(f"resume: a token of {len(tokens)} worlds for {self.num_envs}")
        kept = [index for index in range(self.num_envs) if tokens[index] is not None]
        results, failures = self._crew.run(
            lambda index: self.envs[index].get_wrapper_attr("resume")(tokens[index]), kept
        )
        if failures:
            raise WorldsFailedError("resume", failures)
        infos: dict[str, Any] = {}
        for index, (observation, info) in results.items():
            self._observations[index] = observation
            infos = self._add_info(infos, info, index)
        self._started[:] = True
        self.failed[:] = [one is None for one in tokens]
        return self._batch(), infos

    def _batch(self) -> Any:
        filled = [
            blank(self.single_observation_space) if observation is None else observation
            for observation in self._observations
        ]
        empty = create_empty_array(self.single_observation_space, n=self.num_envs, fn=np.zeros)
        # For spaces it does not know, Gymnasium gives None as the empty batch and takes None here.
        batch = concatenate(self.single_observation_space, filled, empty)  # type: ignore[arg-type]
        return batch if self._copies else deepcopy(batch)

    def _mark_failures(self, infos: dict[str, Any], failures: Mapping[int, Exception]) -> dict[str, Any]:
        marks: dict[int, dict[str, Any]] = {
            int(index): {"world_failed": True} for index in np.flatnonzero(self.failed)
        }
        for index, error in failures.items():
            marks[index] = {"world_failed": True, "world_error": f"{type(error).__name__}: {error}"}
        for index, mark in marks.items():
            # A failed world stays in the configuration it last reported, and its record says why it is still.
            regime = self._regimes[index]
            own = {} if regime is None else {"regime": regime}
            infos = self._add_info(infos, {**mark, **own, "trace": dict(mark)}, index)
        return infos

    def _raise_if_needed(self, doing: str, failures: Mapping[int, Exception], results: Any) -> None:
        if not failures:
            return
        if self.on_error is OnError.RAISE:
            raise WorldsFailedError(doing, failures, results)
        self.failed[list(failures)] = True
        self._started[list(failures)] = True
        if self.failed.all():
            raise WorldsFailedError(doing, failures, results)

    def _add_info(
        self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int
    ) -> dict[str, Any]:
        """Gymnasium's merge, with one repair: a value that does not fit the array is kept whole.

        The base class types each array after the first value it sees, which would cut another
        world's 1.5 to 1, or raise on its None; such an array becomes one of objects first.
        """
        for key, value in env_info.items():
            array = vector_infos.get(key)
            if array is not None and needs_objects(array, value):
                vector_infos[key] = array = as_objects(array, vector_infos[f"_{key}"])
            if isinstance(value, dict) and isinstance(array, np.ndarray):
                array[env_num] = value
                vector_infos[f"_{key}"][env_num] = True
            else:
                super()._add_info(vector_infos, {key: value}, env_num)
        return vector_infos

    def _split_options(
        self, options: dict[str, Any] | None
    ) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], dict[str, Any] | None]:
        """The reset mask, all true without one, and the options that belong to the worlds."""
        if options is None or "reset_mask" not in options:
            return np.ones(self.num_envs, dtype=np.bool_), options
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            found = f"an array of {mask.dtype}" if isinstance(mask, np.ndarray) else type(mask).__name__
            raise TypeError(f"options['reset_mask']: expected a boolean array, got {found}")
        if mask.shape != (self.num_envs,):
            raise ValueError(f"options['reset_mask']: expected shape ({self.num_envs},), got {mask.shape}")
        if not mask.any():
            raise ValueError("options['reset_mask']: selects no world; leave it out to reset all")
        if not (mask | self._started).all():
            never = np.flatnonzero(~(mask | self._started)).tolist()
            raise ValueError(f"options['reset_mask']: worlds {never} were never reset and are not selected")
        return mask, {key: value for key, value in options.items() if key != "reset_mask"}

    def _seeds(self, seed: SupportsIndex | Sequence[SupportsIndex | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if not isinstance(seed, Sequence | np.ndarray):
            return [*spread_seed(operator.index(seed), self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"seed: {len(seed)} seeds for {self.num_envs} worlds")
        return [None if one is None else operator.index(one) for one in seed]

    def _require_open(self, doing: str) -> None:
        if self.closed:
            raise ValueError(f"{doing}: the environment is closed; build a new one")


def _build(env_fns: Sequence[Callable[[], Env[Any, Any]]]) -> list[Env[Any, Any]]:
    """Every world, or none: a factory that fails, or unequal spaces, close what was built before."""
    envs: list[Env[Any, Any]] = []
    try:
        envs.extend(make() for make in env_fns)
        _require_equal_spaces(envs)
    except BaseException as failure:
        for env in envs:
            try:
                env.close()
            except Exception as error:  # noqa: BLE001  # the first failure is the one to report
                failure.add_note(f"while closing a world built before: {type(error).__name__}: {error}")
        raise
    return envs


def _require_equal_spaces(envs: Sequence[Env[Any, Any]]) -> None:
    if not envs:
        raise SpaceError("env_fns: no factory given; pass one a world")
    for index, env in enumerate(envs[1:], start=1):
        for name in ("observation_space", "action_space"):
            if getattr(env, name) != getattr(envs[0], name):
                raise SpaceError(
                    f"world {index}: its {name} {getattr(env, name)} differs from world 0's "
                    f"{getattr(envs[0], name)}; worlds driven together need equal spaces"
                )


def _standing(regime: Any) -> Any:
    """A reported configuration without its boundary."""
    return {**regime, "boundary": False} if isinstance(regime, Mapping) else regime
