"""The contracts between collecting and learning: transitions, windows, policies, algorithms.

A collector produces `Transition`s in `RolloutWindow`s, a `Policy` chooses actions, an `Algorithm`
improves a policy from windows. Policy and algorithm are separate so that one policy can be trained
by several algorithms and the other way round; an algorithm that owns its model simply is both.

Nothing here knows an environment, a tensor library or a document. Windows hold plain Python and
NumPy, so the same window describes a cart on a track and a tool call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Protocol, runtime_checkable

__all__ = ["Algorithm", "Policy", "RolloutWindow", "Transition"]


@dataclass(slots=True)
class Transition:
    """One environment step as the harness records it. Treated as immutable once it is built.

    Attributes:
        step: Index since the run (for several worlds: that world) began, across windows.
        observation: What the policy saw before acting, as the environment's space contains it.
        action: What it did.
        reward: What it earned; always finite.
        terminated: Gymnasium's flag for an end that belongs to the task.
        truncated: Gymnasium's flag for an end that is only administrative.
        regime_id: Label of the configuration the step happened under. The policy never sees it.
        boundary: Whether this step is the first one of a new configuration.
        reward_components: Weighted contribution of each reward component; empty for a plain scalar.
        logprob: Log-probability the acting policy gave the action, if it reports one.
        value: The acting policy's estimate of the state's value, if it reports one.
        info: The environment's own `info` for the step, whole.
    """

    step: int
    observation: Any
    action: Any
    reward: float
    terminated: bool
    truncated: bool
    regime_id: str
    boundary: bool
    reward_components: Mapping[str, float] = field(default_factory=dict)
    logprob: float | None = None
    value: float | None = None
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RolloutWindow:
    """A slice of one continuing run: the experience one update is computed from.

    A window's edge is administrative. It ends no episode, resets nothing and makes no step an
    episode's last one, so a window shorter than an episode sees only per-step reward terms.

    Attributes:
        transitions: The steps in acting order.
        run: What the environment reported about itself, verbatim.
        streams: Per world, the positions of its transitions in `transitions`. With one world this is
            a single stream over everything. Whatever runs along time goes stream by stream.
    """

    transitions: Sequence[Transition]
    run: Mapping[str, Any] = field(default_factory=dict)
    streams: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        if self.streams is None:
            self.streams = (range(len(self.transitions)),)

    def __len__(self) -> int:
        return len(self.transitions)

    @property
    def rewards(self) -> list[float]:
        """Rewards in acting order."""
        return [transition.reward for transition in self.transitions]

    @property
    def terminals(self) -> list[bool]:
        """Whether each step ended an episode, for either of Gymnasium's reasons."""
        return [transition.terminated or transition.truncated for transition in self.transitions]

    @property
    def regimes(self) -> list[str]:
        """Configuration labels in acting order."""
        return [transition.regime_id for transition in self.transitions]


@runtime_checkable
class Policy(Protocol):
    """Something that chooses an action.

    Optional, probed when a window starts, so present from construction or absent:
    `act_batch(observations) -> list` is used when several worlds are driven; `last_logprob`,
    `last_value` and `last_effective_rank` are read after each action (lists in world order after
    `act_batch`).
    """

    def act(self, observation: Any) -> Any:
        """The action for one observation.

        The observation is the one that the window and the trace hold, so it is read and never changed: a
        policy that normalizes in place changes the record. Copy it first.
        """


@runtime_checkable
class Algorithm(Protocol):
    """Something that consumes windows and improves the policy it exposes."""

    @property
    def policy(self) -> Policy:
        """The policy the collector acts with."""

    def update(self, window: RolloutWindow) -> Mapping[str, float]:
        """Learn from one window; returns what the update measured, by name."""

    def on_regime_shift(self, shift: Mapping[str, Any]) -> None:
        """Hear that one configuration gave way to another, before that window's `update`.

        Args:
            shift: `previous` and `current` labels, `origin` (what the current one repeats, or None),
                `step` (the first step of the current one), and `world` when only one world shifted.
        """

    def save_checkpoint(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on learning from here."""

    def load_checkpoint(self, path: str | PathLike[str]) -> None:
        """Restore what `save_checkpoint` wrote."""
