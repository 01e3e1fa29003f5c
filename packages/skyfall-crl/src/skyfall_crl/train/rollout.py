"""Collecting windows of experience. Re-exports `skyfall_core.rollout`."""

from skyfall_core.rollout import RolloutCollector

__all__ = ["RolloutCollector"]
