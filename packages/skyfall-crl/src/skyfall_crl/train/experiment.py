"""Running one experiment from its document to its trace. Re-exports `skyfall_core.experiment`."""

from skyfall_core.experiment import (
    RunResult,
    RunState,
    ShiftDetector,
    WindowReport,
    run_experiment,
    run_state,
    trace_path_for,
)

__all__ = [
    "RunResult",
    "RunState",
    "ShiftDetector",
    "WindowReport",
    "run_experiment",
    "run_state",
    "trace_path_for",
]
