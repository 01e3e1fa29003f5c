"""Algorithms by name, so that choosing one is a line of configuration.

A name leads to `module:attribute` and nothing is imported until the class is asked for: listing,
checking a name and validating a document all work where no algorithm could be built. Algorithms
arrive as entry points of the group `skyfall.algorithms`; `register` adds one in this process.
"""

from __future__ import annotations

from typing import Any

from skyfall_core import plugins
from skyfall_core.plugins import Group

__all__ = ["available", "create", "is_registered", "register", "resolve"]


def register(name: str, target: str, *, replace: bool = False) -> None:
    """Register an algorithm factory in this process.

    Args:
        name: The name configurations will use.
        target: `package.module:attribute` of a class or factory; imported on first use.
        replace: Whether a taken name may be taken over.

    Raises:
        PluginConflictError: If the name is taken and `replace` is not given.
    """
    plugins.register(Group.ALGORITHMS, name, target, replace=replace)


def available() -> list[str]:
    """Every known algorithm name, in alphabetical order. Imports nothing."""
    return list(plugins.catalogue(Group.ALGORITHMS))


def is_registered(name: str) -> bool:
    """Whether an algorithm of this name is known. Imports nothing."""
    return name in plugins.catalogue(Group.ALGORITHMS)


def resolve(name: str) -> Any:
    """The class or factory behind an algorithm name, imported now.

    Raises:
        UnknownPluginError: If the name is unknown.
        MissingExtraError: If its package is not installed.
        PluginLoadError: If it fails to import.
    """
    return plugins.load(plugins.find(Group.ALGORITHMS, name))


def create(name: str, policy: Any = None, **kwargs: Any) -> Any:
    """Build the algorithm `name`.

    Args:
        name: A registered algorithm.
        policy: The policy it trains; left out of the call when None.
        **kwargs: The algorithm's own parameters.
    """
    return resolve(name)(**({} if policy is None else {"policy": policy}), **kwargs)
