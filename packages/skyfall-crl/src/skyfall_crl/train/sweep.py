"""A matrix of experiments from one document. Re-exports `skyfall_core.sweep`."""

from skyfall_core.sweep import SEED, Sweep, SweepConfig, expand_sweep, load_sweep, merge, read_sweep

__all__ = ["SEED", "Sweep", "SweepConfig", "expand_sweep", "load_sweep", "merge", "read_sweep"]
