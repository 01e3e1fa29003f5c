"""A latent context model over PPO. Re-exports `skyfall_torch.lcm`."""

try:
    from skyfall_torch.lcm import (
        CANONICAL_REGIMES,
        STATE_DIM,
        EncoderConfig,
        HashMode,
        LCMBackend,
        LCMConfig,
        RegimeContextEncoder,
        WarmupReport,
        consistency_loss,
        regime_description,
        state_features,
    )
except ImportError as error:
    raise ImportError("skyfall_crl.train.lcm needs: pip install 'skyfall-crl[torch]'") from error

__all__ = [
    "CANONICAL_REGIMES",
    "STATE_DIM",
    "EncoderConfig",
    "HashMode",
    "LCMBackend",
    "LCMConfig",
    "RegimeContextEncoder",
    "WarmupReport",
    "consistency_loss",
    "regime_description",
    "state_features",
]
