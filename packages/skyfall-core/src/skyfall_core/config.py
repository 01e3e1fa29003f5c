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

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, model_validator

from skyfall_core import plugins
from skyfall_core.documents import (
    Document,
    overridden,
    read_document,
    refuse_other_kind,
    with_leaves,
    yaml_text,
)
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
    "TrackerConfig",
    "WrapperConfig",
    "load_config",
    "parse_config",
]

SEED = "SEED"
"""The string that stands for the run's seed anywhere in a document."""


def known_name(group: Group) -> Callable[[str], str]:
    """A check that a plugin of this name is known."""

    def check(name: str) -> str:
        try:
            plugins.find(group, name)
        except PluginError as error:
            remedy = f"; give {name!r} a name in the entry-point group '{group.value}'" if ":" in name else ""
            raise ValueError(f"{error}{remedy}") from None
        return name

    return check


def _named_or_dotted(group: Group | None) -> Callable[[str], str]:
    """A check for the form `package.module:attribute`, or for a known plugin name."""

    def check(name: str) -> str:
        if ":" not in name and group is not None:
            return known_name(group)(name)
        if not plugins.is_dotted(name):
            raise ValueError(f"{name!r} is not of the form 'package.module:factory'")
        return name

    return check


Dotted = Annotated[str, AfterValidator(_named_or_dotted(None))]
Seed = Annotated[int, Field(ge=0, lt=2**63)]  # what every part and the trace can hold
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
    vector: Annotated[str, AfterValidator(known_name(Group.VECTORS))] = Field(
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

    name: Annotated[str, AfterValidator(known_name(Group.ALGORITHMS))] = Field(
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

    provider: Annotated[str, AfterValidator(known_name(Group.REGIMES))] = Field(
        default="constant", description="A plugin of `skyfall.regimes`."
    )
    params: Keywords = Field(default_factory=dict)


class RewardConfig(Section):
    """Which reward specification scores the environment's record. There is no default."""

    spec: Annotated[str, AfterValidator(_named_or_dotted(Group.REWARDS))] = Field(
        description="A plugin of `skyfall.rewards`, or `package.module:factory`."
    )
    params: Keywords = Field(default_factory=dict)


class TrackerConfig(Section):
    """Something that follows the run's window metrics and shifts; it can never stop the run."""

    name: Annotated[str, AfterValidator(_named_or_dotted(Group.TRACKERS))] = Field(
        description="A plugin of `skyfall.trackers`, or `package.module:factory`."
    )
    params: Keywords = Field(default_factory=dict)


class RunConfig(Section):
    """Identity and outputs; the identity goes into every row of the trace."""

    name: Annotated[str, AfterValidator(file_name)] | None = Field(
        default=None, description="Run id and directory name; made from algorithm and seed when missing."
    )
    seed: Seed | None = Field(default=None, description="Seeds the environment, and whatever says `SEED`.")
    task: str | None = Field(default=None, description="What comparisons across algorithms group on.")
    algorithm_id: str | None = Field(
        default=None, description="The family a run belongs to; the algorithm's name when missing."
    )
    output_dir: Path | None = Field(
        default=None, strict=False, description="Where run directories go; nothing is recorded without it."
    )
    reward_upper_bounds: dict[str, Annotated[float, Field(allow_inf_nan=False)]] | None = Field(
        default=None, description="Best reachable reward per step, by configuration."
    )

    checkpoint_every: int = Field(
        default=10_000,
        ge=0,
        description="Steps between two checkpoints, rounded up to a window's end; 0 for none.",
    )
    checkpoints_kept: int = Field(default=2, ge=1, description="How many checkpoints stay, the newest.")

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
    trackers: list[TrackerConfig] = Field(
        default_factory=list, description="Where window metrics go besides the run's directory."
    )

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
        """The resolved document; reading it again gives an equal configuration.

        Raises:
            ConfigError: If a keyword holds an object that no document can hold.
        """
        return yaml_text(self.model_dump(exclude_none=True))


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
    refuse_other_kind(document, "run")
    faults = [*_faults_of_seed(document), *_faults_of_empty_sections(document)]
    content = located(document, _seeded(document))
    try:
        config = ExperimentConfig.model_validate(content)
    except ValidationError as error:
        faults.append(explain(error, document, ExperimentConfig))
    faults += [*_faults_of_environment(document, content), *_faults_of_schedule(document, content)]
    if faults:
        raise ConfigError("\n".join(faults))
    return config


def located(document: Document, content: Any, under: str = "") -> Any:
    """`content` with its relative paths made absolute.

    Args:
        document: Where the content came from.
        content: An experiment, or a part of one from its root.
        under: Dotted path in `document` at which `content` stands.
    """

    def leaf(dotted: str, value: Any) -> Any:
        if not isinstance(value, str) or not _is_path(dotted, value):
            return value
        return document.absolute(f"{under}.{dotted}" if under else dotted, value)

    return with_leaves(content, leaf)


def _is_path(dotted: str, value: str) -> bool:
    free_form = any(part in {"kwargs", "params"} for part in dotted.split("."))
    return dotted in {"run.output_dir", "regime.params.schedule"} or (
        free_form and value.startswith(("./", "../"))
    )


def _seed_of(document: Document) -> Any:
    return _section(document.content, "run").get("seed")


def _seeded(document: Document) -> Any:
    """The document's content with every `SEED` replaced by the run's seed."""
    seed = _seed_of(document)
    return with_leaves(document.content, lambda _, value: seed if value == SEED else value)


def _faults_of_seed(document: Document) -> list[str]:
    """The places that say `SEED` where the run has none."""
    seed, faults = _seed_of(document), []

    def leaf(dotted: str, value: Any) -> None:
        if value == SEED:
            problem = f"{SEED!r} stands for run.seed, which is {seed!r}; set an integer"
            faults.append(f"{document.place(dotted)}: {problem}")

    if isinstance(seed, bool) or not isinstance(seed, int):
        with_leaves(document.content, leaf)
    return faults


def _faults_of_empty_sections(document: Document) -> Iterator[str]:
    """Sections that may be left out but were named without content, which would choose for the author."""
    for above, name in (("", "reward"), ("algorithm", "policy")):
        section = _section(document.content, above) if above else document.content
        if name in section and section[name] is None:
            place = document.place(f"{above}.{name}" if above else name)
            yield f"{place}: the section is empty; fill it in or leave it out"


def _faults_of_environment(document: Document, content: Mapping[str, Any]) -> Iterator[str]:
    from skyfall_core.environments import environment_id_problem  # noqa: PLC0415 - Gymnasium only for a document

    name = _section(content, "environment").get("id")
    problem = environment_id_problem(name) if isinstance(name, str) and name else None
    if problem is not None:
        yield f"{document.place('environment.id')}: {problem}"


def _faults_of_schedule(document: Document, content: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with an inline or referenced schedule, found by building it once."""
    regime = _section(content, "regime")
    if regime.get("provider") != "scheduled" or not isinstance(regime.get("params", {}), Mapping):
        return
    from skyfall_core.regime import ScheduledRegime  # noqa: PLC0415 - NumPy only where there is a schedule

    place = "regime.params.schedule"
    schedule = _section(regime, "params").get("schedule")
    if schedule is None:
        yield f"{document.place(place)}: missing; give a mapping with 'regimes' or the path of a YAML file"
        return
    try:
        ScheduledRegime(schedule)
    except ScheduleError as error:
        inside = f"{place}.{error.where}" if error.where and isinstance(schedule, Mapping) else place
        yield f"{document.place(inside)}: {error.problem if inside != place else error}"
    except ConfigError as error:
        yield f"{document.place(place)}: {error}"


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section as far as it is one, for checks that go on where others have found faults."""
    section = content.get(name)
    return section if isinstance(section, Mapping) else {}
