"""Running one experiment, from its configuration to a recorded trace.

Three things happen here and nowhere else. The algorithm is told when one configuration gave way to
another. The configuration provider is built and bound to the environment that can apply it. And the
environment is closed whatever happens, one that was passed in included, because an open persistent
world goes on costing money.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.building import build_provider, checked, prepared, reward_spec
from skyfall_core.bundle.planning import PlannedExport
from skyfall_core.bundle.writing import spaces_document
from skyfall_core.checkpoints import ALGORITHM, Checkpoint
from skyfall_core.config import ExperimentConfig
from skyfall_core.construction import build_algorithm, spaces_of
from skyfall_core.environments import close_after
from skyfall_core.errors import CheckpointError, EnvironmentFailedError, RunError, SkyfallError
from skyfall_core.protocols import regime_origin_from_info
from skyfall_core.recording import RunDirectory
from skyfall_core.rollout import RolloutCollector
from skyfall_core.run_directory import (
    RunState,
    check_document,
    read_windows,
    run_state,
    trace_path_for,
    write_spaces,
)
from skyfall_core.trace import TraceMode, TraceWriter
from skyfall_core.trackers.base import TrackedRun
from skyfall_core.trackers.tracking import build_trackers

__all__ = [
    "RunResult",
    "RunState",
    "ShiftDetector",
    "WindowReport",
    "run_experiment",
    "run_state",
    "trace_path_for",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one run produced. The metrics are not here: they are computed from the trace.

    Attributes:
        run_id: The run's name.
        steps: Steps taken; each world's own.
        window_metrics: What each update reported, in order.
        regimes: Labels of the configurations seen, in order of first appearance.
        provenance: What the environment reported about itself.
        trace_path: The trace, or None when nothing was recorded.
        export_path: The exported bundle, if one was asked for.
    """

    run_id: str
    steps: int
    window_metrics: list[dict[str, float]] = field(default_factory=list)
    regimes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    trace_path: Path | None = None
    export_path: Path | None = None

    @property
    def stationary(self) -> bool:
        """Whether the run saw only one configuration, which leaves half of the metrics without a value."""
        return len(self.regimes) <= 1


@dataclass(frozen=True, slots=True)
class WindowReport:
    """How far a run is, after one window.

    Attributes:
        steps: Steps taken so far; each world's own.
        mean_reward: Mean reward over the window.
        regimes: Labels of the configurations in the window, in order of first appearance.
        metrics: What the update reported.
    """

    steps: int
    mean_reward: float
    regimes: tuple[str, ...]
    metrics: Mapping[str, float]


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


def run_experiment(  # noqa: C901, PLR0912, PLR0913, PLR0915 - a run in its order; the names are documented
    config: ExperimentConfig,
    *,
    trace_path: str | Path | None = None,
    env: Any | None = None,
    algorithm: Any | None = None,
    trace_mode: TraceMode | str = TraceMode.CREATE,
    on_window: Callable[[WindowReport], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    export_dir: str | Path | None = None,
    export_external: str | Path | None = None,
) -> RunResult:
    """Run one experiment to its step budget.

    Args:
        config: What to run.
        trace_path: Where to record it, and nothing else; by default `trace_path_for(config)`, with
            everything that `run_directory` lists beside it.
        env: Used instead of the environment the configuration describes, and closed at the end all
            the same.
        algorithm: Used instead of the one the configuration describes.
        trace_mode: What to do about a trace that is already there. `resume` goes on from the run's newest
            whole checkpoint, begins where there is none, and gives the recorded result of a finished run.
        on_window: Called after each window's update.
        should_stop: Asked after each window; when it says so, a checkpoint is written and the run
            ends in `KeyboardInterrupt`.
        export_dir: Where to write an export bundle when the run is done, before the environment is
            closed; a bundle that is there is replaced where the trace is.
        export_external: Where its weights go if not into it (`skyfall_core.bundle.export_bundle`).

    Raises:
        InputError: If something the configuration names cannot be built, a trace or a bundle is in the
            way, the policy cannot be exported, or a checkpoint is another document's.
        RunError: If the run fails on its way; everything before is in the trace.
    """
    mode = TraceMode(trace_mode)
    path = trace_path_for(config) if trace_path is None else Path(trace_path)
    with ExitStack() as stack:
        if env is not None:
            stack.enter_context(_closing(env))
        directory = RunDirectory(path, config, mode) if path is not None and trace_path is None else None
        export = PlannedExport(
            directory=export_dir,
            external=export_external,
            config=config,
            run_dir=None if directory is None else directory.trace.parent,
            overwrite=mode is not TraceMode.CREATE,
        )
        if path is not None:
            TraceWriter.check(path, mode)
        if directory is not None:
            check_document(directory.trace)
            finished = directory.finished()
            if finished is not None:
                return replace(finished, export_path=export.write_finished())
        export.check_place()
        found = None if directory is None else directory.checkpoint()
        resumed_at = None if found is None else found.step
        tracked = TrackedRun.of(config, None if path is None else path.parent, resumed_at)
        tracking = build_trackers(config.trackers, tracked)
        provider = build_provider(config.regime)
        prepare = partial(prepared, reward_spec(config.reward), provider)
        if env is not None:
            env = prepare(env)
        else:
            env = config.environment.build(prepare)
            stack.enter_context(_closing(env))
        built = build_algorithm(config.algorithm, spaces_of(env)) if algorithm is None else algorithm
        learner = checked(built)
        export.check_policy(learner)
        collector = RolloutCollector(
            env,
            learner.policy,
            window_steps=config.rollout.window_steps,
            auto_reset=config.rollout.auto_reset,
            seed=config.run.seed,
            regime=provider,
            record_observations=config.rollout.record_observations,
        )
        life = Life(learner, collector, provider, ShiftDetector(provider))
        exact = True
        if found is None:
            collector.reset()
        else:
            exact = life.go_on(found)
        if path is not None:  # only now: a run that cannot begin neither replaces a trace nor leaves one
            if directory is not None:
                directory.cut_back(found)
            writer = TraceWriter(path, config.run.meta(), mode)
            collector.record_to(stack.enter_context(writer))
            if not exact:
                writer.mark_resumed()
            if directory is not None:
                stack.enter_context(directory.begin(writer, config, found))
                write_spaces(path, spaces_document(spaces_of(env)))
        stack.enter_context(tracking).begin()
        metrics, regimes = _earlier(directory, found)
        windows = collector.windows(config.rollout.total_steps)
        for report in _learn(windows, life, collector.step_index, tracking.shift):
            metrics.append(dict(report.metrics))
            regimes.update(dict.fromkeys(report.regimes))
            stopping = should_stop is not None and should_stop()  # once: what stops has a checkpoint
            if directory is not None:
                directory.report(asdict(report))
                directory.checkpoint_if_due(life, list(regimes), at_once=stopping)
            tracking.window(report)
            if on_window is not None:
                on_window(report)
            if stopping and report.steps < config.rollout.total_steps:
                raise KeyboardInterrupt(f"stopped after step {report.steps - 1}")
        if directory is not None and export_dir is not None:
            directory.score()  # so that the bundle holds it
        result = RunResult(
            str(config.run.name),
            collector.step_index,
            metrics,
            tuple(regimes),
            dict(collector.run),
            path,
            export.write(env, learner, collector.step_index),
        )
        tracking.finish(result)
    if directory is not None:
        directory.finish(result)
    return result


def _earlier(
    directory: RunDirectory | None, found: Checkpoint | None
) -> tuple[list[dict[str, float]], dict[str, None]]:
    """What the updates before a checkpoint reported, and the labels seen."""
    if directory is None or found is None:
        return [], {}
    return read_windows(directory.windows), dict.fromkeys(found.state["regimes"])


class Life:
    """What a checkpoint is taken of: the algorithm, the collector, the provider and the shifts told.

    Args:
        algorithm: What learns.
        collector: What drives the environment.
        provider: Says the configuration; may offer `save_state` and `load_state`.
        shifts: What finds shifts across windows.
    """

    def __init__(
        self, algorithm: Any, collector: RolloutCollector, provider: Any, shifts: ShiftDetector
    ) -> None:
        self.algorithm, self.shifts = algorithm, shifts
        self._collector, self._provider = collector, provider
        save = getattr(algorithm, "save_checkpoint", None)
        self.save_algorithm = save if callable(save) else None

    @property
    def step(self) -> int:
        """Steps taken."""
        return self._collector.step_index

    def state(self) -> dict[str, Any]:
        """Everything but the algorithm, as values that a checkpoint holds."""
        save = getattr(self._provider, "save_state", None)
        return {
            "position": self._collector.position(),
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
            exact = self._collector.go_on(state["position"])
            random.setstate(state["python"])
            np.random.set_state(state["numpy"])  # noqa: NPY002 - as above
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"does not fit this run ({type(error).__name__}: {error})"
            raise CheckpointError(f"{found.path}: {problem}; begin again with --overwrite") from error
        if not exact:
            _log.warning("the environment cannot go on where it was: reset at step %d", found.step)
        return exact


def _learn(
    windows: Iterator[RolloutWindow], life: Life, steps: int, on_shift: Callable[[Mapping[str, Any]], None]
) -> Iterator[WindowReport]:
    """Let the algorithm learn from each window, and say how far the run is."""
    algorithm = life.algorithm
    on_regime_shift = getattr(algorithm, "on_regime_shift", None)
    for window in windows:
        steps += len(window.streams[0]) if window.streams else len(window)
        doing = "on_regime_shift"
        try:
            for shift in life.shifts(window):
                if on_regime_shift is not None:
                    on_regime_shift(shift)
                on_shift(shift)
            doing = "update"
            metrics = _reported(algorithm.update(window))
        except SkyfallError:
            raise
        except Exception as error:
            problem = f"{doing} failed after step {steps - 1}: {type(error).__name__}: {error}"
            raise RunError(f"{type(algorithm).__name__}.{problem}") from error
        rewards = window.rewards
        yield WindowReport(steps, sum(rewards) / len(rewards), tuple(dict.fromkeys(window.regimes)), metrics)
        del window  # the next one is collected without holding on to this one


def _reported(metrics: Any) -> dict[str, float]:
    """What an update returned, as the mapping it has to be."""
    if not isinstance(metrics, Mapping):
        raise TypeError(
            f"it returned {metrics!r}; return a mapping of metrics, an empty one if there are none"
        )
    return dict(metrics)


@contextmanager
def _closing(env: Any) -> Iterator[None]:
    """Close `env` whatever happens, without hiding why the run ended."""
    try:
        yield
    except BaseException as failure:
        close_after(env, failure)
        raise
    try:
        env.close()
    except Exception as error:
        problem = f"{type(env).__name__} failed to close: {type(error).__name__}: {error}"
        raise EnvironmentFailedError(problem) from error
