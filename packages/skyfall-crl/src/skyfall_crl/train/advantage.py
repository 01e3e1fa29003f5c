"""Generalised advantage estimation and episode lengths. Re-exports `skyfall_core.advantage`."""

from skyfall_core.advantage import GAEMode, compute_gae, episode_lengths_from

__all__ = ["GAEMode", "compute_gae", "episode_lengths_from"]
