"""Options that several commands share, each written once, in dataclasses that stand for all of their fields.

Only typer is imported here: `skyfall --help` loads this module for its help text, so whatever computes is
imported when a command runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from skyfall_metrics.parameters import Parameters
    from skyfall_metrics.reader import DamagedLines
    from skyfall_metrics.rows import Keys

__all__ = ["OnDamage", "Paths", "ReadingOptions", "ScoringOptions"]

_SCORING = "Scoring"
_READING = "Reading logs of other tools"

Paths = Annotated[
    list[Path], typer.Argument(help="Traces, or directories searched for traces.jsonl.", show_default=False)
]


class OnDamage(str, Enum):
    """Values of `--damaged-lines`."""

    STOP = "stop"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringOptions:
    """What the metrics are tuned by."""

    window: Annotated[
        int | None,
        typer.Option(
            help="Rows of the moving average; else a twentieth of a segment.", rich_help_panel=_SCORING
        ),
    ] = None
    settled_fraction: Annotated[
        float, typer.Option(help="Share of a segment's end that counts as settled.", rich_help_panel=_SCORING)
    ] = 0.25
    adaptation_level: Annotated[
        float, typer.Option(help="Share of the rise that counts as adapted.", rich_help_panel=_SCORING)
    ] = 0.9
    recovery_level: Annotated[
        float,
        typer.Option(help="Share of the earlier level that counts as recovered.", rich_help_panel=_SCORING),
    ] = 0.95
    hold: Annotated[
        int | None,
        typer.Option(help="Rows for which a level must hold; else window / 4.", rich_help_panel=_SCORING),
    ] = None

    def parameters(self) -> Parameters:
        """The same for the library, checked."""
        from skyfall_metrics.parameters import Parameters  # noqa: PLC0415 - kept out of --help

        return Parameters(
            window=self.window,
            settled_fraction=self.settled_fraction,
            adaptation_level=self.adaptation_level,
            recovery_level=self.recovery_level,
            hold=self.hold,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Where traces are and what they call things."""

    pattern: Annotated[
        str, typer.Option(help="What a trace is called inside a directory.", rich_help_panel=_READING)
    ] = "traces.jsonl"
    damaged_lines: Annotated[
        OnDamage,
        typer.Option(
            help="At an unreadable line: stop, or leave it out and count.", rich_help_panel=_READING
        ),
    ] = OnDamage.STOP
    step_key: Annotated[
        str, typer.Option(help="The step; '' numbers the rows.", rich_help_panel=_READING)
    ] = "step"
    reward_key: Annotated[str, typer.Option(help="The reward.", rich_help_panel=_READING)] = "reward"
    regime_key: Annotated[str, typer.Option(help="The configuration's label.", rich_help_panel=_READING)] = (
        "regime_id"
    )
    boundary_key: Annotated[
        str, typer.Option(help="The flag on a configuration's first row.", rich_help_panel=_READING)
    ] = "boundary"
    origin_key: Annotated[
        str, typer.Option(help="The label that a configuration repeats.", rich_help_panel=_READING)
    ] = "origin"
    world_key: Annotated[
        str, typer.Option(help="The world, where a trace has several.", rich_help_panel=_READING)
    ] = "world"
    run_key: Annotated[str, typer.Option(help="The run's identifier.", rich_help_panel=_READING)] = "run_id"
    algorithm_key: Annotated[str, typer.Option(help="The algorithm family.", rich_help_panel=_READING)] = (
        "algorithm_id"
    )
    task_key: Annotated[str, typer.Option(help="The task.", rich_help_panel=_READING)] = "task"
    seed_key: Annotated[str, typer.Option(help="The seed.", rich_help_panel=_READING)] = "seed"

    def keys(self) -> Keys:
        """The mapping for the library, checked."""
        from skyfall_metrics.rows import Keys  # noqa: PLC0415 - kept out of --help

        return Keys(
            step=self.step_key or None,
            reward=self.reward_key,
            regime=self.regime_key,
            boundary=self.boundary_key,
            origin=self.origin_key,
            world=self.world_key,
            run_id=self.run_key,
            algorithm_id=self.algorithm_key,
            task=self.task_key,
            seed=self.seed_key,
        )

    def on_damage(self) -> DamagedLines:
        """The same for the library."""
        from skyfall_metrics.reader import DamagedLines  # noqa: PLC0415 - kept out of --help

        return DamagedLines(self.damaged_lines.value)
