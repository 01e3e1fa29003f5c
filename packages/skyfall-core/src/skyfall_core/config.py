"""One document that fully specifies a run.

Reading a document imports nothing that it names: plugin names are looked up and dotted factories
checked for their form, so a document that selects a GPU backend validates on any laptop. Every
section refuses keys it does not declare; only `kwargs` and `params` are free-form. A reward is never
chosen for anybody: without `reward` the environment scores itself, and naming the section without a
spec is an error.

`load_config` reads a file. In it, a relative path is relative to the document, `--set` values are
relative to the working directory, and the string `SEED` stands for `run.seed`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field, ValidationError, model_validator

from skyfall_core import plugins
from skyfall_core.documents import Document, overridden, read_document
from skyfall_core.errors import ConfigError, PluginError, ScheduleError
from skyfall_core.plugins import Group
from skyfall_core.validation import Section, explain, file_name

__all__ = [
    "SEED",
    "AlgorithmConfig",
    "EnvironmentConfig",
    "ExperimentConfig",
    "PolicyConfig",
    "RegimeConfig",
    "RewardConfig",
    "RolloutConfig",
    "RunConfig",
    "WrapperConfig",
    "load_config",
    "parse_config",
]

SEED = "SEED"
"""The string that stands for the run's seed anywhere in a document."""


def _named(group: Group) -> Callable[[str], str]:
    """A check that a plugin of this name is known."""

    def check(name: str) -> str:
        try:
            plugins.find(group, name)
        except PluginError as error:
            raise ValueError(str(error)) from None
        return name

    return check


def _named_or_dotted(group: Group | None) -> Callable[[str], str]:
    """A check for the form `package.module:attribute`, or for a known plugin name."""

    def check(name: str) -> str:
        if ":" not in name and group is not None:
            return _named(group)(name)
        module, _, attribute = name.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
            raise ValueError(f"{name!r} is not of the form 'package.module:factory'")
        return name

    return check


Dotted = Annotated[str, AfterValidator(_named_or_dotted(None))]
Keywords = Annotated[dict[str, Any], Field(description="Passed on untouched.")]


class WrapperConfig(Section):
    """A wrapper put around the environment, innermost first."""

    factory: Dotted = Field(description="`package.module:wrapper`, called with the environment.")
    kwargs: Keywords = Field(default_factory=dict)


class EnvironmentConfig(Section):
    """Which environment to train against."""

    id: str = Field(
        description="A Gymnasium id, a plugin of `skyfall.environments`, or `package.module:factory`.",
        min_length=1,
    )
    kwargs: Keywords = Field(default_factory=dict)
    wrappers: list[WrapperConfig] = Field(default_factory=list, description="Innermost first.")
    worlds: int = Field(default=1, ge=1, description="Independent worlds driven at once.")
    vector: Annotated[str, AfterValidator(_named(Group.VECTORS))] = Field(
        default="persistent", description="Plugin of `skyfall.vectors` that drives several worlds."
    )

    def build(self, prepare: Callable[[Any], Any] | None = None) -> Any:
        """Construct the environment; nothing it needs is imported before.

        Args:
            prepare: Applied to each single world after its wrappers.

        Returns:
            A `gymnasium.Env`, or a `gymnasium.vector.VectorEnv` for several worlds.

        Raises:
            ConfigError: If the id is unknown or construction fails.
        """
        from skyfall_core.environments import build_environment  # noqa: PLC0415 - Gymnasium only when built

        return build_environment(self, prepare)


class PolicyConfig(Section):
    """Which policy the algorithm trains."""

    factory: Annotated[str, AfterValidator(_named_or_dotted(Group.POLICIES))] = Field(
        description="A plugin of `skyfall.policies`, or `package.module:factory`."
    )
    kwargs: Keywords = Field(default_factory=dict)


class AlgorithmConfig(Section):
    """Which algorithm learns, by registered name; the name is checked, nothing is imported."""

    name: Annotated[str, AfterValidator(_named(Group.ALGORITHMS))] = Field(
        description="A plugin of `skyfall.algorithms`."
    )
    kwargs: Keywords = Field(default_factory=dict)
    policy: PolicyConfig | None = Field(
        default=None, description="For algorithms that train a policy given to them."
    )


class RolloutConfig(Section):
    """How much experience an update sees, and how much the run collects. Steps are each world's own."""

    window_steps: int = Field(
        default=256, ge=1, description="Steps in one window; no episode ends at its edge."
    )
    total_steps: int = Field(ge=1, description="Steps in the whole run.")
    auto_reset: bool = Field(
        default=False,
        description="Reset when an episode ends; off, because a reset destroys a persistent world.",
    )
    record_observations: bool = Field(default=False, description="Write observations to the trace.")


class RegimeConfig(Section):
    """Which provider decides the active configuration; `constant` is a stationary control."""

    provider: Annotated[str, AfterValidator(_named(Group.REGIMES))] = Field(
        default="constant", description="A plugin of `skyfall.regimes`."
    )
    params: Keywords = Field(default_factory=dict)


class RewardConfig(Section):
    """Which reward specification scores the environment's record. There is no default."""

    spec: Annotated[str, AfterValidator(_named_or_dotted(Group.REWARDS))] = Field(
        description="A plugin of `skyfall.rewards`, or `package.module:factory`."
    )
    params: Keywords = Field(default_factory=dict)


class RunConfig(Section):
    """Identity and outputs; the identity goes into every row of the trace."""

    name: Annotated[str, AfterValidator(file_name)] | None = Field(
        default=None, description="Run id and directory name; made from algorithm and seed when missing."
    )
    seed: int | None = Field(
        default=None, ge=0, description="Seeds the environment, and whatever says `SEED`."
    )
    task: str | None = Field(default=None, description="What comparisons across algorithms group on.")
    algorithm_id: str | None = Field(
        default=None, description="The family a run belongs to; the algorithm's name when missing."
    )
    output_dir: Path | None = Field(
        default=None, strict=False, description="Where run directories go; nothing is recorded without it."
    )
    reward_upper_bounds: dict[str, float] | None = Field(
        default=None, description="Best reachable reward per step, by configuration."
    )

    def meta(self) -> dict[str, Any]:
        """The metadata of every trace row, without what was not set."""
        items = {
            "run_id": self.name,
            "algorithm_id": self.algorithm_id,
            "task": self.task,
            "seed": self.seed,
            "reward_upper_bounds": self.reward_upper_bounds,
        }
        return {key: value for key, value in items.items() if value is not None}


class ExperimentConfig(Section):
    """A complete run: an environment, an algorithm, and how much to collect."""

    environment: EnvironmentConfig
    algorithm: AlgorithmConfig
    rollout: RolloutConfig
    regime: RegimeConfig = Field(default=RegimeConfig())
    reward: RewardConfig | None = None
    run: RunConfig = Field(default=RunConfig())

    @model_validator(mode="before")
    @classmethod
    def _fill_identity(cls, data: Any) -> Any:
        """Fill the family and the run's name in from what the run selected."""
        if not isinstance(data, Mapping):
            return data
        algorithm, run = data.get("algorithm"), data.get("run", {})
        selected = (
            algorithm.get("name") if isinstance(algorithm, Mapping) else getattr(algorithm, "name", None)
        )
        given = run.model_dump() if isinstance(run, RunConfig) else run
        if not isinstance(given, Mapping) or not isinstance(selected, str):
            return data
        given = dict(given)
        if given.get("algorithm_id") is None:
            given["algorithm_id"] = selected
        if given.get("name") is None:
            seed = given.get("seed")
            given["name"] = given["algorithm_id"] if seed is None else f"{given['algorithm_id']}-seed{seed}"
        return {**data, "run": given}

    def to_yaml(self) -> str:
        """The resolved document; reading it again gives an equal configuration."""
        document = self.model_dump(mode="json", exclude_none=True)
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def load_config(path: str | Path, overrides: Iterable[str] = ()) -> ExperimentConfig:
    """Read an experiment document.

    Args:
        path: The YAML file.
        overrides: `dotted.path=value` each, replacing single values before anything is checked.

    Raises:
        ConfigError: Naming file, dotted path, value and the nearest valid key, for every fault at once.
    """
    return parse_config(overridden(read_document(path), overrides))


def parse_config(document: Document) -> ExperimentConfig:
    """The experiment a document describes.

    Raises:
        ConfigError: As `load_config`.
    """
    for section, content in document.content.items():
        if content is None:
            raise ConfigError(
                f"{document.place(str(section))}: the section is empty; fill it in or leave it out"
            )
    content = _seeded(document, document.content, "")
    content = _located(document, content)
    try:
        config = ExperimentConfig.model_validate(content)
    except ValidationError as error:
        raise ConfigError(explain(error, document, ExperimentConfig)) from None
    _check_environment(document, config.environment)
    _check_schedule(document, config.regime)
    return config


def _seeded(document: Document, value: Any, dotted: str) -> Any:
    """`value` with every `SEED` replaced by the run's seed."""
    if isinstance(value, Mapping):
        return {
            key: _seeded(document, item, f"{dotted}.{key}" if dotted else str(key))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_seeded(document, item, f"{dotted}[{index}]") for index, item in enumerate(value)]
    if value != SEED:
        return value
    run = document.content.get("run")
    seed = run.get("seed") if isinstance(run, Mapping) else None
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ConfigError(
            f"{document.place(dotted)}: {SEED!r} stands for run.seed, which is {seed!r}; set an integer"
        )
    return seed


def _located(document: Document, value: Any, dotted: str = "") -> Any:
    """`value` with the document's relative paths made absolute."""
    if isinstance(value, Mapping):
        return {
            key: _located(document, item, f"{dotted}.{key}" if dotted else str(key))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_located(document, item, f"{dotted}[{index}]") for index, item in enumerate(value)]
    is_path = dotted in {"run.output_dir", "regime.params.schedule"} or (
        isinstance(value, str) and value.startswith(("./", "../")) and _free_form(dotted)
    )
    if not isinstance(value, str) or not is_path or document.path is None:
        return value
    from_command_line = any(dotted == above or dotted.startswith(f"{above}.") for above in document.overrides)
    base = Path.cwd() if from_command_line else document.path.parent
    return os.path.normpath(Path(base, Path(value).expanduser()).absolute())


def _free_form(dotted: str) -> bool:
    return any(part in {"kwargs", "params"} for part in dotted.split("."))


def _check_environment(document: Document, environment: EnvironmentConfig) -> None:
    from skyfall_core.environments import environment_id_problem  # noqa: PLC0415 - Gymnasium only for a document

    problem = environment_id_problem(environment.id)
    if problem is not None:
        raise ConfigError(f"{document.place('environment.id')}: {problem}")


def _check_schedule(document: Document, regime: RegimeConfig) -> None:
    """Build an inline or referenced schedule once, so that its faults are told with the others'."""
    if regime.provider != "scheduled" or "schedule" not in regime.params:
        return
    from skyfall_core.regime import ScheduledRegime  # noqa: PLC0415 - NumPy only where there is a schedule

    inline = isinstance(regime.params["schedule"], Mapping)
    try:
        ScheduledRegime(regime.params["schedule"])
    except ScheduleError as error:
        if not inline:
            raise
        place = ".".join(part for part in ("regime.params.schedule", error.where) if part)
        raise ConfigError(f"{document.place(place)}: {error.problem}") from None
