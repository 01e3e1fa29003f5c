"""What a torch backend may know about the policy it trains, and nothing more.

PPO, EWC and LCM work on this interface: a policy that remembers what it did as opaque samples and
can later score them. A language model with a tokenizer is one such policy, a small actor-critic
over boxes and discrete actions (one token an action) is another.

Recorded samples pair with the transitions of a window **by position**: one sample an action, in
acting order; `act_batch` records its actions in world order.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Tensor, nn

from skyfall_torch.tokens import ActionTokens

__all__ = ["Evaluation", "Sample", "SupportsActBatch", "SupportsRenewal", "SupportsValues", "TrainablePolicy"]


class Sample(Protocol):
    """One action as the policy recorded it. Only its policy knows what is inside."""

    @property
    def length(self) -> int:
        """How many tokens the action took; 1 for an action that is no text."""

    def action_start(self, mode: ActionTokens) -> int:
        """The first reinforced token under `mode`; 0 for an action that is no text."""


class Evaluation(NamedTuple):
    """Samples scored under the current weights, differentiable where gradients are enabled.

    Attributes:
        logprobs: (B, T) log-probability of each token of the action; column t is the action's token
            t, whatever precedes it. Zero where `mask` is False.
        mask: (B, T) boolean, True where the action has a token.
        values: (B,) the critic's estimate, one a sample.
        entropies: (B, T) entropy of the distribution each token was drawn from, for policies that can
            say it cheaply; None otherwise.
    """

    logprobs: Tensor
    mask: Tensor
    values: Tensor
    entropies: Tensor | None = None


SampleT = TypeVar("SampleT", bound=Sample)


@runtime_checkable
class TrainablePolicy(Protocol[SampleT]):
    """A policy that acts, remembers, scores what it remembers, and can be trained and restored.

    Optional and probed, as for every policy: `act_batch(observations) -> list`.
    """

    def act(self, observation: Any) -> Any:
        """The action for one observation, in evaluation mode; one sample is recorded."""

    def take_generated(self) -> list[SampleT]:
        """The samples recorded since the last call, in acting order; the record is emptied."""

    def evaluate(self, samples: Sequence[SampleT]) -> Evaluation:
        """Score samples under the current weights, in the mode `train` last set.

        Raises:
            ValueError: If `samples` is empty.
        """

    def trainable_parameters(self) -> list[nn.Parameter]:
        """Every parameter an optimizer steps, the critic's among them, in a fixed order."""

    def named_trainable_parameters(self) -> list[tuple[str, nn.Parameter]]:
        """The same parameters under stable names; the critic's begin with `v_head`."""

    def train(self, mode: bool = True) -> Any:
        """Switch dropout on (True) or off (False) for `evaluate`. `act` never uses dropout."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the weights, critic included, into the directory `path`."""

    def load(self, path: str | PathLike[str]) -> None:
        """Restore in place what `save` wrote.

        Raises:
            skyfall_core.errors.CheckpointError: If it is damaged or made for another model.
        """

    def acting_state(self) -> dict[str, Any]:
        """What besides weights decides the next actions: generator states and unread samples.

        Only tensors, numbers, strings, lists and dicts, so that it loads without pickled code.
        """

    def load_acting_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `acting_state` returned."""

    def sample_state(self, sample: SampleT) -> dict[str, Any]:
        """A sample as tensors and plain values, for a checkpoint of the replay buffer."""

    def sample_from_state(self, state: Mapping[str, Any]) -> SampleT:
        """The sample that `sample_state` described."""


@runtime_checkable
class SupportsActBatch(Protocol):
    """A policy that can act for several worlds at once."""

    def act_batch(self, observations: Sequence[Any]) -> list[Any]:
        """One action an observation, in the same order."""


@runtime_checkable
class SupportsValues(Protocol):
    """A policy whose critic can judge an observation that was not acted on."""

    def values_of(self, observations: Sequence[Any]) -> Tensor:
        """(N,) estimates; nothing is recorded."""


@runtime_checkable
class SupportsRenewal(Protocol):
    """A policy whose network can be refreshed, wholly or unit by unit."""

    def fresh_parameters(self) -> list[Tensor]:
        """Newly drawn initial weights, in the order of `trainable_parameters`."""

    def recycle_dormant_units(
        self, samples: Sequence[Any], threshold: float, optimizer_state: Mapping[Any, Any]
    ) -> int:
        """Re-initialize hidden units that hardly respond to `samples`; returns how many."""
