"""Registers `skyfall/Morpheus-v0` when Gymnasium looks for plugins; imports nothing of the package."""

from __future__ import annotations

__all__ = ["register"]


def register() -> None:
    """Called by Gymnasium through the entry-point group `gymnasium.envs`."""
    from gymnasium.envs import registration  # noqa: PLC0415  # Gymnasium is being imported

    registration.register(
        "skyfall/Morpheus-v0", entry_point="skyfall_morpheus.env:MorpheusEnv", order_enforce=True
    )
