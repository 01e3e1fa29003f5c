"""One document that says everything about a run. Re-exports `skyfall_core.config`."""

from skyfall_core.config import (
    SEED,
    AlgorithmConfig,
    EnvironmentConfig,
    ExperimentConfig,
    PolicyConfig,
    RegimeConfig,
    RewardConfig,
    RolloutConfig,
    RunConfig,
    TrackerConfig,
    WrapperConfig,
    load_config,
    parse_config,
)

__all__ = [
    "SEED",
    "AlgorithmConfig",
    "EnvironmentConfig",
    "ExperimentConfig",
    "PolicyConfig",
    "RegimeConfig",
    "RewardConfig",
    "RolloutConfig",
    "RunConfig",
    "TrackerConfig",
    "WrapperConfig",
    "load_config",
    "parse_config",
]
