"""The network that reads a window of recent state features and says which configuration it looks like.

Every window is left-padded with zeros to the one length K. Most feature vectors of a run are equal
(they ignore values), so the encoder computes each distinct window once and shares the result, and it
multiplies only by columns of its first layer that can see anything. Both are exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from skyfall_core.errors import ConfigError
from skyfall_torch.lcm_features import CANONICAL_REGIMES, STATE_DIM, WRITTEN_DIM, HashMode
from skyfall_torch.option_types import check_types
from skyfall_torch.options import checked_options

__all__ = [
    "ContextTable",
    "EncoderConfig",
    "RegimeContextEncoder",
    "consistency_loss",
    "context_windows",
    "encoder_config",
]


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Shape of a `RegimeContextEncoder`.

    Attributes:
        context_steps: K, how many recent steps a window holds; the one place it is declared.
        latent_dim: Length of the latent z.
        hidden_dim: Width of the input projection and the LSTM.
        state_dim: Length of a feature vector, without the reward.
        regimes: The configurations the classifier knows, in order.
        hash_mode: The hash behind the features; two modes are two bases.
    """

    context_steps: int = 8
    latent_dim: int = 64
    hidden_dim: int = 256
    state_dim: int = STATE_DIM
    regimes: tuple[str, ...] = CANONICAL_REGIMES
    hash_mode: HashMode = HashMode.STABLE

    def __post_init__(self) -> None:
        check_types(self)
        object.__setattr__(self, "regimes", tuple(self.regimes))
        for name in ("context_steps", "latent_dim", "hidden_dim", "state_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}; the encoder needs at least 1")
        if not self.regimes or len(set(self.regimes)) != len(self.regimes):
            raise ValueError(f"regimes is {list(self.regimes)!r}; name each configuration once, at least one")


def encoder_config(shape: Mapping[str, Any], place: str) -> EncoderConfig:
    """The shape that a document describes.

    Args:
        shape: Fields of `EncoderConfig`.
        place: Where it stands, to name in an error.

    Raises:
        ConfigError: If a field is unknown or has no possible value.
    """
    known = checked_options(EncoderConfig, shape, place)
    try:
        return EncoderConfig(**known)
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"{place}: {error}") from None


class RegimeContextEncoder(nn.Module):
    """LSTM over a window of features and rewards; gives a unit-norm latent and regime logits.

    Columns of the first layer that read entries no observation can write get no gradient, ever. They are
    kept apart as a buffer, so that neither a pass nor the optimizer spends time on them.

    Args:
        config: Its shape; keyword arguments build one.
    """

    silent_columns: Tensor

    def __init__(self, config: EncoderConfig | None = None, **shape: Any) -> None:
        super().__init__()
        self.config = config if config is not None else EncoderConfig(**shape)
        hidden, latent = self.config.hidden_dim, self.config.latent_dim
        written = compact_width(self.config)
        whole = nn.Linear(self.config.state_dim + 1, hidden)
        self.input = nn.Linear(written + 1, hidden)
        self.register_buffer("silent_columns", whole.weight[:, written:-1].detach().clone())
        with torch.no_grad():
            self.input.weight.copy_(torch.cat([whole.weight[:, :written], whole.weight[:, -1:]], 1))
            self.input.bias.copy_(whole.bias)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.latent = nn.Linear(hidden, latent)
        self.regime_head = nn.Linear(latent, len(self.config.regimes))

    def forward(self, window: Tensor) -> tuple[Tensor, Tensor]:
        """Encode full-width windows.

        Args:
            window: `(batch, K, state_dim + 1)`, the last column the reward, padding rows zero.

        Returns:
            z of unit length `(batch, latent_dim)` and regime logits `(batch, regimes)`.
        """
        written = self.input.in_features - 1
        columns = (self.input.weight[:, :written], self.silent_columns, self.input.weight[:, written:])
        return self._encode(linear(window, torch.cat(columns, 1), self.input.bias))

    def encode(self, table: "ContextTable") -> tuple[Tensor, Tensor]:
        """The same as `forward` on the windows of a table, each distinct one computed once.

        Args:
            table: Windows by reference.

        Returns:
            z `(windows, latent_dim)` and logits `(windows, regimes)`, one a window of the table.
        """
        latents, logits = self._encode(self._project(table.steps)[table.distinct])
        return latents[table.window_of], logits[table.window_of]

    def _project(self, steps: Tensor) -> Tensor:
        """Input layer for compact step rows, and one row more for padding, which index -1 reaches."""
        projected: Tensor = self.input(torch.cat([steps, steps.new_zeros(1, steps.shape[1])]))
        return projected

    def _encode(self, projected: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.lstm(projected)
        latent = normalize(self.latent(states[:, -1]), dim=-1)
        return latent, self.regime_head(latent)


def context_windows(lengths: Sequence[int], context_steps: int) -> Tensor:
    """Row numbers of the window that ends at each step, never reaching across a stretch's start.

    Args:
        lengths: Steps of consecutive stretches (episodes, or whole streams).
        context_steps: K.

    Returns:
        `(steps, K)` integers, -1 where the stretch had not begun.
    """
    starts = torch.repeat_interleave(torch.tensor([0, *lengths]).cumsum(0)[:-1], torch.tensor(lengths))
    rows = torch.arange(sum(lengths))[:, None] + torch.arange(1 - context_steps, 1)
    return torch.where(rows >= starts[:, None], rows, -1)


@dataclass(frozen=True, slots=True)
class ContextTable:
    """Many windows, with every distinct step and every distinct window held once.

    Attributes:
        steps: `(distinct steps, written + 1)` compact features, the reward last.
        distinct: `(distinct windows, K)` rows of `steps`, -1 for padding.
        window_of: `(windows,)` which distinct window each one is.
    """

    steps: Tensor
    distinct: Tensor
    window_of: Tensor

    @classmethod
    def build(cls, features: Tensor, rewards: Tensor, windows: Tensor) -> "ContextTable":
        """Find what repeats.

        Args:
            features: `(steps, written)`, the columns of the feature vectors that can be non-zero.
            rewards: `(steps,)` what the reward column holds.
            windows: `(windows, K)` row numbers of the steps, -1 for padding.

        Returns:
            The table; encoding it gives what encoding every window on its own would.
        """
        rows = torch.cat([features, rewards[:, None].to(features.dtype)], 1)
        steps, step_of = torch.unique(rows, dim=0, return_inverse=True)
        named = torch.cat([step_of, step_of.new_tensor([-1])])[windows]
        distinct, window_of = torch.unique(named, dim=0, return_inverse=True)
        return cls(steps, distinct, window_of)


def consistency_loss(latents: Tensor, episode_lengths: Sequence[int]) -> Tensor:
    """How far the latent drifts between neighbouring steps of one episode: mean(1 − cos).

    Not squared: the reference's arithmetic is not, whatever its description says.

    Args:
        latents: `(steps, latent_dim)`, in order of time, episodes one after another.
        episode_lengths: Lengths that add up to the number of steps.

    Returns:
        A scalar from 0 to 2; zero, still attached to `latents`, when no episode has two steps.

    Raises:
        ValueError: If the lengths do not add up.
    """
    if sum(episode_lengths) != len(latents):
        raise ValueError(
            f"episode lengths add up to {sum(episode_lengths)}, the latents to {len(latents)} steps"
        )
    inside = torch.ones(max(0, len(latents) - 1), dtype=torch.bool, device=latents.device)
    ends = torch.tensor(list(episode_lengths), device=latents.device).cumsum(0)[:-1] - 1
    inside[ends[ends < len(inside)]] = False
    if not inside.any():
        return latents.sum() * 0.0
    cosine = torch.cosine_similarity(latents[:-1][inside], latents[1:][inside], dim=-1)
    return (1.0 - cosine).mean()


def compact_width(config: EncoderConfig) -> int:
    """How many columns of a feature vector can be non-zero."""
    return min(WRITTEN_DIM, config.state_dim)
