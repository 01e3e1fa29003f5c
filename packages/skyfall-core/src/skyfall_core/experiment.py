"""Running one experiment, from its configuration to a recorded trace.

Three things happen here and nowhere else. The algorithm and the environment are brought together. The
configuration provider is built and bound to the environment that can apply it. And the environment is
closed whatever happens, one that was passed in included, because an open persistent world goes on
costing money.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from skyfall_core.building import build_provider, checked, prepared, reward_spec
from skyfall_core.bundle.planning import PlannedExport
from skyfall_core.bundle.writing import spaces_document
from skyfall_core.checkpoints import Checkpoint
from skyfall_core.config import ExperimentConfig
from skyfall_core.construction import build_algorithm, spaces_of
from skyfall_core.environments import close_after
from skyfall_core.errors import EnvironmentFailedError
from skyfall_core.life import Life, ShiftDetector
from skyfall_core.recording import RunDirectory
from skyfall_core.reports import RunResult, WindowReport
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
from skyfall_core.trackers.tracking import Tracking, build_trackers

__all__ = [
    "RunResult",
    "RunState",
    "ShiftDetector",
    "WindowReport",
    "run_experiment",
    "run_state",
    "trace_path_for",
]


def run_experiment(  # noqa: PLR0913 - the names are documented
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
        finished = _look(path, mode, directory)
        if finished is not None:
            return replace(finished, export_path=export.write_finished())
        export.check_place()
        found = None if directory is None else directory.checkpoint()
        tracking = _trackers(config, path, found)
        env, life = _born(stack, config, env, algorithm)
        export.check_policy(life.algorithm)
        exact = life.begin(found)
        # only now: a run that cannot begin neither replaces a trace nor leaves one
        if path is not None:
            writer = _record(stack, life, path, config, mode, directory, found)
            if not exact:
                writer.mark_resumed()
        if directory is not None:
            write_spaces(directory.trace, spaces_document(spaces_of(env)))
        stack.enter_context(tracking).begin()
        told = _Told(config.rollout.total_steps, life, directory, tracking, on_window, should_stop, found)
        for report in life.learn(config.rollout.total_steps, tracking.shift):
            told.take(report)
        if directory is not None and export_dir is not None:
            directory.score()  # so that the bundle holds it
        exported = export.write(env, life.algorithm, life.step)
        result = told.result(config, path, exported)
        tracking.finish(result)
    if directory is not None:
        directory.finish(result)
    return result


def _look(path: Path | None, mode: TraceMode, directory: RunDirectory | None) -> RunResult | None:
    """Refuse what is in the way; the recorded result of a run that is finished already, else None."""
    if path is not None:
        TraceWriter.check(path, mode)
    if directory is None:
        return None
    check_document(directory.trace)
    return directory.finished()


def _trackers(config: ExperimentConfig, path: Path | None, found: Checkpoint | None) -> Tracking:
    resumed_at = None if found is None else found.step
    return build_trackers(
        config.trackers, TrackedRun.of(config, None if path is None else path.parent, resumed_at)
    )


def _born(
    stack: ExitStack, config: ExperimentConfig, env: Any | None, algorithm: Any | None
) -> tuple[Any, Life]:
    """The environment, closed with `stack` whoever built it, and the algorithm's life in it."""
    provider = build_provider(config.regime)
    prepare = partial(prepared, reward_spec(config.reward), provider)
    if env is not None:
        env = prepare(env)
    else:
        env = config.environment.build(prepare)
        stack.enter_context(_closing(env))
    learner = checked(build_algorithm(config.algorithm, spaces_of(env)) if algorithm is None else algorithm)
    collector = RolloutCollector(
        env,
        learner.policy,
        window_steps=config.rollout.window_steps,
        auto_reset=config.rollout.auto_reset,
        seed=config.run.seed,
        regime=provider,
        record_observations=config.rollout.record_observations,
    )
    return env, Life(learner, collector, provider)


def _record(
    stack: ExitStack,
    life: Life,
    path: Path,
    config: ExperimentConfig,
    mode: TraceMode,
    directory: RunDirectory | None,
    found: Checkpoint | None,
) -> TraceWriter:
    """Open the trace and what is kept beside it, until `stack` ends."""
    if directory is not None:
        directory.cut_back(found)
    writer = stack.enter_context(TraceWriter(path, config.run.meta(), mode))
    life.collector.record_to(writer)
    if directory is not None:
        stack.enter_context(directory.begin(writer, config, found))
    return writer


@dataclass(slots=True)
class _Told:
    """Everyone who is told of a window, in order, and what was told so far."""

    total_steps: int
    life: Life
    directory: RunDirectory | None
    tracking: Tracking
    on_window: Callable[[WindowReport], None] | None
    should_stop: Callable[[], bool] | None
    found: Checkpoint | None
    metrics: list[dict[str, float]] = field(default_factory=list)
    regimes: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.directory is not None and self.found is not None:  # what was told before the checkpoint
            self.metrics = read_windows(self.directory.windows)
            self.regimes = dict.fromkeys(self.found.state["regimes"])

    def take(self, report: WindowReport) -> None:
        """Record one window; ends the run in `KeyboardInterrupt` where it was asked to stop."""
        self.metrics.append(dict(report.metrics))
        self.regimes.update(dict.fromkeys(report.regimes))
        stopping = self.should_stop is not None and self.should_stop()  # once: what stops has a checkpoint
        if self.directory is not None:
            self.directory.report(asdict(report))
            self.directory.checkpoint_if_due(self.life, list(self.regimes), at_once=stopping)
        self.tracking.window(report)
        if self.on_window is not None:
            self.on_window(report)
        if stopping and report.steps < self.total_steps:
            raise KeyboardInterrupt(f"stopped after step {report.steps - 1}")

    def result(self, config: ExperimentConfig, path: Path | None, exported: Path | None) -> RunResult:
        """What the run produced."""
        collector = self.life.collector
        return RunResult(
            str(config.run.name),
            collector.step_index,
            self.metrics,
            tuple(self.regimes),
            dict(collector.run),
            path,
            exported,
        )


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
