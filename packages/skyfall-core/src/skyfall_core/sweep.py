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
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationError

from skyfall_core.config import SEED, ExperimentConfig, Seed, located, parse_config
from skyfall_core.documents import Document, overridden, read_document
from skyfall_core.errors import ConfigError
from skyfall_core.validation import Section, explain, file_name

__all__ = ["SEED", "SweepConfig", "expand_sweep", "load_sweep", "merge"]

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


def load_sweep(path: str | Path, overrides: Iterable[str] = ()) -> list[ExperimentConfig]:
    """Read a sweep document and expand it.

    Args:
        path: The YAML file.
        overrides: `dotted.path=value` each, applied to the sweep document.

    Raises:
        ConfigError: Naming file, dotted path, value and remedy, in the sweep or in a cell.
    """
    return parse_sweep(overridden(read_document(path), overrides))


def parse_sweep(document: Document) -> list[ExperimentConfig]:
    """The experiments a sweep document describes."""
    try:
        sweep = SweepConfig.model_validate(_located(document))
    except ValidationError as error:
        raise ConfigError(explain(error, document, SweepConfig)) from None
    return expand_sweep(sweep, document)


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
    cells: dict[str, ExperimentConfig] = {}
    for name, cell in _cells(sweep, document or Document({})):
        if name in cells:
            raise ConfigError(f"cell {name}: two pairs of family and task give this name; rename one")
        try:
            cells[name] = parse_config(cell)
        except ConfigError as error:
            raise ConfigError("\n".join(f"cell {name}: {line}" for line in str(error).splitlines())) from None
    return list(cells.values())


def _cells(sweep: SweepConfig, document: Document) -> Iterator[tuple[str, Document]]:
    output_dir = str(sweep.output_dir.absolute())
    for family, overrides in sweep.families.items():
        for task, task_overrides in sweep.overrides_by_task.items():
            parts = ("base", f"families.{family}", f"tasks.{task}")
            lines, settings = _beneath(document.lines, parts), _beneath(document.overrides, parts)
            for seed in sweep.seeds:
                name = "-".join(part for part in (family, task, f"seed{seed}") if part)
                identity = {"name": name, "seed": seed, "algorithm_id": family, "output_dir": output_dir}
                if task is not None:
                    identity["task"] = task
                cell = merge(merge(merge(sweep.base, overrides or {}), task_overrides), {"run": identity})
                yield name, Document(cell, document.path, lines, settings)


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
