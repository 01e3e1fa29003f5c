"""The options that EWC adds to those of PPO."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from skyfall_core.errors import ConfigError
from skyfall_torch.ewc_fisher import FisherDropout
from skyfall_torch.ewc_penalty import EWCMode, ParameterScope
from skyfall_torch.ewc_sampling import DEFAULT_SAMPLE_MIX, check_mix
from skyfall_torch.option_types import check_types

__all__ = ["EWCConfig"]


@dataclass(frozen=True, slots=True)
class EWCConfig:
    """What EWC adds to the options of PPO.

    Attributes:
        ewc_lambda: λ, the strength of the penalty; 0 measures everything and holds nothing.
        mode: One running estimate, or a row of snapshots whose penalties add up.
        fisher_gamma: Decay of the running Fisher in online mode. PPO's `gamma` is another number.
        max_snapshots: Snapshots kept in multi-snapshot mode; the oldest leaves first.
        fisher_samples: Samples a Fisher estimate is drawn from; pools are usually smaller and repeat.
        fisher_sample_mix: Share of the draw by reward band.
        fisher_clip: Bound on averaged squared gradients, before each tensor is scaled to at most 1.
        fisher_dropout: Whether the Fisher pass is free of dropout.
        fisher_seed: Makes the draw reproducible; None draws anew every time.
        fisher_windows: How many of the latest windows are the recent experience.
        parameter_scope: Which parameters are protected.
    """

    ewc_lambda: float = 100.0
    mode: EWCMode = EWCMode.ONLINE
    fisher_gamma: float = 0.95
    max_snapshots: int = 5
    fisher_samples: int = 256
    fisher_sample_mix: Mapping[str, float] = field(default_factory=lambda: DEFAULT_SAMPLE_MIX)
    fisher_clip: float = 10.0
    fisher_dropout: FisherDropout = FisherDropout.DISABLED
    fisher_seed: int | None = None
    fisher_windows: int = 1
    parameter_scope: ParameterScope = ParameterScope.LORA_ONLY

    def __post_init__(self) -> None:
        check_types(self, may_be_infinite={"fisher_clip"})
        self._check(self.ewc_lambda >= 0, "ewc_lambda", "0 or more")
        self._check(0 <= self.fisher_gamma <= 1, "fisher_gamma", "between 0 and 1")
        self._check(self.fisher_clip > 0, "fisher_clip", "positive")
        for name in ("max_snapshots", "fisher_samples", "fisher_windows"):
            self._check(getattr(self, name) >= 1, name, "1 or more")
        try:
            check_mix(self.fisher_sample_mix)
        except ValueError as error:
            raise ConfigError(f"fisher_sample_mix: {error}") from None

    def _check(self, holds: bool, name: str, expected: str) -> None:
        if not holds:
            raise ConfigError(f"{name} {getattr(self, name)!r}: expected {expected}")
