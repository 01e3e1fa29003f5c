"""A latent context model over PPO: infer which configuration the run is in, and say so in the prompt.

An LSTM reads a sliding window of value-blind state features and gives a unit-norm latent and regime
logits. Online, one auxiliary loss trains it: the latent should not drift within an episode. That loss
reads the latent only, so the regime classifier learns nothing online; an offline warm-up trains it.

As in the reference the reward input is held at zero, and nothing puts the prefix into a prompt. Both
have a switch, `reward_input` and `inject_prefix`; without the latter this is PPO plus a loss.
"""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn

from skyfall_core.advantage import episode_lengths_from
from skyfall_core.base import RolloutWindow
from skyfall_core.errors import ConfigError
from skyfall_torch.interface import TrainablePolicy
from skyfall_torch.lcm_encoder import (
    ContextTable,
    EncoderConfig,
    RegimeContextEncoder,
    consistency_loss,
    context_windows,
    encoder_config,
)
from skyfall_torch.lcm_features import (
    CANONICAL_REGIMES,
    STATE_DIM,
    WRITTEN_DIM,
    HashMode,
    feature_buckets,
    regime_description,
    state_features,
)
from skyfall_torch.lcm_prefix import PrefixingPolicy
from skyfall_torch.lcm_warmup_file import WarmupReport, load_encoder_weights, read_warmup
from skyfall_torch.option_types import check_types
from skyfall_torch.options import split_options
from skyfall_torch.ppo import GAEMode, PPOBackend, PPOConfig, TokenBatch, Truncation
from skyfall_torch.randomness import OwnRandomness

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

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LCMConfig:
    """What the latent context model adds to the options of PPO.

    Attributes:
        encoder_shape: Fields of `EncoderConfig` for an encoder built here; `context_steps` in it is K.
        encoder_seed: Seeds the weights of an encoder built here.
        warmup: A file `skyfall lcm-warmup` wrote, loaded at the start.
        consistency_coeff: Weight of the consistency loss.
        top_k: Regimes the prefix mentions.
        inject_prefix: Put the prefix into the policy's prompts at acting time.
        reward_input: Feed the reward of the step before instead of zero.
    """

    encoder_shape: Mapping[str, Any] = field(default_factory=dict)
    encoder_seed: int = 0
    warmup: str | PathLike[str] | None = None
    consistency_coeff: float = 0.1
    top_k: int = 2
    inject_prefix: bool = False
    reward_input: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        if self.consistency_coeff < 0:
            raise ConfigError(f"consistency_coeff {self.consistency_coeff!r}: expected 0 or more")
        if self.top_k < 1:
            raise ConfigError(f"top_k {self.top_k!r}: expected 1 or more")


@dataclass(frozen=True, slots=True)
class _Step:
    """What the encoder sees of one step."""

    buckets: frozenset[int]
    reward: float = 0.0


class LCMBackend(PPOBackend):
    """PPO plus a context encoder trained online.

    Advantages are episodic by default: in the reference this is the one configuration that ever knew
    episode lengths.

    Args:
        policy: As for `PPOBackend`.
        optimizer: As for `PPOBackend`; one that is passed in must hold the encoder's parameters too.
        encoder: The context encoder; built from the options when None.
        config: PPO's options as one object.
        lcm: The model's own options as one object.
        **options: Single options of either, which win: the fields of `PPOConfig` and `LCMConfig`.

    Attributes:
        encoder: The context encoder.
        lcm: The model's own options in use.
        warmup_report: What loading the warm-up file did; None without one.

    Raises:
        ConfigError: If an option is unknown or impossible, or the policy has no prompt to inject into.
        CheckpointError: If the warm-up file does not fit.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        optimizer: torch.optim.Optimizer | None = None,
        *,
        encoder: RegimeContextEncoder | None = None,
        config: PPOConfig | None = None,
        lcm: LCMConfig | None = None,
        **options: Any,
    ) -> None:
        own, ppo = split_options(LCMConfig, PPOConfig, options, "lcm")
        self.lcm = replace(lcm or LCMConfig(), **own)
        self.encoder = encoder if encoder is not None else _build_encoder(self.lcm)
        if encoder is not None and self.lcm.encoder_shape:
            raise ConfigError(
                "encoder_shape: given beside an encoder, which has a shape already; leave one out"
            )
        self.encoder.to(policy.trainable_parameters()[0].device)
        if config is None:
            ppo.setdefault("gae", GAEMode.EPISODIC)
        if self.lcm.inject_prefix:
            policy = PrefixingPolicy(policy, self._observe_and_describe)
        super().__init__(policy, optimizer, config=config, **ppo)
        if self.lcm.inject_prefix and self.config.truncation is Truncation.BOOTSTRAP:
            raise ConfigError(
                "inject_prefix: the observation behind a cut was not acted on and has no prefix, so "
                "truncation 'bootstrap' cannot judge it; use 'terminal'"
            )
        self._acting: dict[int, deque[_Step]] = {}
        self._tails: dict[int, list[_Step]] = {}
        self._context: tuple[ContextTable, Tensor, list[int]] | None = None
        self.warmup_report = None if self.lcm.warmup is None else self.load_warmup(self.lcm.warmup)

    @property
    def context_steps(self) -> int:
        """K, the length of a window, while acting as in the update."""
        return self.encoder.config.context_steps

    def trainable_parameters(self) -> list[nn.Parameter]:
        """The policy's and the encoder's."""
        return [*super().trainable_parameters(), *self.encoder.parameters()]

    # While acting

    def observe(self, observation: Any, reward: float = 0.0, *, world: int = 0) -> None:
        """Slide the acting window over one more observation.

        Args:
            observation: A JSON-like observation.
            reward: What the step before earned; ignored unless `reward_input` is on.
            world: Whose window.

        Raises:
            TypeError: If the observation is not JSON-like.
        """
        window = self._acting.setdefault(world, deque(maxlen=self.context_steps))
        window.append(self._seen(observation, reward))

    @torch.no_grad()
    def encode_recent(self, world: int = 0) -> tuple[Tensor, Tensor]:
        """Latent `(latent_dim,)` and regime logits `(regimes,)` of the window observed so far.

        The window is padded on the left, so a run's first steps have a context too.
        """
        steps = list(self._acting.get(world, ()))
        rows = torch.arange(len(steps) - self.context_steps, len(steps)).clamp(min=-1)
        latents, logits = self.encoder.encode(self._table(steps, rows.unsqueeze(0)))
        return latents[0], logits[0]

    def regime_prefix(self, world: int = 0) -> str:
        """The `[REGIME: …]` text for the window observed so far; the caller decides where it goes."""
        logits = self.encode_recent(world)[1].tolist()
        return regime_description(logits, self.encoder.config.regimes, self.lcm.top_k)

    def load_warmup(self, path: str | PathLike[str]) -> WarmupReport:
        """Take over a trained encoder as far as it fits.

        Args:
            path: A file `skyfall lcm-warmup` wrote, or a plain state dictionary.

        Returns:
            What was loaded, and what was dropped for which reason, which is also logged.

        Raises:
            CheckpointError: If it is damaged, made with another K or hash, or nothing fits.
        """
        report = load_encoder_weights(self.encoder, *read_warmup(path), str(path))
        for name, reason in report.dropped.items():
            _LOGGER.warning("%s: %s was not taken over: %s", path, name, reason)
        return report

    def on_regime_shift(self, shift: Mapping[str, Any]) -> None:
        """Forget the context of the configuration that ended, of one world where only one shifted."""
        super().on_regime_shift(shift)
        worlds = [*self._acting, *self._tails] if shift.get("world") is None else [shift["world"]]
        for world in worlds:
            self._acting.pop(world, None)
            self._tails.pop(world, None)

    # In the update

    def batch_from(self, window: RolloutWindow) -> TokenBatch:
        """As PPO's; the contexts of the window's steps are laid out once for all its optimizer steps."""
        batch = super().batch_from(window)
        steps: list[_Step] = []
        stretches: list[int] = []
        fresh: list[int] = []
        lengths: list[int] = []
        for world, stream in enumerate(window.streams or ()):
            tail, new = self._tails.get(world, []), self._steps_of(window, stream)
            fresh += range(len(steps) + len(tail), len(steps) + len(tail) + len(new))
            steps += [*tail, *new]
            stretches.append(len(tail) + len(new))
            lengths += episode_lengths_from(window.terminals[position] for position in stream)
            self._tails[world] = [*tail, *new][max(0, len(tail) + len(new) - self.context_steps + 1) :]
        windows = context_windows(stretches, self.context_steps)[fresh]
        self._context = self._table(steps, windows), torch.tensor(fresh), lengths
        return batch

    def update(self, window: RolloutWindow) -> dict[str, float]:
        """One PPO update with the consistency loss in every step.

        Returns:
            PPO's measurements and `lcm_consistency`, unweighted.
        """
        measured = super().update(window)
        self._context = None
        return measured

    def _apply_auxiliary_regularization(self, batch: TokenBatch) -> Mapping[str, float]:
        reported = dict(super()._apply_auxiliary_regularization(batch))
        if self._context is not None:
            table, _, lengths = self._context
            loss = consistency_loss(self.encoder.encode(table)[0], lengths)
            (self.lcm.consistency_coeff * loss).backward()  # type: ignore[no-untyped-call]  # torch's
            reported["lcm_consistency"] = float(loss.detach())
        return reported

    def _observe_and_describe(self, observation: Any, world: int) -> str:
        self.observe(observation, world=world)
        return self.regime_prefix(world)

    def _seen(self, observation: Any, reward: float) -> _Step:
        config = self.encoder.config
        buckets = feature_buckets(observation, config.hash_mode, min(WRITTEN_DIM, config.state_dim))
        return _Step(buckets, float(reward) if self.lcm.reward_input else 0.0)

    def _steps_of(self, window: RolloutWindow, stream: Sequence[int]) -> list[_Step]:
        steps: list[_Step] = []
        earned = 0.0
        for position in stream:
            transition = window.transitions[position]
            steps.append(self._seen(transition.observation, earned))
            earned = transition.reward
        return steps

    def _table(self, steps: Sequence[_Step], windows: Tensor) -> ContextTable:
        width = min(WRITTEN_DIM, self.encoder.config.state_dim)
        weight = self.encoder.input.weight
        features = torch.zeros(len(steps), width)
        for row, step in enumerate(steps):
            if step.buckets:
                features[row, list(step.buckets)] = 1.0
        rewards = torch.tensor([step.reward for step in steps])
        table = ContextTable.build(features, rewards, windows)
        return ContextTable(
            table.steps.to(weight.device, weight.dtype),
            table.distinct.to(weight.device),
            table.window_of.to(weight.device),
        )

    def _state(self) -> dict[str, Any]:
        own = {
            "encoder": self.encoder.state_dict(),
            "acting": {str(world): _packed(steps) for world, steps in self._acting.items()},
            "tails": {str(world): _packed(steps) for world, steps in self._tails.items()},
        }
        return {**super()._state(), "lcm": own}

    def _load_state(self, state: Mapping[str, Any]) -> None:
        super()._load_state(state)
        own = state["lcm"]
        self.encoder.load_state_dict(own["encoder"])
        self._acting = {
            int(world): deque(_unpacked(steps), maxlen=self.context_steps)
            for world, steps in own["acting"].items()
        }
        self._tails = {int(world): _unpacked(steps) for world, steps in own["tails"].items()}


def _packed(steps: Sequence[_Step] | deque[_Step]) -> list[dict[str, Any]]:
    return [{"buckets": sorted(step.buckets), "reward": step.reward} for step in steps]


def _unpacked(steps: Sequence[Mapping[str, Any]]) -> list[_Step]:
    return [_Step(frozenset(step["buckets"]), float(step["reward"])) for step in steps]


def _build_encoder(config: LCMConfig) -> RegimeContextEncoder:
    shape = encoder_config(config.encoder_shape, "encoder_shape")
    with OwnRandomness(config.encoder_seed).active():
        return RegimeContextEncoder(shape)
