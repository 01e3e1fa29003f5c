"""Building the policy and the algorithm that a document names, for whatever spaces there are.

A run takes the spaces from its environment, an export bundle from its own record of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gymnasium import Space
from gymnasium.vector import VectorEnv

from skyfall_core import plugins, registry
from skyfall_core.config import AlgorithmConfig, PolicyConfig
from skyfall_core.errors import ConfigError
from skyfall_core.factories import call_factory, takes_keyword
from skyfall_core.plugins import Group

__all__ = ["Spaces", "build_algorithm", "build_policy", "spaces_of"]


class Spaces(NamedTuple):
    """What a policy is given and what it may do; of one world where there are several.

    Attributes:
        observation_space: None where the environment has none.
        action_space: None where the environment has none.
    """

    observation_space: Space[Any] | None
    action_space: Space[Any] | None


def spaces_of(env: Any) -> Spaces:
    """The spaces of `env`, or of a single world of it."""
    single = "single_" if isinstance(env, VectorEnv) else ""
    return Spaces(
        getattr(env, f"{single}observation_space", None), getattr(env, f"{single}action_space", None)
    )


def build_policy(config: PolicyConfig, spaces: Spaces) -> Any:
    """The policy that `config` describes.

    Raises:
        InputError: If it cannot be found or built.
    """
    factory = plugins.resolve(Group.POLICIES, config.factory)
    return call_factory(factory, config.kwargs, "algorithm.policy.kwargs", **spaces._asdict())


def build_algorithm(config: AlgorithmConfig, spaces: Spaces) -> Any:
    """The algorithm that `config` describes, with its policy where the document names one.

    Raises:
        InputError: If one of them cannot be found or built.
    """
    factory, kwargs = registry.resolve(config.name), dict(config.kwargs)
    if config.policy is not None:
        if not takes_keyword(factory, "policy"):
            raise ConfigError(f"algorithm.policy: {config.name!r} takes no policy; leave it out")
        kwargs["policy"] = build_policy(config.policy, spaces)
    return call_factory(factory, kwargs, "algorithm.kwargs", **spaces._asdict())
