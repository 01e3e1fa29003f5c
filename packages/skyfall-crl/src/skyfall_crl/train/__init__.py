"""Training: the names that need no torch. Backends are imported from their own modules."""

from skyfall_crl.train.advantage import GAEMode, compute_gae, episode_lengths_from
from skyfall_crl.train.base import Algorithm, Policy, RolloutWindow, Transition
from skyfall_crl.train.protocols import (
    DEFAULT_REGIME_ID,
    BindsRegime,
    DescribesRuns,
    capability,
    describe_run,
    record_from_info,
    regime_from_info,
    regime_origin_from_info,
)

__all__ = [
    "DEFAULT_REGIME_ID",
    "Algorithm",
    "BindsRegime",
    "DescribesRuns",
    "GAEMode",
    "Policy",
    "RolloutWindow",
    "Transition",
    "capability",
    "compute_gae",
    "describe_run",
    "episode_lengths_from",
    "record_from_info",
    "regime_from_info",
    "regime_origin_from_info",
]
