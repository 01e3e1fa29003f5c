"""Proximal policy optimization. Re-exports `skyfall_torch.ppo`."""

try:
    from skyfall_torch.ppo import (
        ActionTokens,
        AdvantageScope,
        GAEMode,
        OldPolicyPass,
        PPOBackend,
        PPOConfig,
        Precision,
        RatioMode,
        TokenBatch,
        Truncation,
    )
except ImportError as error:
    raise ImportError("skyfall_crl.train.ppo needs: pip install 'skyfall-crl[torch]'") from error

__all__ = [
    "ActionTokens",
    "AdvantageScope",
    "GAEMode",
    "OldPolicyPass",
    "PPOBackend",
    "PPOConfig",
    "Precision",
    "RatioMode",
    "TokenBatch",
    "Truncation",
]
