"""An algorithm that lives in a world: told of shifts, updated with each window, written down and restored."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.checkpoints import ALGORITHM, Checkpoint
from skyfall_core.errors import CheckpointError, RunError, SkyfallError
from skyfall_core.protocols import regime_origin_from_info
from skyfall_core.reports import WindowReport
from skyfall_core.rollout import RolloutCollector

__all__ = ["Life", "ShiftDetector"]

_log = logging.getLogger(__name__)


class ShiftDetector:
    """Finds where one configuration gave way to another, across windows.

    A shift is where the label changes or a boundary is flagged, never a world's first step. One that
    all worlds share at one step is told once, any other with its `world`.

    Args:
        provider: Says what a configuration repeats where the environment does not, or None.
    """

    def __init__(self, provider: Any = None) -> None:
        self._regime_at = getattr(provider, "regime_at", None)
        self._labels: dict[int, str] = {}

    @property
    def labels(self) -> dict[int, str]:
        """The last label of each world, which is all that a later process needs to go on from."""
        return self._labels

    def go_on(self, labels: Mapping[int, str]) -> None:
        """Go on from the `labels` of an earlier detector."""
        self._labels = dict(labels)

    def __call__(self, window: RolloutWindow) -> list[dict[str, Any]]:
        """The shifts inside `window` in step order, as `on_regime_shift` takes them."""
        streams = window.streams or ()
        found: dict[tuple[int, str, str], list[tuple[int, Transition]]] = {}
        for world, stream in enumerate(streams):
            for position in stream:
                transition = window.transitions[position]
                current, previous = transition.regime_id, self._labels.get(world)
                if previous is not None and (transition.boundary or current != previous):
                    found.setdefault((transition.step, previous, current), []).append((world, transition))
                self._labels[world] = current
        told = []
        for (step, previous, current), happened in sorted(found.items(), key=lambda item: item[0]):
            shared = len(happened) == len(streams)
            for world, transition in happened[:1] if shared else happened:
                shift = {
                    "previous": previous,
                    "current": current,
                    "origin": self._origin(transition),
                    "step": step,
                }
                told.append(shift if shared else {**shift, "world": world})
        return told

    def _origin(self, transition: Transition) -> str | None:
        if "regime" in transition.info or self._regime_at is None:
            return regime_origin_from_info(transition.info)
        origin = self._regime_at(transition.step).origin
        return None if origin is None else str(origin)


class Life:
    """One algorithm in one world: begun or gone on with, learning window by window, and written down.

    Args:
        algorithm: What learns.
        collector: What drives the environment.
        provider: Says the configuration; may offer `save_state` and `load_state`.
    """

    def __init__(self, algorithm: Any, collector: RolloutCollector, provider: Any) -> None:
        self.algorithm, self.collector, self.shifts = algorithm, collector, ShiftDetector(provider)
        self._provider = provider
        save = getattr(algorithm, "save_checkpoint", None)
        self.save_algorithm = save if callable(save) else None

    @property
    def step(self) -> int:
        """Steps taken."""
        return self.collector.step_index

    def state(self) -> dict[str, Any]:
        """Everything but the algorithm, as values that a checkpoint holds."""
        save = getattr(self._provider, "save_state", None)
        return {
            "position": self.collector.position(),
            "labels": self.shifts.labels,
            "provider": save() if callable(save) else None,
            "python": random.getstate(),
            "numpy": np.random.get_state(legacy=False),  # noqa: NPY002 - what foreign code draws from
        }

    def go_on(self, found: Checkpoint) -> bool:
        """Continue from a checkpoint; returns whether the environment stands where it stood.

        Raises:
            CheckpointError: If it does not fit this run.
        """
        state = found.state
        load = getattr(self.algorithm, "load_checkpoint", None)
        try:
            if found.learned and callable(load):
                load(found.path / ALGORITHM)
            else:
                name = type(self.algorithm).__name__
                _log.warning("%s wrote no state down: it begins afresh at step %d", name, found.step)
            if state["provider"] is not None:
                self._provider.load_state(state["provider"])
            self.shifts.go_on(state["labels"])
            exact = self.collector.go_on(state["position"])
            random.setstate(state["python"])
            np.random.set_state(state["numpy"])  # noqa: NPY002 - as above
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"does not fit this run ({type(error).__name__}: {error})"
            raise CheckpointError(f"{found.path}: {problem}; begin again with --overwrite") from error
        if not exact:
            _log.warning("the environment cannot go on where it was: reset at step %d", found.step)
        return exact

    def begin(self, found: Checkpoint | None) -> bool:
        """Begin at step 0, or go on from a checkpoint; whether the environment stands where it stood.

        Raises:
            CheckpointError: If the checkpoint does not fit this run.
            EnvironmentFailedError: If the environment raises.
        """
        if found is not None:
            return self.go_on(found)
        self.collector.reset()
        return True

    def learn(
        self, total_steps: int, on_shift: Callable[[Mapping[str, Any]], None]
    ) -> Iterator[WindowReport]:
        """Let the algorithm learn from each window until the run has `total_steps` steps.

        Args:
            total_steps: The budget; each world's own.
            on_shift: Told of each shift after the algorithm was.

        Raises:
            RunError: If the algorithm or the environment fails; names the step.
        """
        steps = self.step
        for window in self.collector.windows(total_steps):
            steps += len(window.streams[0]) if window.streams else len(window)
            metrics = self._learn_from(window, steps - 1, on_shift)
            rewards, regimes = window.rewards, tuple(dict.fromkeys(window.regimes))
            del window  # the next one is collected without holding on to this one
            yield WindowReport(steps, sum(rewards) / len(rewards), regimes, metrics)

    def _learn_from(
        self, window: RolloutWindow, last: int, on_shift: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, float]:
        tell = getattr(self.algorithm, "on_regime_shift", None)
        doing = "on_regime_shift"
        try:
            for shift in self.shifts(window):
                if tell is not None:
                    tell(shift)
                on_shift(shift)
            doing = "update"
            return _reported(self.algorithm.update(window))
        except SkyfallError:
            raise
        except Exception as error:
            problem = f"{doing} failed after step {last}: {type(error).__name__}: {error}"
            raise RunError(f"{type(self.algorithm).__name__}.{problem}") from error


def _reported(metrics: Any) -> dict[str, float]:
    """What an update returned, as the mapping it has to be."""
    if not isinstance(metrics, Mapping):
        raise TypeError(
            f"it returned {metrics!r}; return a mapping of metrics, an empty one if there are none"
        )
    return dict(metrics)
