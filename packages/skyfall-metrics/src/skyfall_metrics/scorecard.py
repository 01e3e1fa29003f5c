"""The result of scoring one run, typed, and its stable form for other programs.

`Scorecard.to_dict()` is what `--json` prints. Its shape carries `schema_version`: names are added in later
releases without a change of version, never renamed, removed or given another meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from skyfall_metrics.bounds import BoundSource
from skyfall_metrics.metrics.adaptation import AdaptationResult
from skyfall_metrics.metrics.forgetting import ForgettingResult
from skyfall_metrics.metrics.gap import GapResult
from skyfall_metrics.metrics.plasticity import PlasticityResult
from skyfall_metrics.metrics.recovery import RecoveryResult
from skyfall_metrics.metrics.reward import RewardResult
from skyfall_metrics.metrics.stability import StabilityResult
from skyfall_metrics.metrics.transfer import TransferResult
from skyfall_metrics.parameters import ResolvedParameters
from skyfall_metrics.trace import Note, WorldName
from skyfall_metrics.values import Value, plain

__all__ = [
    "SCHEMA_VERSION",
    "ConfigurationSummary",
    "RunIdentity",
    "Scorecard",
    "SegmentSummary",
    "WorldScore",
    "scorecard_schema",
]

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """Which run this is, as the trace tells it."""

    run_id: str | None
    algorithm_id: str | None
    task: str | None
    seed: int | str | None
    path: str | None

    def title(self) -> str:
        """The run in one line; its file when the trace does not name it."""
        parts = [self.run_id, self.algorithm_id, self.task]
        named = [part for part in parts if part is not None]
        if self.seed is not None:
            named.append(f"seed {self.seed}")
        return " · ".join(named) or self.path or "unnamed run"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSummary:
    """One segment: rows `first_row` … `first_row + rows − 1` of its world, beginning at step `at_step`."""

    label: str
    configuration: str
    first_row: int
    at_step: int
    rows: int
    revisited: bool
    mean: float | None
    opening: float | None
    settled: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldScore:
    """Everything measured about one world's life."""

    world: WorldName
    rows: int
    missing_rewards: int
    segments: tuple[SegmentSummary, ...]
    reward: RewardResult
    adaptation: AdaptationResult
    forgetting: ForgettingResult
    recovery: RecoveryResult
    stability: StabilityResult
    gap: GapResult
    plasticity: PlasticityResult
    transfer: TransferResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationSummary:
    """One configuration across a run's worlds: counts are sums, everything else is the mean over worlds."""

    configuration: str
    visits: int
    rows: int
    missing: int
    mean: float | None
    deviation: float | None
    settled: float | None
    forgetting: Value
    bound: float | None
    bound_source: BoundSource | None
    gap: Value
    gap_share: Value
    above_bound: bool
    forward_transfer: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """The scores of one run.

    Attributes:
        schema_version: Of `to_dict()`.
        run: Which run.
        parameters: What it was scored with.
        rows: Rows of all worlds; likewise `missing_rewards`, `segments`, `shifts` and `revisits`.
        notes: What was odd about the trace.
        measures: Every measure of `skyfall_metrics.measures.MEASURES` by name, the mean over worlds.
        configurations: By configuration, in order of first visit.
        worlds: Each world in full.
    """

    run: RunIdentity
    parameters: ResolvedParameters
    rows: int
    missing_rewards: int
    segments: int
    shifts: int
    revisits: int
    notes: tuple[Note, ...]
    measures: dict[str, Value]
    configurations: tuple[ConfigurationSummary, ...]
    worlds: tuple[WorldScore, ...]
    schema_version: int = SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """The scorecard as JSON-ready dicts, lists, strings and numbers; no NaN, missing numbers are None."""
        return plain(self)


def scorecard_schema() -> dict[str, Any]:
    """The JSON Schema of `Scorecard.to_dict()`."""
    return msgspec.json.schema(Scorecard)
