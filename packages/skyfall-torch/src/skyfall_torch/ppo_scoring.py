"""Scoring samples for PPO: in which precision, in passes of what size, and from which token on."""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from skyfall_core.errors import ConfigError
from skyfall_torch.interface import Evaluation, SupportsValues, TrainablePolicy
from skyfall_torch.losses import RatioMode, reinforced_mask
from skyfall_torch.ppo_config import OldPolicyPass, PPOConfig, Precision

__all__ = ["Scorer", "chunks", "judge_of"]

_AUTOCAST = {Precision.BFLOAT16: torch.bfloat16, Precision.FLOAT16: torch.float16}


class Scorer:
    """Asks a policy what it thinks of samples, always about the same slice of them.

    Args:
        policy: The policy.
        config: Precision, pass size, and which part of a response counts.
        device: Where the policy is.
    """

    def __init__(self, policy: TrainablePolicy[Any], config: PPOConfig, device: torch.device) -> None:
        self._policy = policy
        self._config = config
        self._device = device

    @property
    def pass_size(self) -> int:
        """Samples in one forward pass."""
        return math.ceil(self._config.minibatch_size / self._config.gradient_accumulation)

    def evaluate(self, samples: Sequence[Any]) -> Evaluation:
        """One forward pass over `samples`, in the precision that was asked for."""
        with self._precision():
            return self._policy.evaluate(samples)

    @torch.no_grad()
    def values_of(self, observations: Sequence[Any]) -> Tensor:
        """(N,) what the critic expects of observations that were not acted on.

        Raises:
            ConfigError: If the policy cannot say.
        """
        judge = judge_of(self._policy)
        with self._precision():
            return torch.cat([judge.values_of(rows) for rows in chunks(observations, self.pass_size)])

    def _precision(self) -> AbstractContextManager[Any]:
        kind = _AUTOCAST.get(self._config.precision)
        return nullcontext() if kind is None else torch.autocast(self._device.type, dtype=kind)

    def score(self, samples: Sequence[Any]) -> tuple[Evaluation, Tensor]:
        """One forward pass over `samples`, and the (B, T) mask of their reinforced tokens."""
        scored = self.evaluate(samples)
        return scored, reinforced_mask(scored.mask, self._starts(samples))

    @torch.no_grad()
    def score_all(self, samples: Sequence[Any]) -> tuple[Tensor, Tensor, Tensor]:
        """(N, T) log-probabilities and reinforced mask, and (N,) values, under the current weights."""
        self._policy.train(self._config.old_policy_pass is OldPolicyPass.TRAIN)
        width = max(sample.length for sample in samples)
        logprobs, masks, values = [], [], []
        for rows in chunks(samples, self.pass_size):
            scored, mask = self.score(rows)
            room = (0, width - mask.shape[1])
            logprobs.append(functional.pad(scored.logprobs, room))
            masks.append(functional.pad(mask, room))
            values.append(scored.values)
        return torch.cat(logprobs), torch.cat(masks), torch.cat(values)

    def ratio_count(self, samples: Sequence[Any]) -> int:
        """How many ratios a mean over `samples` is over."""
        if self._config.ratio is RatioMode.SEQUENCE_MEAN:
            return len(samples)
        reinforced: int = sum(sample.length for sample in samples) - sum(self._starts(samples))
        return max(1, reinforced)

    def _starts(self, samples: Sequence[Any]) -> list[int]:
        return [sample.action_start(self._config.action_tokens) for sample in samples]


def judge_of(policy: Any) -> SupportsValues:
    """The policy as one that can judge observations behind a cut.

    Raises:
        ConfigError: If it cannot.
    """
    if not isinstance(policy, SupportsValues):
        raise ConfigError(
            f"truncation 'bootstrap': {type(policy).__name__} has no `values_of` to judge an "
            "observation that was not acted on; use 'terminal'"
        )
    return policy


def chunks(rows: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """`rows` in order, `size` at a time."""
    for begin in range(0, len(rows), size):
        yield rows[begin : begin + size]
