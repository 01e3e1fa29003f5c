"""Training: the names that need no torch. Backends are imported from their own modules."""

from skyfall_crl.train import registry
from skyfall_crl.train.advantage import GAEMode, compute_gae, episode_lengths_from
from skyfall_crl.train.base import Algorithm, Policy, RolloutWindow, Transition
from skyfall_crl.train.config import (
    SEED,
    AlgorithmConfig,
    EnvironmentConfig,
    ExperimentConfig,
    PolicyConfig,
    RegimeConfig,
    RewardConfig,
    RolloutConfig,
    RunConfig,
    WrapperConfig,
    load_config,
    parse_config,
)
from skyfall_crl.train.experiment import (
    RunResult,
    ShiftDetector,
    WindowReport,
    run_experiment,
    trace_path_for,
)
from skyfall_crl.train.plasticity import effective_rank_entropy, stable_rank
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
from skyfall_crl.train.rollout import RolloutCollector
from skyfall_crl.train.sweep import Sweep, SweepConfig, expand_sweep, load_sweep, merge, read_sweep

__all__ = [
    "DEFAULT_REGIME_ID",
    "SEED",
    "Algorithm",
    "AlgorithmConfig",
    "BindsRegime",
    "DescribesRuns",
    "EnvironmentConfig",
    "ExperimentConfig",
    "GAEMode",
    "Policy",
    "PolicyConfig",
    "RegimeConfig",
    "RewardConfig",
    "RolloutCollector",
    "RolloutConfig",
    "RolloutWindow",
    "RunConfig",
    "RunResult",
    "ShiftDetector",
    "Sweep",
    "SweepConfig",
    "Transition",
    "WindowReport",
    "WrapperConfig",
    "capability",
    "compute_gae",
    "describe_run",
    "effective_rank_entropy",
    "episode_lengths_from",
    "expand_sweep",
    "load_config",
    "load_sweep",
    "merge",
    "parse_config",
    "read_sweep",
    "record_from_info",
    "regime_from_info",
    "regime_origin_from_info",
    "registry",
    "run_experiment",
    "stable_rank",
    "trace_path_for",
]
