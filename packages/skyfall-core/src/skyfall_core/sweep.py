"""A matrix of experiments, written once.

A sweep names what every cell shares, what varies, and where the cells write. Expanding it gives
ordinary `ExperimentConfig`s and runs nothing, so a matrix worth many hours can be looked at before it
starts. Every cell carries its family, task and seed in each row of its trace.

`run.seed` seeds the environment and nothing else. Writing `SEED` where another seed belongs (a
policy's, a replay buffer's) fills the cell's seed in; nothing is guessed from signatures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationError

from skyfall_core.config import SEED, ExperimentConfig, Seed, located, parse_config
from skyfall_core.documents import Document, overridden, read_document, refuse_other_kind, with_leaves
from skyfall_core.errors import ConfigError
from skyfall_core.executors.settings import ExecutorConfig
from skyfall_core.validation import Section, explain, file_name

__all__ = [
    "SEED",
    "Sweep",
    "SweepConfig",
    "expand_sweep",
    "load_sweep",
    "merge",
    "read_sweep",
]

Overrides = dict[str, Any]
Name = Annotated[str, AfterValidator(file_name)]


P = TypeVar("P")
T = TypeVar("T", bound=Sequence[Hashable])


def _distinct(values: T) -> T:
    value, count = max(Counter(values).items(), key=lambda item: item[1], default=(None, 0))
    if count > 1:
        raise ValueError(f"{value!r} stands {count} times; each cell needs its own")
    return values


def _form(tasks: Any) -> str | None:
    """Which form of `tasks` a value has, so that its faults are told for that form alone."""
    if isinstance(tasks, list):
        return "[list]"
    return "[mapping]" if isinstance(tasks, Mapping) else None


Tasks = Annotated[
    Annotated[list[Name], AfterValidator(_distinct), Tag("[list]")]
    | Annotated[dict[Name, Overrides | None], Tag("[mapping]")],
    Discriminator(
        _form,
        custom_error_type="tasks_type",
        custom_error_message="Input should be a list of names or a mapping",
    ),
]


class SweepConfig(Section):
    """What every cell shares, and what varies across them."""

    base: Overrides = Field(description="An experiment document that every cell starts from.")
    families: dict[Name, Overrides | None] = Field(
        min_length=1, description="Arm to the overrides that make it; the arm's name becomes `algorithm_id`."
    )
    tasks: Tasks = Field(
        default_factory=list, description="Task names, or task to its overrides; none gives one unnamed task."
    )
    seeds: Annotated[list[Seed], AfterValidator(_distinct)] = Field(
        min_length=1, description="One cell each, for every family and task."
    )
    output_dir: Path = Field(strict=False, description="Where the cells' directories go.")
    executor: ExecutorConfig = Field(default=ExecutorConfig())

    @property
    def overrides_by_task(self) -> Mapping[str | None, Overrides]:
        """Each task's overrides; a single None where no task is named."""
        if isinstance(self.tasks, list):
            return {task: {} for task in self.tasks} or {None: {}}
        return {task: overrides or {} for task, overrides in self.tasks.items()} or {None: {}}


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """`overlay` over `base`, one level into each section.

    A section in both keeps the keys that `overlay` does not give; below that nothing is merged, so a
    family can replace `kwargs` as a whole. A section that `overlay` sets to None is taken out, which
    is how an arm says that it has no `reward`.
    """
    merged = dict(base)
    for section, content in overlay.items():
        below = merged.get(section)
        if content is None:
            merged.pop(section, None)
        elif isinstance(below, Mapping) and isinstance(content, Mapping):
            merged[section] = {**below, **content}
        else:
            merged[section] = content
    return merged


@dataclass(frozen=True, slots=True)
class CellGroup:
    """The cells of one family and task, which differ in their seed alone.

    Attributes:
        family: The arm.
        task: The task, or None where the sweep names none.
        overrides: What family and task lay over the base, the task's word last.
        content: The experiment document they share, `SEED` still in it and without its identity.
    """

    family: str
    task: str | None
    overrides: Overrides
    content: Mapping[str, Any]

    def name_of(self, seed: int) -> str:
        """The cell's name, and that of its directory."""
        return "-".join(part for part in (self.family, self.task, f"seed{seed}") if part)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep read from a document.

    Attributes:
        config: The matrix.
        cells: Its experiments in order: family by family, in it task by task, in it seed by seed.
    """

    config: SweepConfig
    cells: list[ExperimentConfig]

    @property
    def groups(self) -> Iterator[tuple[CellGroup, list[ExperimentConfig]]]:
        """The cells by family and task, in order."""
        count = len(self.config.seeds)
        for index, group in enumerate(_groups(self.config)):
            yield group, self.cells[index * count : (index + 1) * count]


def load_sweep(path: str | Path, overrides: Iterable[str] = ()) -> list[ExperimentConfig]:
    """Read a sweep document and expand it.

    Args:
        path: The YAML file.
        overrides: `dotted.path=value` each, applied to the sweep document.

    Raises:
        ConfigError: Naming file, dotted path, value and remedy, in the sweep or in a cell.
    """
    return read_sweep(path, overrides).cells


def read_sweep(path: str | Path, overrides: Iterable[str] = ()) -> Sweep:
    """Read a sweep document, with its cells and its executor; arguments and errors as `load_sweep`."""
    return parse_sweep(overridden(read_document(path), overrides))


def parse_sweep(document: Document) -> Sweep:
    """The sweep a document describes."""
    refuse_other_kind(document, "sweep")
    try:
        sweep = SweepConfig.model_validate(_located(document))
    except ValidationError as error:
        raise ConfigError(explain(error, document, SweepConfig)) from None
    return Sweep(sweep, expand_sweep(sweep, document))


def expand_sweep(sweep: SweepConfig, document: Document | None = None) -> list[ExperimentConfig]:
    """The experiments a sweep describes: family by family, in it task by task, in it seed by seed.

    Args:
        sweep: The matrix.
        document: What it was read from, for the places in messages; relative paths in cells are
            relative to it.

    Raises:
        ConfigError: If a cell is no valid experiment, or two would write to one place; the cell is
            named.
    """
    document = document or Document({})
    sweep = sweep.model_copy(update={"output_dir": sweep.output_dir.absolute()})
    cells: dict[str, ExperimentConfig] = {}
    for group in _groups(sweep):
        parts = ("base", f"families.{group.family}", f"tasks.{group.task}")
        whole = Document(
            group.content, document.path, _beneath(document.lines, parts), _beneath(document.overrides, parts)
        )
        alike: Mapping[str, Any] | None = None
        for seed in sweep.seeds:
            name = group.name_of(seed)
            if name in cells:
                raise ConfigError(f"cell {name}: two pairs of family and task give this name; rename one")
            cell = None if alike is None else _like_the_first(alike, _identity(sweep, group, seed))
            cells[name] = cell or _checked(whole, name, _identity(sweep, group, seed))
            if alike is None and not _matters_to_checks(group.content):
                alike = located(whole, group.content)
    return list(cells.values())


def seed_places(group: CellGroup) -> list[str]:
    """Every place in a cell that the seed reaches, as dotted paths; `run.seed` is among them."""
    places = ["run.seed"]

    def leaf(dotted: str, value: Any) -> None:
        if value == SEED and not dotted.startswith("run."):
            places.append(dotted)

    with_leaves(group.content, leaf)
    return places


def _groups(sweep: SweepConfig) -> Iterator[CellGroup]:
    for family, overrides in sweep.families.items():
        for task, task_overrides in sweep.overrides_by_task.items():
            content = merge(merge(sweep.base, overrides or {}), task_overrides)
            yield CellGroup(family, task, _laid_over(overrides or {}, task_overrides), content)


def _laid_over(overrides: Mapping[str, Any], task_overrides: Mapping[str, Any]) -> Overrides:
    """Both as one: `merge`, but a section that is taken out stays told."""
    removed = {section: None for section, content in task_overrides.items() if content is None}
    return merge(overrides, task_overrides) | removed


def _identity(sweep: SweepConfig, group: CellGroup, seed: int) -> dict[str, Any]:
    identity: dict[str, Any] = {
        "name": group.name_of(seed),
        "seed": seed,
        "algorithm_id": group.family,
        "output_dir": sweep.output_dir,
    }
    return identity if group.task is None else {**identity, "task": group.task}


def _checked(whole: Document, name: str, identity: Overrides) -> ExperimentConfig:
    """A cell that has been through every check an experiment's document goes through."""
    content = merge(whole.content, {"run": identity})
    try:
        return parse_config(Document(content, whole.path, whole.lines, whole.overrides))
    except ConfigError as error:
        raise ConfigError("\n".join(f"cell {name}: {line}" for line in str(error).splitlines())) from None


def _matters_to_checks(content: Mapping[str, Any]) -> bool:
    """Whether the seed stands where it is more than handed on: in a schedule, or in an id to look up."""
    return any(_holds_seed(content.get(section)) for section in ("regime", "environment"))


def _like_the_first(alike: Mapping[str, Any], identity: Overrides) -> ExperimentConfig | None:
    """A further cell of a group whose first was checked: what the seed can change is checked again.

    Paths, the environment's id and the schedule are the same in the whole group. None where something
    is wrong, which only the cell's document can name the place of.
    """
    try:
        return ExperimentConfig.model_validate(_filled(merge(alike, {"run": identity}), identity["seed"]))
    except ValidationError:
        return None


def _filled(content: Any, seed: int) -> Any:
    """A copy of `content` with the seed in its places."""
    if isinstance(content, dict):
        return {key: _filled(value, seed) for key, value in content.items()}
    if isinstance(content, list):
        return [_filled(value, seed) for value in content]
    return seed if content == SEED else content


def _holds_seed(content: Any) -> bool:
    if isinstance(content, Mapping):
        return any(map(_holds_seed, content.values()))
    return any(map(_holds_seed, content)) if isinstance(content, list) else content == SEED


def _beneath(places: Mapping[str, P], parts: Iterable[str]) -> dict[str, P]:
    """Places in a sweep as places in one of its cells; the later of `parts` covers the earlier."""
    return {
        dotted.removeprefix(f"{part}."): place
        for part in parts
        for dotted, place in places.items()
        if dotted.startswith(f"{part}.")
    }


def _located(document: Document) -> dict[str, Any]:
    """The document's content with its relative paths made absolute."""
    content = dict(document.content)
    if "base" in content:
        content["base"] = located(document, content["base"], "base")
    for axis in ("families", "tasks"):
        if isinstance(content.get(axis), Mapping):
            content[axis] = {
                name: located(document, overrides, f"{axis}.{name}")
                for name, overrides in content[axis].items()
            }
    if isinstance(content.get("output_dir"), str):
        content["output_dir"] = document.absolute("output_dir", content["output_dir"])
    return content
