"""Bounds files, and bounds that a set of runs observed.

A bounds file maps configurations to the best reward per step, for all tasks or task by task:

    baseline: 1.0
    cartpole:
      heavy: 0.7

JSON, or YAML of exactly this shape: names and numbers, no more of YAML than that, so no YAML library is
needed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skyfall_metrics.bounds import Bound, BoundSource
from skyfall_metrics.errors import BoundsError, shortened, suggestion
from skyfall_metrics.scorecard import Scorecard
from skyfall_metrics.scoring import with_bounds

__all__ = ["BoundsTable", "observed_bounds", "read_bounds", "with_observed_bounds", "with_table"]

_LINE = re.compile(
    r"""(?P<indent>[ ]*)
    (?: "(?P<double>[^"\\]*)" | '(?P<single>[^']*)' | (?P<plain>[^\s"'#:\[\]{},&*!|>%@`-][^:#]*?) )
    [ ]*:(?:[ ]+(?P<number>[^\s#]+))?[ ]*(?:\#.*)?""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class BoundsTable:
    """Upper bounds for several tasks.

    Attributes:
        common: Bounds by configuration, for every task.
        by_task: Bounds of single tasks; they go before the common ones.
    """

    common: Mapping[str, float]
    by_task: Mapping[str, Mapping[str, float]]

    def of(self, task: str | None) -> dict[str, float]:
        """The bounds that hold for a task."""
        return {**self.common, **self.by_task.get(task or "", {})}


def read_bounds(path: Path) -> BoundsTable:
    """The bounds in a file.

    Raises:
        BoundsError: The file cannot be read, or is not of the shape above; the message has the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise BoundsError(f"{path}: cannot read: {reason}") from None
    content = _from_json(path, text) if text.lstrip().startswith("{") else _from_yaml(path, text)
    common = {name: value for name, value in content.items() if not isinstance(value, Mapping)}
    by_task = {name: value for name, value in content.items() if isinstance(value, Mapping)}
    for place, bounds in (("", common), *((f"{task}.", bounds) for task, bounds in by_task.items())):
        for name, value in bounds.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise BoundsError(f"{path}: {place}{name}: bound {value!r}, expected a finite number")
    if not any((common, *by_task.values())):
        raise BoundsError(f"{path}: no bound in it; write 'configuration: number', one a line")
    return BoundsTable(common, by_task)


def with_table(cards: Iterable[Scorecard], table: BoundsTable) -> tuple[list[Scorecard], list[str]]:
    """Scorecards with gaps to a table's bounds, and a warning for every bound that none of them can use."""
    cards = list(cards)
    met: dict[str, set[str]] = {}
    for card in cards:
        met.setdefault(card.run.task or "", set()).update(c.configuration for c in card.configurations)
    known = set().union(*met.values())
    warnings = [
        f"bound for {name!r}: no such configuration; {suggestion(name, known)}"
        for name in table.common
        if name not in known
    ]
    for task, bounds in table.by_task.items():
        if task not in met:
            warnings.append(f"bounds for task {task!r}: no such task; {suggestion(task, met)}")
            continue
        warnings += [
            f"bound for {name!r} of task {task!r}: no such configuration; {suggestion(name, met[task])}"
            for name in bounds
            if name not in met[task]
        ]
    given = [
        with_bounds(card, {n: Bound(float(v), BoundSource.GIVEN) for n, v in table.of(card.run.task).items()})
        for card in cards
    ]
    return given, warnings


def observed_bounds(cards: Iterable[Scorecard]) -> dict[str, dict[str, Bound]]:
    """The best settled level of each configuration among runs, by task."""
    best: dict[str, dict[str, float]] = {}
    for card in cards:
        of_task = best.setdefault(card.run.task or "", {})
        for segment in (segment for world in card.worlds for segment in world.segments):
            if segment.settled is not None:
                of_task[segment.configuration] = max(
                    segment.settled, of_task.get(segment.configuration, -math.inf)
                )
    return {
        task: {name: Bound(value, BoundSource.OBSERVED) for name, value in levels.items()}
        for task, levels in best.items()
    }


def with_observed_bounds(cards: Iterable[Scorecard]) -> list[Scorecard]:
    """Scorecards with gaps to the best level that any of them settled at, in place of every other bound."""
    cards = list(cards)
    bounds = observed_bounds(cards)
    return [with_bounds(card, bounds[card.run.task or ""]) for card in cards]


def _from_json(path: Path, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BoundsError(f"{path}: not JSON: {error}") from None
    return dict(content)


def _from_yaml(path: Path, text: str) -> dict[str, Any]:
    content: dict[str, Any] = {}
    task: dict[str, float] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#") or line.strip() == "---":
            continue
        found = _LINE.fullmatch(line.rstrip())
        where = f"{path}: line {number}"
        if found is None:
            raise BoundsError(f"{where}: {shortened(line.strip())!r}, expected 'configuration: number'")
        name = found["double"] or found["single"] or found["plain"] or ""
        if found["indent"] and task is None:
            raise BoundsError(f"{where}: {name!r} is indented, but no task stands above it")
        target: dict[str, Any] = content if not found["indent"] or task is None else task
        if name in target:
            raise BoundsError(f"{where}: {name!r} stands there twice")
        if found["number"] is not None:
            target[name] = _number(found["number"], where, name)
            task = task if found["indent"] else None
        elif found["indent"]:
            raise BoundsError(f"{where}: {name!r} has no number")
        else:
            task = {}
            content[name] = task
    return content


def _number(text: str, where: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BoundsError(f"{where}: {name}: bound {shortened(text)!r}, expected a number") from None
