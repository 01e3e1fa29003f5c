"""What a training algorithm is, and what it is fed. Re-exports `skyfall_core.base`."""

from skyfall_core.base import Algorithm, Policy, RolloutWindow, Transition

__all__ = ["Algorithm", "Policy", "RolloutWindow", "Transition"]
