"""Environment wrappers that make any registered environment non-stationary."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from skyfall_core.errors import ConfigError, suggestion
from skyfall_core.schedule import Regime

__all__ = ["AttributeShift"]


DERIVED: Mapping[type, Mapping[str, Callable[[Any], float]]] = {
    CartPoleEnv: {
        "total_mass": lambda env: env.masspole + env.masscart,
        "polemass_length": lambda env: env.masspole * env.length,
    }
}
"""Environments that compute quantities from their attributes once, when they are built, and how."""


class AttributeShift(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Applies a configuration's axes to the attributes of an environment.

    An axis is the name of an attribute (`gravity`, `length`, …) of the environment or of a wrapper
    inside this one. Before each step the configuration of that step is put in force, and the step's
    `info["regime"]` reports it. An axis that a configuration does not set has the value it had when
    the provider was bound. Steps are counted over the wrapper's whole life, through resets.

    Args:
        env: The environment to shift. Without a bound provider it is left as it is.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._provider: Any = None
        self._owners: dict[str, Any] = {}
        self._original: dict[str, Any] = {}
        self._active: Regime | None = None
        self._stepped_under: str | None = None
        self._steps = 0

    def bind_regime(self, provider: Any) -> None:
        """Take the provider whose configurations are applied from the next step on.

        Args:
            provider: A regime provider with `regime_at(step)`; with `regimes`, everything that may
                occur is checked now.

        Raises:
            ConfigError: If the provider tells no axes, or an axis is no attribute, a method, read-only,
                derived from others or of another type; the nearest attribute is named.
        """
        if not callable(getattr(provider, "regime_at", None)):
            raise ConfigError(
                f"regime.provider: {type(provider).__name__} has no regime_at, so it has no axes to apply"
            )
        for regime in getattr(provider, "regimes", None) or (provider.regime_at(self._steps),):
            self._check(regime)
        self._provider, self._active = provider, None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset under the configuration of the step to come."""
        self._put_in_force()
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step under the configuration of this step, and report it."""
        self._put_in_force()
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._active is not None:
            label, previous = self._active.regime_id, self._stepped_under
            boundary = previous is not None and label != previous
            info = {**info, "regime": {"id": label, "boundary": boundary, "origin": self._active.origin}}
            self._stepped_under = label
        self._steps += 1
        return observation, reward, terminated, truncated, info

    def save_state(self) -> dict[str, Any]:
        """Steps counted, the label of the step before, and the values that axes return to."""
        return {"steps": self._steps, "under": self._stepped_under, "original": dict(self._original)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Count on from there; the configuration is put in force before the next step."""
        self._steps, self._stepped_under = int(state["steps"]), state["under"]
        for name, value in state["original"].items():
            self._owners[name] = self._owner(name, Regime("as it was"))
            self._original[name] = value
        self._active = None

    def _put_in_force(self) -> None:
        if self._provider is None:
            return
        regime = self._provider.regime_at(self._steps)
        if regime is self._active:
            return
        self._check(regime)
        for name, owner in self._owners.items():
            setattr(owner, name, regime.get(name, self._original[name]))
        for name, derive in _derived(self.unwrapped).items():
            setattr(self.unwrapped, name, derive(self.unwrapped))
        self._active = regime

    def _check(self, regime: Regime) -> None:
        for name, value in regime.axes.items():
            if name not in self._owners:
                owner = self._owner(name, regime)
                self._owners[name], self._original[name] = owner, getattr(owner, name)
            original = self._original[name]
            if not _same_kind(original, value):
                problem = f"{value!r} is a {type(value).__name__}; {name!r} holds {original!r}"
                raise ConfigError(f"regime {regime.regime_id!r}: axes.{name}: {problem}")

    def _owner(self, name: str, regime: Regime) -> Any:
        """The outermost object inside this wrapper that has the attribute itself, forwarding nothing."""
        place, env = f"regime {regime.regime_id!r}: axes.{name}", self.env
        while (declared := inspect.getattr_static(env, name, _ABSENT)) is _ABSENT:
            if not isinstance(env, gymnasium.Wrapper):
                problem = (
                    f"{type(env).__name__} has no attribute {name!r}; {suggestion(name, _plain_names(env))}"
                )
                raise ConfigError(f"{place}: {problem}")
            env = env.env
        owner = f"{type(env).__name__}.{name}"
        if isinstance(declared, property) and declared.fset is None:
            raise ConfigError(f"{place}: {owner} is read-only")
        if callable(getattr(env, name)):
            raise ConfigError(f"{place}: {owner} is a method; {suggestion(name, _plain_names(env))}")
        if env is self.unwrapped and name in _derived(env):
            raise ConfigError(f"{place}: {owner} follows from other attributes; set those")
        return env


_ABSENT = object()


def _derived(env: Any) -> Mapping[str, Callable[[Any], float]]:
    """What `env` derives from its other attributes."""
    return next((derived for kind, derived in DERIVED.items() if isinstance(env, kind)), {})


def _plain_names(env: Any) -> list[str]:
    """Public attributes of `env` that hold a number, a string or a flag."""
    names = (name for name in dir(env) if not name.startswith("_"))
    return [name for name in names if isinstance(inspect.getattr_static(env, name, None), int | float | str)]


def _same_kind(original: Any, value: Any) -> bool:
    """Whether `value` can stand where `original` stood; any number may replace any other."""
    if isinstance(original, bool) or isinstance(value, bool):
        return isinstance(original, bool) and isinstance(value, bool)
    if isinstance(original, Real):  # NumPy's numbers are
        return isinstance(value, Real)
    return isinstance(value, type(original))
