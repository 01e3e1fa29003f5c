"""Elastic Weight Consolidation over PPO: hold the weights that mattered for earlier configurations.

When a configuration ends, the empirical Fisher information of its recent experience says how much each
weight mattered there, and from then on every optimizer step pulls the weights back by
½·λ·Σ F⊙(θ − θ*)². The draw the Fisher is estimated on is reward-weighted, see `ewc_sampling`.

Two things the reference lets pass in silence are errors here: a scope that matches no parameter, and a
Fisher of zeros; either would make a run plain PPO under another name.
"""

import logging
import random
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from skyfall_core.base import RolloutWindow
from skyfall_core.errors import ConfigError
from skyfall_torch.errors import FisherError
from skyfall_torch.ewc_config import EWCConfig
from skyfall_torch.ewc_fisher import FisherDropout, clip_and_normalize, fisher_mode, mean_squared_gradients
from skyfall_torch.ewc_penalty import (
    EWCMode,
    ParameterScope,
    PenaltyGradient,
    Snapshot,
    accumulate_online,
    build_parameter_filter,
    flatten,
)
from skyfall_torch.ewc_sampling import DEFAULT_SAMPLE_MIX, select_fisher_samples
from skyfall_torch.interface import TrainablePolicy
from skyfall_torch.options import split_options
from skyfall_torch.ppo import PPOBackend, PPOConfig, TokenBatch

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

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Experience:
    """One window's rows: what the policy recorded, what it earned and under which configuration."""

    samples: Sequence[Any]
    rewards: Sequence[float]
    regimes: Sequence[str]


class EWCBackend(PPOBackend):
    """PPO with a Fisher-weighted anchor to the weights of earlier configurations.

    Args:
        policy: As for `PPOBackend`.
        optimizer: As for `PPOBackend`.
        config: PPO's options as one object.
        ewc: EWC's options as one object.
        **options: Single options of either, which win: the fields of `PPOConfig` and `EWCConfig`.

    Attributes:
        ewc: EWC's options in use.
        skipped_consolidations: Shifts there was no experience to consolidate for.

    Raises:
        ConfigError: If an option is unknown or impossible, or the scope matches no parameter.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        optimizer: torch.optim.Optimizer | None = None,
        *,
        config: PPOConfig | None = None,
        ewc: EWCConfig | None = None,
        **options: Any,
    ) -> None:
        own, ppo = split_options(EWCConfig, PPOConfig, options, "ewc")
        self.ewc = replace(ewc or EWCConfig(), **own)
        self._protected = _protected_parameters(policy, self.ewc.parameter_scope)
        super().__init__(policy, optimizer, config=config, **ppo)
        self._recent: deque[_Experience] = deque(maxlen=self.ewc.fisher_windows)
        self._snapshots: deque[Snapshot] = deque(maxlen=self._room)
        self._penalty: PenaltyGradient | None = None  # its buffers are needed from the first snapshot on
        self._fisher_norm = 0.0
        self._consolidations = 0
        self._world_shift_told: str | None = None
        self.skipped_consolidations = 0

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """What is held, oldest first; parameters in the order of `named_trainable_parameters`."""
        return tuple(self._snapshots)

    @property
    def has_snapshots(self) -> bool:
        """Whether anything is held, so that the penalty acts."""
        return bool(self._snapshots)

    @property
    def _room(self) -> int:
        return self.ewc.max_snapshots if self.ewc.mode is EWCMode.MULTI_SNAPSHOT else 1

    def update(self, window: RolloutWindow) -> dict[str, float]:
        """One PPO update with the penalty in every step.

        Returns:
            PPO's measurements and `ewc_penalty`, `ewc_penalty_share` (of penalty plus the magnitude of
            PPO's own loss), `ewc_fisher_norm` and `ewc_snapshots`, all 0 before a consolidation.
        """
        measured = super().update(window)
        self._world_shift_told = None
        penalty = measured.setdefault("ewc_penalty", 0.0)
        other = abs(measured["policy_loss"] + self.config.value_coeff * measured["value_loss"])
        measured["ewc_penalty_share"] = penalty / (penalty + other) if penalty > 0 else 0.0
        measured["ewc_fisher_norm"] = self._fisher_norm
        measured["ewc_snapshots"] = float(len(self._snapshots))
        return measured

    def batch_from(self, window: RolloutWindow) -> TokenBatch:
        """As PPO's; the fresh rows are remembered with their configuration for the next consolidation."""
        batch = super().batch_from(window)
        regimes = [window.transitions[p].regime_id for stream in window.streams or () for p in stream]
        self._recent.append(_Experience(batch.samples, batch.rewards, regimes))
        return batch

    def on_regime_shift(self, shift: Mapping[str, Any]) -> None:
        """Consolidate on the experience of the configuration that ended.

        Rows of any other configuration in the recent windows are left out. Without a single row of it
        (before the first update, or a configuration shorter than a window) nothing is consolidated:
        counted, and said once. Worlds that leave one configuration between two updates count once.
        """
        ended = shift.get("previous")
        if shift.get("world") is not None and ended is not None and ended == self._world_shift_told:
            return
        self._consolidate_ended(ended, shift)
        super().on_regime_shift(shift)

    def _consolidate_ended(self, ended: str | None, shift: Mapping[str, Any]) -> None:
        if not self._pool(ended)[0]:
            self.skipped_consolidations += 1
            if self.skipped_consolidations == 1:
                _LOGGER.warning(
                    "no experience of configuration %r to consolidate at step %s; such shifts are counted "
                    "in skipped_consolidations and not mentioned again",
                    ended,
                    shift.get("step"),
                )
            return
        self.consolidate(ended)
        self._world_shift_told = None if shift.get("world") is None else ended

    def consolidate(self, regime_id: str | None = None) -> None:
        """Estimate the Fisher information on recent experience and anchor the current weights.

        Args:
            regime_id: Only experience under this configuration; all of it when None.

        Raises:
            FisherError: If there is no such experience or the estimate is zero everywhere.
        """
        fisher = self.estimate_fisher(regime_id)
        parameters = [parameter for _, parameter in self._protected]
        new = Snapshot(flatten(parameters), flatten(list(fisher.values())))
        if self.ewc.mode is EWCMode.ONLINE:
            new = accumulate_online(
                self._snapshots[0] if self._snapshots else None, new, self.ewc.fisher_gamma
            )
        self._snapshots.append(new)
        self._consolidations += 1
        self._fisher_norm = float(
            torch.stack([snapshot.fisher.norm() for snapshot in self._snapshots]).norm()
        )

    def estimate_fisher(self, regime_id: str | None = None) -> dict[str, Tensor]:
        """The empirical Fisher information of the protected parameters, clipped and scaled per tensor.

        Args:
            regime_id: Only experience under this configuration; all of it when None.

        Returns:
            One tensor a protected parameter, by name; entries from 0 to 1.

        Raises:
            FisherError: If there is no such experience or the estimate is zero everywhere.
        """
        samples, counts = self._draw(regime_id)
        modules = _root_modules(self.policy)
        parameters = [parameter for _, parameter in self._protected]

        def log_likelihood(indices: Sequence[int]) -> Tensor:
            scored = self._scorer.evaluate([samples[index] for index in indices])
            return (scored.logprobs * scored.mask).sum(1)

        with fisher_mode(modules, self.ewc.fisher_dropout), self._randomness.active():
            raw = mean_squared_gradients(parameters, modules, log_likelihood, counts)
        if not any(bool(tensor.any()) for tensor in raw):
            raise FisherError(
                f"parameter_scope {self.ewc.parameter_scope.value!r}: the Fisher information of "
                f"{len(raw)} parameter tensors is zero everywhere, so the penalty could never act. The "
                "log-likelihood of actions does not depend on a critic's own parameters: choose a scope "
                "that includes the actor's"
            )
        names = [name for name, _ in self._protected]
        scaled = [clip_and_normalize(tensor, self.ewc.fisher_clip) for tensor in raw]
        return dict(zip(names, scaled, strict=True))

    def _pool(self, regime_id: str | None) -> tuple[list[Any], list[float]]:
        rows = [
            (sample, reward)
            for window in self._recent
            for sample, reward, regime in zip(window.samples, window.rewards, window.regimes, strict=True)
            if regime_id is None or regime == regime_id
        ]
        return [sample for sample, _ in rows], [reward for _, reward in rows]

    def _draw(self, regime_id: str | None) -> tuple[list[Any], list[int]]:
        """The samples drawn and how often each counts; with dropout every repetition is a pass of its own."""
        pool, rewards = self._pool(regime_id)
        if not pool:
            raise FisherError(
                f"no experience under configuration {regime_id!r} to estimate on; update on a window first"
            )
        seed = self.ewc.fisher_seed
        chosen = select_fisher_samples(
            list(enumerate(pool)),
            rewards,
            max_samples=self.ewc.fisher_samples,
            mix=self.ewc.fisher_sample_mix,
            rng=None if seed is None else random.Random(f"{seed}/{self._consolidations}"),  # noqa: S311
        )
        if self.ewc.fisher_dropout is FisherDropout.REFERENCE:
            return [sample for _, sample in chosen], [1] * len(chosen)
        times = Counter(index for index, _ in chosen)
        return [pool[index] for index in times], list(times.values())

    def _apply_auxiliary_regularization(self, batch: TokenBatch) -> Mapping[str, float]:
        reported = dict(super()._apply_auxiliary_regularization(batch))
        if self._snapshots:
            if self._penalty is None:
                self._penalty = PenaltyGradient([parameter for _, parameter in self._protected])
            penalty = self._penalty.add(tuple(self._snapshots), self.ewc.ewc_lambda)
            reported["ewc_penalty"] = float(penalty)
        return reported

    def _state(self) -> dict[str, Any]:
        recent = [
            {
                "samples": [self.policy.sample_state(sample) for sample in window.samples],
                "rewards": list(window.rewards),
                "regimes": list(window.regimes),
            }
            for window in self._recent
        ]
        held = [{"anchor": snapshot.anchor, "fisher": snapshot.fisher} for snapshot in self._snapshots]
        own = {
            "names": [name for name, _ in self._protected],
            "snapshots": held,
            "recent": recent,
            "fisher_norm": self._fisher_norm,
            "consolidations": self._consolidations,
            "skipped": self.skipped_consolidations,
        }
        return {**super()._state(), "ewc": own}

    def _load_state(self, state: Mapping[str, Any]) -> None:
        super()._load_state(state)
        own = state["ewc"]
        if own["names"] != [name for name, _ in self._protected]:
            raise ValueError(f"it protects {own['names'][:3]}…, this run another scope")
        self._snapshots = deque(
            (Snapshot(s["anchor"].to(self._device), s["fisher"].to(self._device)) for s in own["snapshots"]),
            maxlen=self._room,
        )
        self._recent.clear()
        for window in own["recent"]:
            samples = [self.policy.sample_from_state(sample) for sample in window["samples"]]
            self._recent.append(_Experience(samples, list(window["rewards"]), list(window["regimes"])))
        self._fisher_norm = float(own["fisher_norm"])
        self._consolidations = int(own["consolidations"])
        self.skipped_consolidations = int(own["skipped"])


def _protected_parameters(
    policy: TrainablePolicy[Any], scope: ParameterScope
) -> list[tuple[str, nn.Parameter]]:
    protects = build_parameter_filter(scope)
    named = policy.named_trainable_parameters()
    found = [(name, parameter) for name, parameter in named if protects(name)]
    if not found:
        some = [name for name, _ in named[:3]]
        raise ConfigError(
            f"parameter_scope {scope.value!r}: matches none of the policy's {len(named)} trainable "
            f"parameters ({', '.join(some)}, …), so EWC would protect nothing; use 'all' for a model "
            "without adapters, or configure LoRA"
        )
    return found


def _root_modules(policy: Any) -> list[nn.Module]:
    """The modules that own a policy's parameters."""
    if isinstance(policy, nn.Module):
        return [policy]
    return [value for value in vars(policy).values() if isinstance(value, nn.Module)]
