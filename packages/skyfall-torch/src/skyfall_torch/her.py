"""Hindsight replay as the reference implements it, which is less than the name says.

There are no goals here, and no reward that depends on one: relabelling raises the reward of an
episode's last step to a constant, `future` does the same to earlier steps by chance, and a buffer
replays what was raised. The constant's default, 0.5, is MORPHEUS's reward ceiling (0.25 + 0.25);
on any other scale it and the admission threshold need choosing. Nothing here imports torch.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum
from random import Random
from typing import Any

__all__ = ["HERBuffer", "RelabelStrategy", "relabel_episode"]


class RelabelStrategy(str, Enum):
    """Which steps of an episode may be raised.

    `FINAL` raises the last step. `FUTURE` also raises step t of m with probability 1 / (m - t): the
    chance that a goal drawn from t, …, m - 1 is the last step. The goal itself is never used.
    """

    FINAL = "final"
    FUTURE = "future"


def relabel_episode(
    rewards: Sequence[float],
    *,
    success_reward: float,
    strategy: RelabelStrategy | str = RelabelStrategy.FINAL,
    rng: Random | None = None,
) -> list[float]:
    """One episode's rewards with some of them raised to `success_reward`, never lowered.

    Args:
        rewards: The episode's rewards in order; not modified.
        success_reward: The floor that a chosen step's reward is raised to.
        strategy: Which steps are chosen.
        rng: Source of chance for `future`; unseeded when None.

    Returns:
        A new list of the same length.

    Raises:
        ValueError: If `strategy` names none.

    Source: the reference's relabelling; the name is from Andrychowicz et al. 2017, arXiv 1707.01495.
    """
    strategy = RelabelStrategy(strategy)
    raised = list(rewards)
    if not raised:
        return raised
    last = len(raised) - 1
    if strategy is RelabelStrategy.FUTURE:
        rng = rng or Random()  # noqa: S311 - relabelling is no secret
        for step in range(last):
            if rng.randint(step, last) == last:
                raised[step] = max(raised[step], success_reward)
    raised[last] = max(raised[last], success_reward)
    return raised


class HERBuffer:
    """Keeps relabelled samples that clear admission and replays them into later batches.

    Args:
        capacity: How many are kept, the oldest leaving first. -1 disables the buffer. 0 is enabled
            with room for one, an asymmetry of the reference.
        admission_threshold: A sample enters when its relabelled reward is strictly greater.
        success_reward: What relabelling raises rewards to.
        strategy: Which steps are raised.
        seed: Seeds both the relabelling and the draws; None takes entropy from the system.

    Raises:
        ValueError: If `capacity` is below -1 or `strategy` names none.
    """

    def __init__(
        self,
        capacity: int,
        *,
        admission_threshold: float = 0.0,
        success_reward: float = 0.5,
        strategy: RelabelStrategy | str = RelabelStrategy.FINAL,
        seed: int | None = None,
    ) -> None:
        if capacity < -1:
            raise ValueError(f"capacity {capacity!r}: use -1 to disable replay, or how many samples to keep")
        self.capacity = capacity
        self.admission_threshold = admission_threshold
        self.success_reward = success_reward
        self.strategy = RelabelStrategy(strategy)
        self._rng = Random(seed)  # noqa: S311 - replay is no secret
        self._entries: deque[tuple[Any, float]] = deque(maxlen=max(1, capacity))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def enabled(self) -> bool:
        """Whether anything is ever stored."""
        return self.capacity != -1

    @property
    def entries(self) -> list[tuple[Any, float]]:
        """Stored samples with their relabelled rewards, oldest first."""
        return list(self._entries)

    def add(
        self, samples: Sequence[Any], rewards: Sequence[float], episode_lengths: Sequence[int] | None
    ) -> int:
        """Relabel a batch episode by episode and store what clears admission.

        Args:
            samples: The batch, episodes one after another.
            rewards: One a sample.
            episode_lengths: Lengths in order. None, or lengths that do not add up, make the whole
                batch one episode, so that only its last sample is raised.

        Returns:
            How many samples entered.

        Raises:
            ValueError: If there are not as many rewards as samples.
        """
        if len(samples) != len(rewards):
            raise ValueError(f"{len(samples)} samples but {len(rewards)} rewards: every sample needs one")
        if not self.enabled or not samples:
            return 0
        if episode_lengths is None or sum(episode_lengths) != len(samples):
            episode_lengths = [len(samples)]
        admitted = 0
        start = 0
        for length in episode_lengths:
            episode = relabel_episode(
                rewards[start : start + length],
                success_reward=self.success_reward,
                strategy=self.strategy,
                rng=self._rng,
            )
            for sample, reward in zip(samples[start : start + length], episode, strict=True):
                if reward > self.admission_threshold:
                    self._entries.append((sample, reward))
                    admitted += 1
            start += length
        return admitted

    def sample(self, count: int) -> list[tuple[Any, float]]:
        """Up to `count` stored samples with their relabelled rewards, drawn without replacement."""
        return self._rng.sample(self.entries, min(count, len(self._entries)))

    def random_state(self) -> list[Any]:
        """The generator's state as nested lists of integers, for a checkpoint."""
        version, internal, gauss = self._rng.getstate()
        return [version, list(internal), gauss]

    def restore(self, entries: Iterable[tuple[Any, float]], random_state: Sequence[Any]) -> None:
        """Replace the content and the generator's state by those of a checkpoint."""
        version, internal, gauss = random_state
        self._rng.setstate((version, tuple(internal), gauss))
        self._entries.clear()
        self._entries.extend(entries)
