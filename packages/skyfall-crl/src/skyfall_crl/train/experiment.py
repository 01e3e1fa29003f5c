"""Running one experiment from its document to its trace. Re-exports `skyfall_core.experiment`."""

from skyfall_core.experiment import RunResult, ShiftDetector, WindowReport, run_experiment, trace_path_for

__all__ = ["RunResult", "ShiftDetector", "WindowReport", "run_experiment", "trace_path_for"]
