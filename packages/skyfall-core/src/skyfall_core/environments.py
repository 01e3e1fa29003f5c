"""Building the environment a document names: one world, or several behind one vector environment.

An id is looked for among the plugins of `skyfall.environments`, then read as `package.module:factory`,
then as a registered Gymnasium id. Every world gets its own copy of the wrappers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium.envs import registration

from skyfall_core import plugins
from skyfall_core.errors import ConfigError, SkyfallError
from skyfall_core.factories import call_factory
from skyfall_core.plugins import Group

if TYPE_CHECKING:
    from skyfall_core.config import EnvironmentConfig

__all__ = ["build_environment", "close_after", "environment_id_problem"]

Prepare = Callable[[Any], Any]


def build_environment(config: EnvironmentConfig, prepare: Prepare | None = None) -> Any:
    """The environment `config` describes.

    Args:
        config: The document's `environment` section.
        prepare: Applied to each single world after its wrappers.

    Returns:
        A `gymnasium.Env`, or a `gymnasium.vector.VectorEnv` for several worlds or where the factory
        returns one.

    Raises:
        ConfigError: If the id is unknown, construction fails, or single worlds are needed and the
            factory returns a vector environment.
    """
    problem = environment_id_problem(config.id)
    if problem is not None:
        raise ConfigError(f"environment.id: {problem}")
    build_world = partial(_world, config, prepare)
    if config.worlds == 1:
        return build_world()
    vector = plugins.load(plugins.find(Group.VECTORS, config.vector))
    try:
        return vector([build_world] * config.worlds)
    except SkyfallError:
        raise
    except Exception as error:
        problem = f"building {config.worlds} worlds failed: {type(error).__name__}: {error}"
        raise ConfigError(f"environment.worlds: {problem}") from error


def environment_id_problem(name: str) -> str | None:
    """Why an environment id leads nowhere, or None. Imports nothing that it leads to.

    What an id of the form `package.module:factory` or `package.module:Name-v0` leads to is not looked up.
    """
    known = plugins.catalogue(Group.ENVIRONMENTS)
    if name in known:
        plugins.find(Group.ENVIRONMENTS, name)
        return None
    if name in registration.registry or _is_gymnasium_id(name):
        return None
    if ":" in name:
        return None if plugins.is_dotted(name) else f"{name!r} is not of the form 'package.module:factory'"
    nearest = difflib.get_close_matches(name, [*known, *registration.registry], n=1)
    remedy = (
        f"did you mean {nearest[0]!r}?"
        if nearest
        else "give an id like 'CartPole-v1' or 'package.module:factory'"
    )
    return f"{name!r} is no registered environment; {remedy}"


def _world(config: EnvironmentConfig, prepare: Prepare | None) -> Any:
    env = _bare(config)
    try:
        for index, wrapper in enumerate(config.wrappers):
            factory, place = plugins.import_attribute(wrapper.factory), f"environment.wrappers[{index}]"
            wrapped = call_factory(partial(factory, env), wrapper.kwargs, f"{place}.kwargs")
            env = _checked(wrapped, f"{place}.factory: {wrapper.factory!r}")
        return env if prepare is None else prepare(env)
    except BaseException as failure:
        close_after(env, failure)
        raise


def close_after(env: Any, failure: BaseException) -> None:
    """Close `env` because of `failure`; should that fail too, `failure` says so in a note."""
    try:
        env.close()
    except Exception as error:  # noqa: BLE001 - the first failure is the one to report
        failure.add_note(f"closing the environment failed too: {type(error).__name__}: {error}")


def _checked(env: Any, whose: str) -> Any:
    """`env`, if it can be driven."""
    if not all(callable(getattr(env, name, None)) for name in ("reset", "step", "close")):
        raise ConfigError(f"{whose} gave {env!r}, which is no environment: it cannot reset, step and close")
    return env


def _bare(config: EnvironmentConfig) -> Any:
    """The environment without wrappers of the document's."""
    place = "environment.kwargs"
    if config.id in plugins.catalogue(Group.ENVIRONMENTS):
        factory = plugins.load(plugins.find(Group.ENVIRONMENTS, config.id))
        return _checked(call_factory(factory, config.kwargs, place), f"environment.id: {config.id!r}")
    if ":" in config.id and not _is_gymnasium_id(config.id):
        factory = plugins.import_attribute(config.id)
        return _checked(call_factory(factory, config.kwargs, place), f"environment.id: {config.id!r}")
    try:
        return gymnasium.make(config.id, **config.kwargs)
    except SkyfallError:
        raise
    except Exception as error:
        raise ConfigError(
            f"environment: {config.id!r} cannot be built: {type(error).__name__}: {error}"
        ) from error


def _is_gymnasium_id(name: str) -> bool:
    """Whether `module:Name-v0` is meant, Gymnasium's way of importing before making."""
    module, colon, name = name.partition(":")
    named = re.fullmatch(r"([\w-]+/)?[\w.-]+-v\d+", name)
    return bool(colon and named) and all(part.isidentifier() for part in module.split("."))
