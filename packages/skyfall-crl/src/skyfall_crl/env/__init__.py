"""The environment layer; `skyfall_crl.env.vector` needs the extra `morpheus`."""

from skyfall_crl.env.regime import (
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
