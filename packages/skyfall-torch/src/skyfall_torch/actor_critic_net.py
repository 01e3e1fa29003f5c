"""The actor-critic network, the running scale of its observations, and its forward pass in NumPy.

The critic's parameters are named `v_head…`, as every trainable policy names them. Each module owns
its parameters directly and has one input, so per-sample gradients can be caught module by module.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["ActorCriticNet", "NetShape", "NumpyNet", "RunningScale"]

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}
GAIN = math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class NetShape:
    """Layers of an `ActorCriticNet`.

    Attributes:
        inputs: Width of an observation row.
        outputs: Numbers the action head needs.
        hidden_sizes: Widths of the hidden layers, at least one.
        activation: `tanh` or `relu`.
        shared_trunk: Whether actor and critic share their hidden layers.
        has_scale: Whether there is a log standard deviation to learn.
        initial_log_std: What it starts from.
    """

    inputs: int
    outputs: int
    hidden_sizes: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    shared_trunk: bool = False
    has_scale: bool = False
    initial_log_std: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden_sizes", tuple(self.hidden_sizes))
        if not self.hidden_sizes or any(size < 1 for size in self.hidden_sizes):
            raise ValueError(f"hidden_sizes is {self.hidden_sizes!r}; give at least one positive width")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation is {self.activation!r}; known: {sorted(ACTIVATIONS)}")


class LogStd(nn.Module):
    """A log standard deviation that does not depend on the state, spread over a batch."""

    def __init__(self, size: int, initial: float) -> None:
        super().__init__()
        self.log_std = nn.Parameter(torch.full((size,), initial))

    def forward(self, mean: Tensor) -> Tensor:
        """`(B, size)` copies of the parameter."""
        return self.log_std.expand_as(mean)


class ActorCriticNet(nn.Module):
    """Hidden layers with orthogonal initialisation, an actor's and a critic's output on top.

    Args:
        shape: Its layers.
        generator: Draws the initial weights.
    """

    def __init__(self, shape: NetShape, generator: torch.Generator) -> None:
        super().__init__()
        self.shape = shape
        self.trunk = _hidden_layers(shape, generator)
        self.actor = _linear(shape.hidden_sizes[-1], shape.outputs, 0.01, generator)
        self.scale = LogStd(shape.outputs, shape.initial_log_std) if shape.has_scale else None
        value = _linear(shape.hidden_sizes[-1], 1, 1.0, generator)
        layers = [] if shape.shared_trunk else list(_hidden_layers(shape, generator))
        self.v_head = nn.Sequential(*layers, value)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Actor outputs `(B, outputs)`, log standard deviations or None, values `(B,)`."""
        hidden = self.trunk(rows)
        outputs = self.actor(hidden)
        values = self.v_head(hidden if self.shape.shared_trunk else rows)
        return outputs, None if self.scale is None else self.scale(outputs), values.squeeze(-1)

    def hidden_layers(self) -> Iterator[tuple[nn.Sequential, int]]:
        """Every hidden linear layer, as its stack and its position in it; actor first."""
        for stack in (self.trunk, self.v_head):
            # In each stack activations follow their linear layer; an output layer has none.
            for position in range(len(stack) - 1):
                if isinstance(stack[position], nn.Linear):
                    yield stack, position

    @staticmethod
    def linear_at(stack: nn.Sequential, position: int) -> nn.Linear:
        """The layer that `hidden_layers` told the place of."""
        layer = stack[position]
        assert isinstance(layer, nn.Linear)  # noqa: S101 - hidden_layers yields no other
        return layer

    def readers_of(self, stack: nn.Sequential, position: int) -> list[nn.Linear]:
        """The linear layers that read the hidden layer at `position` of `stack`."""
        later = [layer for layer in stack[position + 1 :] if isinstance(layer, nn.Linear)]
        if later:
            return later[:1]
        first_of_critic = self.v_head[0]
        if self.shape.shared_trunk and isinstance(first_of_critic, nn.Linear):
            return [self.actor, first_of_critic]
        return [self.actor]


def _hidden_layers(shape: NetShape, generator: torch.Generator) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in zip((shape.inputs, *shape.hidden_sizes), shape.hidden_sizes, strict=False):
        layers += [_linear(inputs, outputs, GAIN, generator), ACTIVATIONS[shape.activation]()]
    return nn.Sequential(*layers)


def _linear(inputs: int, outputs: int, gain: float, generator: torch.Generator) -> nn.Linear:
    with torch.random.fork_rng(devices=[]):  # the layer's own draw is replaced and must leave no trace
        layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


class NumpyNet:
    """The same network on one row or a batch, on views of the torch weights (never copies).

    Args:
        net: A network on the CPU. In-place changes of its parameters are seen; after anything that
            replaces their memory, build a new one.
    """

    def __init__(self, net: ActorCriticNet) -> None:
        self._relu = net.shape.activation == "relu"
        self._trunk = _views(net.trunk)
        (self._actor,) = _views([net.actor])
        critic = _views(net.v_head)
        self._critic_hidden, self._value = critic[:-1], critic[-1]
        self._shared = net.shape.shared_trunk
        self.log_std = None if net.scale is None else net.scale.log_std.detach().numpy()

    def __call__(
        self, rows: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Actor outputs `(…, outputs)`, values `(…,)` and the actor's last hidden layer for `(…, inputs)`."""
        hidden = self._run(rows, self._trunk)
        critic = hidden if self._shared else self._run(rows, self._critic_hidden)
        weight, bias = self._actor
        value_weight, value_bias = self._value
        return hidden @ weight + bias, (critic @ value_weight + value_bias)[..., 0], hidden

    def _run(
        self, rows: NDArray[np.float32], layers: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]
    ) -> NDArray[np.float32]:
        for weight, bias in layers:
            rows = rows @ weight
            rows += bias
            np.maximum(rows, 0.0, out=rows) if self._relu else np.tanh(rows, out=rows)
        return rows


def _views(
    layers: Sequence[nn.Module] | nn.Sequential,
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    return [
        (layer.weight.detach().numpy().T, layer.bias.detach().numpy())
        for layer in layers
        if isinstance(layer, nn.Linear)
    ]


class RunningScale(nn.Module):
    """Mean and variance of the observations seen so far, and observations scaled by them.

    Buffers, so that they are saved with the weights; held in float64 on the CPU.

    Args:
        width: Numbers in a row.
        clip: Largest magnitude after scaling.
    """

    mean: Tensor
    squares: Tensor
    count: Tensor

    def __init__(self, width: int, clip: float = 10.0) -> None:
        super().__init__()
        self.clip = clip
        self.register_buffer("mean", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("squares", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("count", torch.zeros(1, dtype=torch.float64))

    def observe(self, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """Take one more row into account and return it scaled by what is known with it.

        Source: Welford 1962, doi 10.1080/00401706.1962.10490022.
        """
        mean, squares, count = self.mean.numpy(), self.squares.numpy(), self.count.numpy()
        count += 1.0
        offset = row - mean
        mean += offset / count
        squares += offset * (row - mean)
        return self.scaled(row)

    def scaled(self, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """`row` less the mean, in standard deviations, clipped; float32."""
        count = max(float(self.count[0]), 1.0)
        deviation = np.sqrt(self.squares.numpy() / count + 1e-8)
        scaled = (row - self.mean.numpy()) / deviation
        return np.asarray(np.clip(scaled, -self.clip, self.clip), np.float32)
