"""Composable rewards: a weighted list of components, each reading the step's record.

A `RewardSpec` scores what an environment reports instead of what it pays. A component is per step, or
episode-scoped and then fires on an episode's final step only. What it reads is the step's record: the
environment's own (`info["trace"]`) over its `info` over the plain facts of the step. A component one
of whose fields is absent contributes nothing to that step; a spec none of whose fields exists in the
first step's record is an error, because it would score zero for ever.

Specs are plugins of `skyfall.rewards`, components of `skyfall.reward_components`. The shipped spec
`weighted` is written in the document itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import gymnasium

from skyfall_core import plugins
from skyfall_core.errors import ConfigError, RewardSpecError, suggestion
from skyfall_core.factories import call_factory
from skyfall_core.plugins import Group
from skyfall_core.protocols import record_from_info

__all__ = [
    "RewardComponent",
    "RewardSpec",
    "Scope",
    "ScoredReward",
    "Term",
    "field_value",
    "read_field",
    "register_component",
    "threshold",
    "weighted",
]

Record = Mapping[str, Any]
_ABSENT = object()


class Scope(str, Enum):
    """When a component fires: on every step, or on an episode's final step only."""

    STEP = "step"
    EPISODE = "episode"


@dataclass(frozen=True, slots=True)
class RewardComponent:
    """One thing a reward looks at.

    Attributes:
        fields: Dotted paths into the step's record that `score` needs.
        score: The component's value for one record, or None for no contribution. Called only when
            every field is there.
    """

    fields: tuple[str, ...]
    score: Callable[[Record], float | None]


@dataclass(frozen=True, slots=True)
class Term:
    """A component in a spec: its name there, its weight and its scope."""

    name: str
    component: RewardComponent
    weight: float = 1.0
    scope: Scope = Scope.STEP


class RewardSpec:
    """A weighted sum of components.

    Args:
        name: What the spec is called in messages.
        terms: At least one, with distinct names.

    Raises:
        ConfigError: If there is no term, or two share a name.
    """

    def __init__(self, name: str, terms: Sequence[Term]) -> None:
        names = [term.name for term in terms]
        if not names:
            raise ConfigError(f"reward spec {name!r} has no terms; a reward needs at least one")
        for index, term_name in enumerate(names):
            if term_name in names[:index]:
                raise ConfigError(f"reward spec {name!r}: two terms are named {term_name!r}; rename one")
        self.name = name
        self.terms = tuple(terms)

    @property
    def fields(self) -> list[str]:
        """Every field any term reads, each once."""
        return list(dict.fromkeys(field for term in self.terms for field in term.component.fields))

    def score(self, record: Record, *, final: bool) -> dict[str, float]:
        """Each term's weighted contribution to one step, without the terms that had none.

        Args:
            record: The step's record.
            final: Whether the step is its episode's last.

        Raises:
            RewardSpecError: If a component raises; the cause is chained.
        """
        contributions = {}
        for term in self.terms:
            if term.scope is Scope.EPISODE and not final:
                continue
            if any(read_field(record, field) is None for field in term.component.fields):
                continue
            try:
                value = term.component.score(record)
                if value is not None:
                    contributions[term.name] = term.weight * value
            except Exception as error:
                problem = f"term {term.name!r} cannot score what it read: {type(error).__name__}: {error}"
                raise RewardSpecError(f"reward spec {self.name!r}: {problem}") from error
        return contributions


class ScoredReward(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays what a `RewardSpec` makes of each step instead of the environment's own reward.

    `info["reward_components"]` holds the contributions and `info["environment_reward"]` what the
    environment would have paid.

    Args:
        env: The environment.
        spec: The spec that scores it.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], spec: RewardSpec) -> None:
        super().__init__(env)
        self._spec = spec
        self._checked = False

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step, and score the step's record.

        Raises:
            RewardSpecError: On the first step, if the record has none of the spec's fields; on any, if
                a component raises.
        """
        observation, paid, terminated, truncated, info = self.env.step(action)
        facts = {"reward": paid, "terminated": terminated, "truncated": truncated}
        record = {**facts, **info, **(record_from_info(info) or {})}
        if not self._checked:
            self._check(record)
        components = self._spec.score(record, final=bool(terminated or truncated))
        info = {**info, "reward_components": components, "environment_reward": paid}
        return observation, sum(components.values()), terminated, truncated, info

    def _check(self, record: Record) -> None:
        fields = self._spec.fields
        if fields and all(read_field(record, field, _ABSENT) is _ABSENT for field in fields):
            wanted = ", ".join(map(repr, fields))
            raise RewardSpecError(
                f"reward spec {self._spec.name!r} reads {wanted}, and the first step's record of "
                f"{type(self.unwrapped).__name__} has none of them; {suggestion(fields[0], _paths(record))}"
            )
        self._checked = True


def read_field(record: Record, dotted: str, default: Any = None) -> Any:
    """The value at a dotted path of a record, or `default` when it is not there."""
    value: Any = record
    for key in dotted.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def register_component(name: str, target: str, *, replace: bool = False) -> None:
    """Register a component factory (`package.module:attribute`) in this process."""
    plugins.register(Group.REWARD_COMPONENTS, name, target, replace=replace)


def field_value(field: str, scale: float = 1.0, offset: float = 0.0) -> RewardComponent:
    """A field of the record as a number: `scale` · (value − `offset`)."""
    return RewardComponent((field,), lambda record: scale * (float(read_field(record, field)) - offset))


def threshold(field: str, at_least: float) -> RewardComponent:
    """1 where a field of the record has reached `at_least`, else 0."""
    return RewardComponent((field,), lambda record: float(read_field(record, field) >= at_least))


def weighted(terms: Sequence[Mapping[str, Any]], name: str = "weighted") -> RewardSpec:
    """A spec written out in a document.

    Args:
        terms: Mappings with `component` (a registered name or `package.module:factory`), and
            optionally `params`, `weight` (1.0), `scope` (`step` or `episode`) and `name` (the field
            or the component's name).
        name: What the spec is called in messages.

    Raises:
        ConfigError: Naming the term and the key at fault.
    """
    if isinstance(terms, str | Mapping) or not isinstance(terms, Sequence):
        raise ConfigError.at("reward.params.terms", f"{terms!r} is no list of terms")
    return RewardSpec(
        name, [_term(f"reward.params.terms[{index}]", given) for index, given in enumerate(terms)]
    )


TERM_KEYS = ("component", "params", "weight", "scope", "name")


def _term(place: str, given: Any) -> Term:
    if not isinstance(given, Mapping) or not isinstance(given.get("component"), str):
        raise ConfigError.at(place, f"{given!r} is no mapping with a component")
    for key in given:
        if key not in TERM_KEYS:
            raise ConfigError.at(f"{place}.{key}", f"unknown key; {suggestion(str(key), TERM_KEYS)}")
    weight, scope, params = given.get("weight", 1.0), given.get("scope", "step"), given.get("params", {})
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
        raise ConfigError.at(f"{place}.weight", f"{weight!r} is no finite number")
    if scope not in list(Scope):
        raise ConfigError.at(
            f"{place}.scope", f"{scope!r}: {suggestion(str(scope), [known.value for known in Scope])}"
        )
    if not isinstance(params, Mapping):
        raise ConfigError.at(f"{place}.params", f"{params!r} is no mapping")
    component = _component(place, given["component"], params)
    name = given.get("name") or params.get("field") or given["component"]
    return Term(str(name), component, float(weight), Scope(scope))


def _component(place: str, name: str, params: Mapping[str, Any]) -> RewardComponent:
    factory = plugins.resolve(Group.REWARD_COMPONENTS, name)
    component = call_factory(factory, params, f"{place}.params")
    if not isinstance(component, RewardComponent):
        raise ConfigError.at(
            f"{place}.component", f"{name!r} gave a {type(component).__name__}, not a RewardComponent"
        )
    return component


def _paths(record: Record, prefix: str = "") -> list[str]:
    """Dotted paths of everything in a record that is no mapping."""
    paths: list[str] = []
    for key, value in record.items():
        inner = isinstance(value, Mapping)
        paths.extend(_paths(value, f"{prefix}{key}.") if inner else [f"{prefix}{key}"])
    return paths
