"""Configurations and when they change. Re-exports `skyfall_core.regime`."""

from skyfall_core.regime import (
    DEFAULT_REGIME_ID,
    ConstantRegime,
    Regime,
    RegimeProvider,
    RegimeSchedule,
    ScheduledRegime,
)

__all__ = [
    "DEFAULT_REGIME_ID",
    "ConstantRegime",
    "Regime",
    "RegimeProvider",
    "RegimeSchedule",
    "ScheduledRegime",
]
