"""What a run tells of itself: after each window, and at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["RunResult", "WindowReport"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one run produced. The metrics are not here: they are computed from the trace.

    Attributes:
        run_id: The run's name.
        steps: Steps taken; each world's own.
        window_metrics: What each update reported, in order.
        regimes: Labels of the configurations seen, in order of first appearance.
        provenance: What the environment reported about itself.
        trace_path: The trace, or None when nothing was recorded.
        export_path: The exported bundle, if one was asked for.
    """

    run_id: str
    steps: int
    window_metrics: list[dict[str, float]] = field(default_factory=list)
    regimes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    trace_path: Path | None = None
    export_path: Path | None = None

    @property
    def stationary(self) -> bool:
        """Whether the run saw only one configuration, which leaves half of the metrics without a value."""
        return len(self.regimes) <= 1


@dataclass(frozen=True, slots=True)
class WindowReport:
    """How far a run is, after one window.

    Attributes:
        steps: Steps taken so far; each world's own.
        mean_reward: Mean reward over the window.
        regimes: Labels of the configurations in the window, in order of first appearance.
        metrics: What the update reported.
    """

    steps: int
    mean_reward: float
    regimes: tuple[str, ...]
    metrics: Mapping[str, float]
