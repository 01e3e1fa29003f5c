"""Importing this module registers `skyfall/Morpheus-v0` with Gymnasium.

`gymnasium.make("skyfall_morpheus.registration:skyfall/Morpheus-v0")` imports it by itself.
"""

from __future__ import annotations

import gymnasium

__all__ = ["ENVIRONMENT_ID"]

ENVIRONMENT_ID = "skyfall/Morpheus-v0"

gymnasium.register(ENVIRONMENT_ID, entry_point="skyfall_morpheus.env:MorpheusEnv")
