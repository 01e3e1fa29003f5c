"""Where an environment stands, as plain values that a later process goes on from.

Two ways, both optional. A world that outlives the process offers `resume_token()` and
`resume(token)` (see `protocols.ResumesWorlds`). An environment that lives in the process is taken down
layer by layer: a layer that offers `save_state()` and `load_state(state)`, Gymnasium's own wrappers
around it, and the classic-control tasks. A layer that nobody knows makes the whole snapshot incomplete:
then a resumed run begins with a fresh reset, and only layers that count the run's steps go on.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import wrappers
from gymnasium.vector import SyncVectorEnv

from skyfall_core.encoding import encode
from skyfall_core.protocols import capability
from skyfall_core.rewards import ScoredReward

__all__ = ["Restored", "generator_state", "restore_generator", "restore_world", "world_state"]

_CHECKED = {"checked_reset": True, "checked_step": True, "checked_data_reuse": True}
_CLASSIC = "gymnasium.envs.classic_control."
_NOT_STATE = frozenset({"screen", "clock", "surf", "isopen", "render_mode", "spec", "metadata"})


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """The state of a NumPy generator, as values that `encode` takes."""
    return dict(generator.bit_generator.state)


def restore_generator(state: Mapping[str, Any]) -> np.random.Generator:
    """A generator that goes on from `generator_state`.

    Raises:
        ValueError: If the state is no generator's.
    """
    kind = getattr(np.random, str(state.get("bit_generator")), None)
    if not (inspect.isclass(kind) and issubclass(kind, np.random.BitGenerator)):
        raise ValueError(f"no generator: {state.get('bit_generator')!r}")
    bits = kind()
    bits.state = dict(state)
    return np.random.Generator(bits)


def world_state(env: Any) -> dict[str, Any]:
    """Where `env` stands.

    Returns:
        `token` where the environment gives one; otherwise `layers`, a list a world, None for a layer
        that nobody can write down; and `complete`, whether the environment can go on from it exactly.
    """
    give = capability(env, "resume_token")
    if callable(give) and callable(capability(env, "resume")):
        return {"complete": True, "token": give()}
    worlds = [[_layer_state(layer) for layer in _layers(world)] for world in _worlds(env)]
    complete = bool(worlds) and all(state is not None for layers in worlds for state in layers)
    state: dict[str, Any] = {"complete": complete, "layers": worlds}
    if isinstance(env, SyncVectorEnv):  # what a world that is not reset is said to have shown last
        state["shown"] = list(env._env_obs)  # noqa: SLF001 - Gymnasium has no other way
    return state


class Restored(NamedTuple):
    """How an environment took its state.

    Attributes:
        exact: Whether it stands where it stood; if not, it has to be reset.
        observation: What a re-attached world shows now; None where the recorded one still holds.
    """

    exact: bool
    observation: Any = None


def restore_world(env: Any, state: Mapping[str, Any]) -> Restored:
    """Let a newly built `env` go on from `state`.

    Raises:
        ValueError: If the state does not fit the environment.
    """
    if "token" in state:
        resume = capability(env, "resume")
        if not callable(resume):
            raise ValueError(f"{type(env).__name__} has no resume() to take its token")
        observation, _ = resume(state["token"])
        return Restored(True, observation)
    worlds = _worlds(env)
    if state["complete"] and len(worlds) != len(state["layers"]):
        raise ValueError(f"{len(state['layers'])} worlds were saved, there are {len(worlds)}")
    for world, saved in zip(worlds, state["layers"], strict=False):
        layers = list(_layers(world))
        if len(layers) != len(saved):
            raise ValueError(f"{len(saved)} layers were saved, there are {len(layers)}")
        for layer, of_layer in reversed(list(zip(layers, saved, strict=True))):
            if of_layer is not None and (state["complete"] or _speaks(layer)):
                _load_layer(layer, of_layer)
    if isinstance(env, SyncVectorEnv) and state["complete"]:
        env._env_obs = list(state["shown"])  # noqa: SLF001 - as above
    return Restored(bool(state["complete"]))


def _worlds(env: Any) -> list[Any]:
    if isinstance(env, SyncVectorEnv):
        return list(env.envs)
    return [env] if isinstance(env, gymnasium.Env) else []


def _layers(env: Any) -> Iterator[Any]:
    """`env` and what it wraps, outermost first."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def _speaks(layer: Any) -> bool:
    """Whether a layer itself offers its state, forwarding nothing."""
    return all(callable(getattr(type(layer), name, None)) for name in ("save_state", "load_state"))


def _layer_state(layer: Any) -> dict[str, Any] | None:  # noqa: PLR0911 - one kind of layer a line
    if _speaks(layer):
        return dict(layer.save_state())
    if type(layer) is ScoredReward:
        return {}
    if type(layer) is wrappers.PassiveEnvChecker:  # its first steps are behind it
        return dict(_CHECKED)
    if type(layer) is wrappers.OrderEnforcing:
        return {"_has_reset": bool(layer.has_reset)}
    if type(layer) is wrappers.TimeLimit:
        return {"_elapsed_steps": layer._elapsed_steps}  # noqa: SLF001 - Gymnasium has no other way
    if type(layer).__module__.startswith(_CLASSIC):
        return _attributes(layer)
    return None


def _load_layer(layer: Any, state: Mapping[str, Any]) -> None:
    if _speaks(layer):
        layer.load_state(state)
        return
    for name, value in state.items():
        setattr(layer, name, restore_generator(value) if name == "_np_random" else value)


def _attributes(env: Any) -> dict[str, Any]:
    """Every plain attribute of a classic-control task, its generator's state among them."""
    state: dict[str, Any] = {}
    for name, value in vars(env).items():
        if name in _NOT_STATE or isinstance(value, gymnasium.Space):
            continue
        if name == "_np_random":
            if value is not None:
                state[name] = generator_state(value)
            continue
        try:
            encode(value)
        except TypeError:
            continue
        state[name] = value
    return state
