"""Elastic weight consolidation over PPO. Re-exports `skyfall_torch.ewc`."""

try:
    from skyfall_torch.ewc import (
        DEFAULT_SAMPLE_MIX,
        EWCBackend,
        EWCConfig,
        EWCMode,
        FisherDropout,
        ParameterScope,
        Snapshot,
        build_parameter_filter,
        select_fisher_samples,
    )
except ImportError as error:
    raise ImportError("skyfall_crl.train.ewc needs: pip install 'skyfall-crl[torch]'") from error

__all__ = [
    "DEFAULT_SAMPLE_MIX",
    "EWCBackend",
    "EWCConfig",
    "EWCMode",
    "FisherDropout",
    "ParameterScope",
    "Snapshot",
    "build_parameter_filter",
    "select_fisher_samples",
]
