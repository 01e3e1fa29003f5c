"""A small actor-critic for ordinary Gymnasium spaces, trainable by every torch backend.

It records one sample an action: the row the network saw and the action it drew. An update scores
exactly those numbers again. Acting runs in NumPy on views of the torch weights, which for a network
of this size is several times faster than calling torch, and draws from the policy's own generator.
"""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from skyfall_core.errors import CheckpointError, ConfigError, suggestion
from skyfall_core.plasticity import effective_rank_entropy
from skyfall_core.protocols import SAVED
from skyfall_torch.actor_critic_net import ActorCriticNet, NetShape, NumpyNet, RunningScale
from skyfall_torch.actor_critic_spaces import ObservationCodec, build_head, describe_space
from skyfall_torch.devices import resolve_device
from skyfall_torch.interface import Evaluation
from skyfall_torch.option_types import check_types
from skyfall_torch.remedies.redo import recycle_dormant_units
from skyfall_torch.tokens import ActionTokens

__all__ = ["ActorCriticConfig", "ActorCriticPolicy", "ActorCriticSample", "actor_critic"]

WEIGHTS_FILE = "actor_critic.safetensors"
SHAPE_FILE = "actor_critic.json"
NOISE_BLOCK = 512
RANK_ROWS = 256


@dataclass(frozen=True, slots=True)
class ActorCriticSample:
    """One action as it was taken.

    Attributes:
        row: `(width,)` float32, what the network saw, scaled if the policy scales.
        action: What was drawn, before it was fitted to the environment.
    """

    row: NDArray[np.float32]
    action: NDArray[Any]

    @property
    def length(self) -> int:
        """An action here is one token."""
        return 1

    def action_start(self, mode: ActionTokens) -> int:  # noqa: ARG002 - the interface's signature
        """The whole action is reinforced."""
        return 0


@dataclass(frozen=True, slots=True)
class ActorCriticConfig:
    """What an `ActorCriticPolicy` is made of.

    Attributes:
        hidden_sizes: Widths of the hidden layers.
        activation: `tanh` or `relu`.
        shared_trunk: Whether actor and critic share their hidden layers.
        initial_log_std: Where a Gaussian's log standard deviation starts.
        normalize_observations: Whether rows are scaled by their running mean and deviation.
        capture_effective_rank: Whether the rank of the actor's last hidden layer over the last 256
            actions is reported, once every 64.
        seed: Seeds the initial weights and the actions; None takes entropy from the system.
        device: Where updates run; `auto` prefers an accelerator. Acting in NumPy needs the CPU.
    """

    hidden_sizes: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    shared_trunk: bool = False
    initial_log_std: float = 0.0
    normalize_observations: bool = False
    capture_effective_rank: bool = False
    seed: int | None = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_types(self)


class ActorCriticPolicy(nn.Module):
    """Acts in Discrete, MultiDiscrete and Box spaces from Box or Discrete observations.

    Args:
        observation_space: The environment's.
        action_space: The environment's.
        config: Its make; the defaults are those common for small control tasks.

    Attributes:
        last_logprob: Log-probability of the last action; a list after `act_batch`.
        last_value: The critic's estimate for it; likewise.
        last_effective_rank: The rank, on actions where it was measured, else None.

    Raises:
        SpaceError: If a space is none it can handle.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        config: ActorCriticConfig | None = None,
    ) -> None:
        super().__init__()
        config = config if config is not None else ActorCriticConfig()
        self.config = config
        self._codec, self._head = ObservationCodec(observation_space), build_head(action_space)
        self._spaces = {
            "observation": describe_space(observation_space),
            "action": describe_space(action_space),
        }
        self._generator = torch.Generator()
        if config.seed is None:
            self._generator.seed()
        else:
            self._generator.manual_seed(config.seed)
        shape = NetShape(
            self._codec.width,
            self._head.outputs,
            config.hidden_sizes,
            config.activation,
            config.shared_trunk,
            self._head.has_scale,
            config.initial_log_std,
        )
        self.net = ActorCriticNet(shape, self._generator)
        self.scaling = RunningScale(self._codec.width) if config.normalize_observations else None
        self._numpy_net: NumpyNet | None = None
        self._noise: list[float] = []
        self._generated: list[ActorCriticSample] = []
        self._hidden_rows: deque[NDArray[np.float32]] = deque(maxlen=RANK_ROWS)
        self.last_logprob: float | list[float] | None = None
        self.last_value: float | list[float] | None = None
        self.last_effective_rank: float | None = None
        self._acted = 0
        self.net.to(resolve_device(config.device))

    def act(self, observation: Any) -> Any:
        """The action for one observation; one sample is recorded."""
        row = self._row(observation)
        outputs, value, hidden = self._forward(row)
        recorded, self.last_logprob = self._draw(outputs)
        self.last_value = float(value)
        self._generated.append(ActorCriticSample(row, recorded))
        if self.config.capture_effective_rank:
            self._capture([hidden])
        return self._head.to_environment(recorded)

    def act_batch(self, observations: Sequence[Any]) -> list[Any]:
        """One action an observation, from one forward pass; samples are recorded in this order."""
        rows = np.stack([self._row(observation) for observation in observations])
        outputs, values, hidden = self._forward(rows)
        drawn = [self._draw(row) for row in outputs]
        self.last_logprob = [logprob for _, logprob in drawn]
        self.last_value = values.tolist()
        samples = (ActorCriticSample(row, recorded) for row, (recorded, _) in zip(rows, drawn, strict=True))
        self._generated.extend(samples)
        if self.config.capture_effective_rank:
            self._capture(list(hidden))
        return [self._head.to_environment(recorded) for recorded, _ in drawn]

    def take_generated(self) -> list[ActorCriticSample]:
        """The samples recorded since the last call; the record is emptied."""
        taken, self._generated = self._generated, []
        return taken

    def evaluate(self, samples: Sequence[ActorCriticSample]) -> Evaluation:
        """Score recorded actions under the current weights.

        Returns:
            Log-probabilities and mask `(B, 1)`, values `(B,)`.

        Raises:
            ValueError: If `samples` is empty.
        """
        logprobs, entropies, values = self.score(samples)
        mask = torch.ones((len(samples), 1), dtype=torch.bool, device=values.device)
        return Evaluation(logprobs.unsqueeze(1), mask, values, entropies.unsqueeze(1))

    def score(self, samples: Sequence[ActorCriticSample]) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities, entropies and values, each `(B,)`.

        Raises:
            ValueError: If `samples` is empty.
        """
        if not samples:
            raise ValueError("no samples to evaluate: act first, or pass what `take_generated` returned")
        outputs, log_std, values = self.net(self._batch([sample.row for sample in samples]))
        actions = torch.from_numpy(np.array([sample.action for sample in samples])).to(outputs.device)
        logprobs, entropies = self._head.score(outputs, log_std, actions)
        return logprobs, entropies, values

    def values_of(self, observations: Sequence[Any]) -> Tensor:
        """The critic's estimates `(B,)` for observations that were not acted on; nothing is recorded."""
        rows = [self._codec.row(observation) for observation in observations]
        if self.scaling is not None:
            rows = [self.scaling.scaled(row) for row in rows]
        values: Tensor = self.net(self._batch(rows))[2]
        return values

    def hidden_activations(self, samples: Sequence[ActorCriticSample]) -> list[Tensor]:
        """Activations `(B, units)` of every hidden layer, the actor's first, without gradient."""
        with torch.no_grad():
            rows = self._batch([sample.row for sample in samples])
            activations: list[Tensor] = []
            hidden = self.net.trunk(rows)
            for stack, position in self.net.hidden_layers():
                start = hidden if stack is self.net.v_head and self.net.shape.shared_trunk else rows
                activations.append(stack[: position + 2](start))
        return activations

    def recycle_dormant_units(
        self, samples: Sequence[ActorCriticSample], threshold: float, optimizer_state: Mapping[Any, Any]
    ) -> int:
        """Give hidden units that hardly respond to `samples` a fresh start; returns how many."""
        stacks = list(self.net.hidden_layers())
        return recycle_dormant_units(
            [self.net.linear_at(stack, position) for stack, position in stacks],
            [self.net.readers_of(stack, position) for stack, position in stacks],
            self.hidden_activations(samples),
            threshold=threshold,
            optimizer_state=optimizer_state,
        )

    def fresh_parameters(self) -> list[Tensor]:
        """Newly drawn initial weights, in the order of `trainable_parameters`, from torch's generator."""
        # A generator of its own: one seed for policy and backend would draw the initial weights again.
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        fresh = ActorCriticNet(self.net.shape, generator)
        return [
            new.detach().to(mine.device, mine.dtype)
            for new, mine in zip(fresh.parameters(), self.net.parameters(), strict=True)
        ]

    def trainable_parameters(self) -> list[nn.Parameter]:
        """Every parameter an optimizer steps, the critic's among them."""
        return list(self.net.parameters())

    def named_trainable_parameters(self) -> list[tuple[str, nn.Parameter]]:
        """The same parameters under stable names; the critic's begin with `v_head`."""
        return list(self.net.named_parameters())

    def save(self, path: str | PathLike[str]) -> None:
        """Write weights, observation scaling and a description into the directory `path`."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        save_file(tensors, folder / WEIGHTS_FILE)
        (folder / SHAPE_FILE).write_text(json.dumps(self._description(), indent=2) + "\n", encoding="utf-8")

    def load(self, path: str | PathLike[str]) -> None:
        """Restore in place what `save` wrote.

        Raises:
            CheckpointError: If it is missing, damaged, or made for other spaces or layers.
        """
        folder = Path(path)
        try:
            described = json.loads((folder / SHAPE_FILE).read_text(encoding="utf-8"))
            tensors = load_file(folder / WEIGHTS_FILE)
        except (OSError, ValueError, SafetensorError) as error:
            raise CheckpointError(f"{folder}: not a saved actor-critic: {error}") from error
        mine = json.loads(json.dumps(self._description()))
        if described != mine:
            raise CheckpointError(f"{folder}: made for {described}, this policy is {mine}")
        try:
            self.load_state_dict(tensors)
        except RuntimeError as error:
            raise CheckpointError(
                f"{folder / WEIGHTS_FILE}: does not fit its description: {error}"
            ) from error

    def kwargs_to_restore(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The options with which `actor_critic` makes this policy from what `save` wrote."""
        return {**kwargs, "checkpoint": SAVED}

    def acting_state(self) -> dict[str, Any]:
        """Generator state, prepared noise and unread samples."""
        return {
            "generator": self._generator.get_state(),
            "noise": torch.tensor(self._noise, dtype=torch.float64),
            "generated": [self.sample_state(sample) for sample in self._generated],
            "acted": self._acted,
        }

    def load_acting_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `acting_state` returned."""
        self._generator.set_state(state["generator"])
        self._noise = state["noise"].tolist()
        self._generated = [self.sample_from_state(sample) for sample in state["generated"]]
        self._acted = int(state["acted"])

    def sample_state(self, sample: ActorCriticSample) -> dict[str, Any]:
        """A sample as tensors."""
        return {"row": torch.from_numpy(sample.row), "action": torch.from_numpy(sample.action)}

    def sample_from_state(self, state: Mapping[str, Any]) -> ActorCriticSample:
        """The sample that `sample_state` described."""
        return ActorCriticSample(state["row"].numpy(), state["action"].numpy())

    def _apply(self, fn: Any, recurse: bool = True) -> "ActorCriticPolicy":
        self._numpy_net = None  # moving or casting replaces the memory the views look at
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return self

    def _description(self) -> dict[str, Any]:
        return {"spaces": self._spaces, "net": asdict(self.net.shape), "scaled": self.scaling is not None}

    def _row(self, observation: Any) -> NDArray[np.float32]:
        row = self._codec.row(observation)
        return row if self.scaling is None else self.scaling.observe(row)

    def _batch(self, rows: Sequence[NDArray[np.float32]]) -> Tensor:
        parameter = self.net.actor.weight
        return torch.from_numpy(np.array(rows)).to(parameter.device, parameter.dtype)

    def _forward(
        self, rows: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        if self._numpy_net is None:
            if self.net.actor.weight.device.type != "cpu":
                return self._forward_on_device(rows)
            self._numpy_net = NumpyNet(self.net)
        return self._numpy_net(rows)

    def _forward_on_device(
        self, rows: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        with torch.no_grad():
            tensor = torch.from_numpy(rows).to(self.net.actor.weight.device).reshape(-1, rows.shape[-1])
            hidden = self.net.trunk(tensor)
            outputs, _, values = self.net(tensor)
        arrays = [found.float().cpu().numpy() for found in (outputs, values, hidden)]
        outputs, values, hidden = arrays if rows.ndim > 1 else (array[0] for array in arrays)
        return outputs, values, hidden

    def _draw(self, outputs: NDArray[np.float32]) -> tuple[Any, float]:
        log_std = None if self.net.scale is None else self.net.scale.log_std.detach().float().cpu().numpy()
        return self._head.draw(outputs, log_std, self._take_noise)

    def _take_noise(self, count: int) -> Sequence[float]:
        """So many numbers of the policy's own generator, which is asked for a block at a time."""
        while len(self._noise) < count:
            size = max(NOISE_BLOCK, count)
            draw = torch.randn if self._head.has_scale else torch.rand
            self._noise = draw(size, generator=self._generator, dtype=torch.float64).tolist() + self._noise
        if count == 1:
            return (self._noise.pop(),)
        taken = self._noise[-count:]
        del self._noise[-count:]
        return taken

    def _capture(self, hidden: Sequence[NDArray[np.float32]]) -> None:
        self._hidden_rows.extend(row.copy() for row in hidden)
        due = (self._acted + len(hidden)) // 64 > self._acted // 64
        self._acted += len(hidden)
        self.last_effective_rank = effective_rank_entropy(np.stack(self._hidden_rows)) if due else None


def actor_critic(
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
    *,
    checkpoint: str | PathLike[str] | None = None,
    **options: Any,
) -> ActorCriticPolicy:
    """The policy a document names; the harness supplies the spaces.

    Args:
        observation_space: The environment's.
        action_space: The environment's.
        checkpoint: A directory `ActorCriticPolicy.save` wrote, to start from.
        **options: Fields of `ActorCriticConfig`.

    Raises:
        SpaceError: If a space is none it can handle.
        ConfigError: If an option is unknown or has no possible value.
        CheckpointError: If the checkpoint does not fit.
    """
    known = [field.name for field in fields(ActorCriticConfig)]
    for name in options:
        if name not in known:
            raise ConfigError(
                f"actor-critic: unknown option {name!r}; {suggestion(name, [*known, 'checkpoint'])}"
            )
    try:
        policy = ActorCriticPolicy(observation_space, action_space, ActorCriticConfig(**options))
    except ValueError as error:
        raise ConfigError(f"actor-critic: {error}") from None
    if not isinstance(checkpoint, str | PathLike | None):
        raise ConfigError(f"actor-critic: checkpoint {checkpoint!r}: expected a path")
    if checkpoint is not None:
        policy.load(checkpoint)
    return policy
