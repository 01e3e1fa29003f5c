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

from skyfall_metrics.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skyfall_metrics.comparison import Comparison
    from skyfall_metrics.parameters import Parameters
    from skyfall_metrics.reader import DamagedLines
    from skyfall_metrics.rows import Keys
    from skyfall_metrics.scorecard import Scorecard
    from skyfall_metrics.statistics import Bootstrap

__all__ = [
    "ComparisonOptions",
    "GatheringOptions",
    "OnDamage",
    "OutputFormat",
    "OutputOptions",
    "Paths",
    "ReadingOptions",
    "ScoringOptions",
]

_COMPARING = "Statistics"
_SCORING = "Scoring"
_READING = "Reading logs of other tools"

Paths = Annotated[
    list[Path], typer.Argument(help="Traces, or directories searched for traces.jsonl.", show_default=False)
]


class OnDamage(str, Enum):
    """Values of `--damaged-lines`."""

    STOP = "stop"
    SKIP = "skip"


class OutputFormat(str, Enum):
    """What results are printed as."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """What results are printed as; tables by default."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, one number a line.")] = False
    as_latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX tables (booktabs).")] = False

    def chosen(self) -> OutputFormat:
        """The one format that was asked for.

        Raises:
            InputError: More than one was.
        """
        asked = {
            OutputFormat.JSON: self.as_json,
            OutputFormat.CSV: self.as_csv,
            OutputFormat.LATEX: self.as_latex,
        }
        formats = [form for form, wanted in asked.items() if wanted]
        if len(formats) > 1:
            raise InputError(f"--{formats[0].value} and --{formats[1].value}: choose one")
        return formats[0] if formats else OutputFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheringOptions:
    """What is scored beside the traces themselves."""

    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|observed",
            help="Upper bounds by configuration; 'observed' takes the best level among these runs.",
        ),
    ] = None
    reference: Annotated[
        list[Path] | None,
        typer.Option(help="Runs of one configuration alone, for forward transfer; repeatable."),
    ] = None
    jobs: Annotated[int, typer.Option(help="Processes; 0 takes as many as pay for themselves.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOptions:
    """How families are compared."""

    baseline: Annotated[
        str | None, typer.Option(help="Compare every family with this one only.", rich_help_panel=_COMPARING)
    ] = None
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.", rich_help_panel=_COMPARING)] = 2000
    confidence: Annotated[float, typer.Option(help="Of the intervals.", rich_help_panel=_COMPARING)] = 0.95
    seed: Annotated[int, typer.Option(help="Of the resampling.", rich_help_panel=_COMPARING)] = 0
    allow_unequal: Annotated[
        bool,
        typer.Option(
            "--allow-unequal",
            help="Compare runs of different schedules or lengths.",
            rich_help_panel=_COMPARING,
        ),
    ] = False

    def bootstrap(self) -> Bootstrap:
        """The same for the library, checked."""
        from skyfall_metrics.statistics import Bootstrap  # noqa: PLC0415 - kept out of --help

        return Bootstrap(resamples=self.resamples, confidence=self.confidence, seed=self.seed)

    def compared(self, cards: Iterable[Scorecard], bootstrap: Bootstrap) -> Comparison:
        """The comparison of scored runs."""
        from skyfall_metrics.comparison import Schedules, compare  # noqa: PLC0415 - kept out of --help

        schedules = Schedules.ANY if self.allow_unequal else Schedules.EQUAL
        return compare(cards, bootstrap=bootstrap, schedules=schedules, baseline=self.baseline)


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
