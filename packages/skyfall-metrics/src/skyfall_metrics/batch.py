"""Reading and scoring many traces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from skyfall_metrics.parameters import Parameters
from skyfall_metrics.reader import DamagedLines, read_trace
from skyfall_metrics.rows import Keys
from skyfall_metrics.scorecard import Scorecard
from skyfall_metrics.scoring import score

__all__ = ["Job", "score_files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """How every trace of a batch is read and scored."""

    parameters: Parameters = field(default_factory=Parameters)
    keys: Keys = field(default_factory=Keys)
    damaged_lines: DamagedLines = DamagedLines.STOP


def score_files(paths: Iterable[Path], job: Job) -> list[Scorecard]:
    """The scorecard of each trace, in the order of `paths`.

    Raises:
        MetricsError: At the first trace that cannot be read or scored.
    """
    return [_score_file(path, job) for path in paths]


def _score_file(path: Path, job: Job) -> Scorecard:
    trace = read_trace(path, keys=job.keys, damaged_lines=job.damaged_lines)
    return score(trace, job.parameters)
