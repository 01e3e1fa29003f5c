"""A matrix of experiments from one document. Re-exports `skyfall_core.sweep`."""

from skyfall_core.sweep import SEED, SweepConfig, expand_sweep, load_sweep, merge

__all__ = ["SEED", "SweepConfig", "expand_sweep", "load_sweep", "merge"]
