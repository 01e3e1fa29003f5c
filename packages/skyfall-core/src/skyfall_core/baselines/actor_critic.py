"""One-step actor-critic with eligibility traces, linear in Fourier features.

The smallest learner that is worth comparing with: it needs no tensor library, learns from single
steps, and is told nothing about configurations, so whatever it regains after a shift it has learned.

It learns window by window, and inside a window step by step and stream by stream. A window's edge
means nothing to it: traces and the last step, whose successor is not known yet, are carried to the
next window, per world. The log-probabilities in the window are not used; the gradient is taken at
the weights of the moment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from os import PathLike
from typing import Any

import numpy as np
from gymnasium import Space

from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.baselines.fourier import Floats, FourierBasis
from skyfall_core.baselines.linear import LinearSoftmaxPolicy
from skyfall_core.baselines.storage import read_checkpoint, write_checkpoint
from skyfall_core.errors import CheckpointError, ConfigError, RunError, suggestion

__all__ = ["ActorCritic", "ActorCriticSettings"]

KIND = "actor-critic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorCriticSettings:
    """What a document's `kwargs` may set, next to `seed`.

    Step sizes are those of the constant feature; every other feature's is scaled by 1/‖c‖ (see
    `FourierBasis.step_scale`).

    Attributes:
        gamma: Discount factor, in [0, 1].
        actor_step_size: Of the policy, 0 or more.
        critic_step_size: Of the value estimate, 0 or more.
        actor_trace: Trace decay λ of the policy, in [0, 1].
        critic_trace: Trace decay λ of the value estimate, in [0, 1].
        entropy_bonus: Weight of the policy's entropy, 0 or more. Keeps a policy that has become
            certain able to change its mind after a shift.
        temperature: Divides the preferences, above 0.
        order: Of the Fourier basis.
        interactions: How many observation entries one feature combines; None for all.
        ranges: Per observation entry `[low, high]`, or None for the space's own bounds.
        effective_rank_interval: Acts between two effective-rank readings; None for none.
    """

    gamma: float = 0.97
    actor_step_size: float = 0.05
    critic_step_size: float = 0.02
    actor_trace: float = 0.6
    critic_trace: float = 0.6
    entropy_bonus: float = 0.04
    temperature: float = 1.0
    order: int = 3
    interactions: int | None = 2
    ranges: Sequence[Sequence[float] | None] | None = None
    effective_rank_interval: int | None = 512

    def __post_init__(self) -> None:
        for name in ("gamma", "actor_trace", "critic_trace"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} is {getattr(self, name)!r}: give a number in [0, 1]")
        for name in ("actor_step_size", "critic_step_size", "entropy_bonus"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)!r}: give a number of 0 or more")


@dataclass(slots=True)
class _Pending:
    """A step whose successor has not been seen."""

    step: int
    features: Floats
    action: int
    reward: float


@dataclass(slots=True)
class _Stream:
    """Where learning stands in one world: its traces, (actions + 1, features), and its last step."""

    traces: Floats
    pending: _Pending | None = None

    def forget(self) -> None:
        """Begin anew: what comes next does not follow from what came before."""
        self.traces[:] = 0.0
        self.pending = None


@dataclass(slots=True)
class _Measured:
    """What one update saw, a number a learned step."""

    errors: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Means by name; zeros when nothing was learned."""
        count = len(self.errors)
        share = 1.0 / count if count else 0.0
        return {
            "td_error": sum(self.errors) * share,
            "td_error_magnitude": sum(map(abs, self.errors)) * share,
            "entropy": sum(self.entropies) * share,
            "value": sum(self.values) * share,
            "learned_steps": float(count),
        }


class ActorCritic:
    """Learns a `LinearSoftmaxPolicy` for `Box` observations and `Discrete` actions.

    For a step (s, a, r, s'): δ = r + γ·v(s') − v(s); both traces decay by γ·λ and take up the
    gradient of v(s) and of log π(a|s); both weights move along their trace by their step size times δ.

    - `terminated`: v(s') is 0 and the traces end.
    - `truncated`: the observation after it is in no window, and 0 in its place would call a mere
      time limit a loss. The step's δ is dropped and the traces end.
    - A step number that does not follow the last one's: treated like a truncation.

    The book's factor γ^t, which fades out learning late in an episode, is left out, because a
    continuing life has no start to discount from.

    Source: Sutton and Barto 2018, "Reinforcement Learning", 2nd ed., section 13.5 (episodic
        actor-critic with eligibility traces).
    """

    def __init__(
        self, *, observation_space: Space[Any], action_space: Space[Any], seed: int = 0, **settings: Any
    ) -> None:
        """Start with a uniform policy and a value of zero.

        Args:
            observation_space: A `Box`.
            action_space: A `Discrete`.
            seed: Of the action draws, the only chance in this algorithm.
            **settings: The fields of `ActorCriticSettings`.

        Raises:
            SpaceError: If it cannot work with the spaces.
            ConfigError: If a setting is unknown or out of range.
        """
        self.settings = _settings(settings)
        chosen = self.settings
        basis = FourierBasis(
            observation_space, order=chosen.order, interactions=chosen.interactions, ranges=chosen.ranges
        )
        self._policy = LinearSoftmaxPolicy(
            basis,
            action_space,
            temperature=chosen.temperature,
            effective_rank_interval=chosen.effective_rank_interval,
            seed=seed,
        )
        self._streams: list[_Stream] = []
        actors = self._policy.actions
        per_row = np.array([chosen.actor_step_size] * actors + [chosen.critic_step_size])
        self._step_sizes: Floats = np.outer(per_row, basis.step_scale)
        decays = np.array([chosen.actor_trace] * actors + [chosen.critic_trace])
        self._decays: Floats = chosen.gamma * decays[:, None]

    @property
    def policy(self) -> LinearSoftmaxPolicy:
        """The policy being learned."""
        return self._policy

    def update(self, window: RolloutWindow) -> dict[str, float]:
        """Learn from every step of the window whose successor is known.

        Returns:
            Means over the learned steps: `td_error`, `td_error_magnitude` (of its absolute value),
            `entropy` of the policy in nats, `value`; and their number, `learned_steps`.

        Raises:
            RunError: If the weights are no longer finite.
        """
        streams = window.streams or ()
        while len(self._streams) < len(streams):
            self._streams.append(_Stream(np.zeros_like(self._policy.weights)))
        measured = _Measured()
        with np.errstate(over="ignore", invalid="ignore"):
            for state, positions in zip(self._streams, streams, strict=False):
                self._follow(state, [window.transitions[position] for position in positions], measured)
        if not np.isfinite(self._policy.weights).all():
            raise RunError(
                "actor-critic: the weights are no longer finite; "
                "lower `critic_step_size` or `actor_step_size`, or scale the reward"
            )
        return measured.summary()

    def on_regime_shift(self, shift: Mapping[str, Any]) -> None:
        """Do nothing: this baseline adapts by learning on, and shows what that alone is worth."""

    def save_checkpoint(self, path: str | PathLike[str]) -> None:
        """Write weights, traces, unfinished steps and the state of the draws into the folder `path`."""
        meta, arrays = self._policy.state()
        shape = (len(self._streams), *self._policy.weights.shape)
        pending = [stream.pending for stream in self._streams]
        blank = np.zeros(self._policy.features.size)
        arrays["traces"] = np.array([stream.traces for stream in self._streams]).reshape(shape)
        arrays["pending"] = np.array([blank if step is None else step.features for step in pending])
        arrays["pending"] = arrays["pending"].reshape(len(pending), blank.size)
        meta["pending"] = [step and [step.step, step.action, step.reward] for step in pending]
        meta["settings"] = _plain(self.settings)
        write_checkpoint(path, KIND, meta, arrays)

    def load_checkpoint(self, path: str | PathLike[str]) -> None:
        """Go on exactly where `save_checkpoint` was called.

        The first step learned from afterwards is taken to follow the last one before. Where it does
        not, as after a reset, one successor's value is wrong, and the traces forget that soon.

        Raises:
            CheckpointError: If it is missing, damaged, or was made with other settings or spaces.
        """
        meta, arrays = read_checkpoint(path, KIND)
        if meta.get("settings") != _plain(self.settings):
            raise CheckpointError(
                f"{path}: made with settings {meta.get('settings')!r}, "
                f"this algorithm has {_plain(self.settings)!r}; use the document the checkpoint was made with"
            )
        try:
            streams = _restored_streams(
                meta["pending"], arrays["traces"], arrays["pending"], self._policy.weights.shape
            )
            self._policy.restore(meta, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{path}: does not fit this algorithm's spaces ({error}); use the document it was made with"
            ) from error
        self._streams = streams

    def _follow(self, stream: _Stream, transitions: Sequence[Transition], measured: _Measured) -> None:
        """Learn along one world's steps, in order."""
        if not transitions:
            return
        policy = self._policy
        rows = policy.features.batch([transition.observation for transition in transitions])
        for transition, row in zip(transitions, rows, strict=True):
            if stream.pending is not None and stream.pending.step + 1 == transition.step:
                self._learn(stream, stream.pending, float(policy.weights[-1].dot(row)), measured)
            elif stream.pending is not None:
                stream.forget()
            action = int(transition.action) - policy.first_action
            stream.pending = _Pending(transition.step, row, action, transition.reward)
            if transition.terminated:
                self._learn(stream, stream.pending, 0.0, measured)
            if transition.terminated or transition.truncated:
                stream.forget()

    def _learn(self, stream: _Stream, step: _Pending, next_value: float, measured: _Measured) -> None:
        """Move the weights by one step whose successor's value is known."""
        policy, settings = self._policy, self.settings
        outputs = policy.weights.dot(step.features).tolist()
        value = outputs.pop()
        probabilities, entropy = _softmax([preference / settings.temperature for preference in outputs])
        error = step.reward + settings.gamma * next_value - value
        gradient = [-probability / settings.temperature for probability in probabilities]
        gradient[step.action] += 1.0 / settings.temperature
        stream.traces *= self._decays
        stream.traces += np.outer([*gradient, 1.0], step.features)
        change = error * stream.traces
        if settings.entropy_bonus:
            change[:-1] += np.outer(_entropy_gradient(probabilities, entropy, settings), step.features)
        policy.weights += change * self._step_sizes
        measured.errors.append(error)
        measured.entropies.append(entropy)
        measured.values.append(value)


def _settings(given: Mapping[str, Any]) -> ActorCriticSettings:
    """Settings from a document's keys, unknown ones refused by name."""
    known = [entry.name for entry in fields(ActorCriticSettings)]
    for name in given:
        if name not in known:
            raise ConfigError(f"actor-critic has no setting {name!r}; {suggestion(name, [*known, 'seed'])}")
    return ActorCriticSettings(**given)


def _plain(settings: ActorCriticSettings) -> dict[str, Any]:
    """The settings as JSON values, ranges as lists of lists."""
    plain = asdict(settings)
    if settings.ranges is not None:
        plain["ranges"] = [None if pair is None else [float(end) for end in pair] for pair in settings.ranges]
    return plain


def _softmax(preferences: Sequence[float]) -> tuple[list[float], float]:
    """Probabilities and their entropy in nats."""
    highest = max(preferences)
    odds = [math.exp(preference - highest) for preference in preferences]
    total = sum(odds)
    probabilities = [weight / total for weight in odds]
    return probabilities, -sum(share * math.log(share) for share in probabilities if share > 0.0)


def _entropy_gradient(
    probabilities: Sequence[float], entropy: float, settings: ActorCriticSettings
) -> list[float]:
    """Weighted gradient of the entropy in the preferences: −p_i·(log p_i + H), over the temperature."""
    weight = settings.entropy_bonus / settings.temperature
    return [-weight * share * (math.log(share) + entropy) if share > 0.0 else 0.0 for share in probabilities]


def _restored_streams(
    pending: Sequence[Any],
    traces: np.ndarray[Any, Any],
    features: np.ndarray[Any, Any],
    shape: tuple[int, ...],
) -> list[_Stream]:
    """The streams a checkpoint holds; ValueError where its parts do not fit each other or `shape`."""
    if traces.shape != (len(pending), *shape) or features.shape != (len(pending), *shape[1:]):
        raise ValueError(f"traces have shape {traces.shape}, wanted {(len(pending), *shape)}")
    streams = [_Stream(np.array(trace, dtype=np.float64)) for trace in traces]
    for stream, row, unfinished in zip(streams, features, pending, strict=True):
        if unfinished is not None:
            step, action, reward = unfinished
            stream.pending = _Pending(int(step), np.array(row, dtype=np.float64), int(action), float(reward))
    return streams
