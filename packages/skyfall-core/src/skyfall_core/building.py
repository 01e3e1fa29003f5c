"""Building what a document names besides environment and algorithm: configuration provider and reward.

A provider is bound to the environment that can apply its configurations, and axes that nobody would
apply are refused before the first step.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from skyfall_core import plugins
from skyfall_core.config import RegimeConfig, RewardConfig
from skyfall_core.errors import ConfigError
from skyfall_core.factories import call_factory
from skyfall_core.plugins import Group
from skyfall_core.protocols import capability
from skyfall_core.rewards import RewardSpec, ScoredReward

__all__ = ["build_provider", "checked", "prepared", "reward_spec"]


def build_provider(config: RegimeConfig) -> Any:
    """The configuration provider that a document names."""
    factory = plugins.load(plugins.find(Group.REGIMES, config.provider))
    return call_factory(factory, config.params, "regime.params")


def prepared(reward: RewardSpec | None, provider: Any, env: Any) -> Any:
    """`env` under the document's reward, with the provider bound where it can be."""
    if reward is not None:
        if not isinstance(env, gymnasium.Env):
            problem = (
                f"{type(env).__name__} is not a single gymnasium.Env, which is what a reward spec scores"
            )
            raise ConfigError(f"reward: {problem}; leave the section out or use environment.worlds")
        env = ScoredReward(env, reward)
    bind_regime = capability(env, "bind_regime")
    if callable(bind_regime):
        bind_regime(provider)
        return env
    for regime in getattr(provider, "regimes", ()):
        if regime.axes:
            axes = ", ".join(map(repr, regime.axes))
            problem = f"{regime.regime_id!r} sets {axes}, and nothing in the environment applies it"
            remedy = "add the wrapper 'skyfall_core.envs:AttributeShift' or leave the axes out"
            raise ConfigError(f"regime: configuration {problem}; {remedy}")
    return env


def reward_spec(config: RewardConfig | None) -> RewardSpec | None:
    """The reward spec that a document names, if it names one."""
    if config is None:
        return None
    spec = call_factory(plugins.resolve(Group.REWARDS, config.spec), config.params, "reward.params")
    if not isinstance(spec, RewardSpec):
        raise ConfigError(f"reward.spec: {config.spec!r} gave a {type(spec).__name__}, not a RewardSpec")
    return spec


def checked(algorithm: Any) -> Any:
    """`algorithm`, if it has what a run cannot do without."""
    try:
        policy = getattr(algorithm, "policy", None)
    except Exception as error:
        problem = f"policy cannot be had: {type(error).__name__}: {error}"
        raise ConfigError(f"algorithm: {type(algorithm).__name__}.{problem}") from error
    for owner, name in ((algorithm, "update"), (policy, "act")):
        if not callable(getattr(owner, name, None)):
            whose = "algorithm" if owner is algorithm else "algorithm's policy"
            raise ConfigError(f"algorithm: {type(algorithm).__name__}: the {whose} {owner!r} has no {name}()")
    return algorithm
