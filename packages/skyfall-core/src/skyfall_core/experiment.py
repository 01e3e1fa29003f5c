"""Running one experiment, from its configuration to a recorded trace.

Three things happen here and nowhere else. The algorithm is told when one configuration gave way to
another. The configuration provider is built and bound to the environment that can apply it. And the
environment is closed whatever happens, one that was passed in included, because an open persistent
world goes on costing money.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from skyfall_core import plugins, registry
from skyfall_core.base import Algorithm, RolloutWindow, Transition
from skyfall_core.config import ExperimentConfig, PolicyConfig, RegimeConfig, RewardConfig
from skyfall_core.environments import close_after
from skyfall_core.errors import ConfigError, EnvironmentFailedError, RunError, SkyfallError, TraceError
from skyfall_core.factories import call_factory, takes_keyword
from skyfall_core.plugins import Group
from skyfall_core.protocols import capability, regime_origin_from_info
from skyfall_core.rewards import RewardSpec, ScoredReward
from skyfall_core.rollout import RolloutCollector
from skyfall_core.trace import TRACE_FILE, TraceMode, TraceWriter

CONFIG_FILE = "config.yaml"
"""Name of the resolved document inside a run's directory."""

RESOLVED = "# Written by a run: its document with everything filled in.\n"
"""The resolved document's first line, by which a run knows that it may be replaced."""

__all__ = ["RunResult", "ShiftDetector", "WindowReport", "run_experiment", "trace_path_for"]


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
    """

    run_id: str
    steps: int
    window_metrics: list[dict[str, float]] = field(default_factory=list)
    regimes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    trace_path: Path | None = None

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


def trace_path_for(config: ExperimentConfig) -> Path | None:
    """Where the run's trace belongs, or None when the document names no `output_dir`."""
    if config.run.output_dir is None:
        return None
    return config.run.output_dir / str(config.run.name) / TRACE_FILE


def run_experiment(
    config: ExperimentConfig,
    *,
    trace_path: str | Path | None = None,
    env: Any | None = None,
    algorithm: Any | None = None,
    trace_mode: TraceMode | str = TraceMode.CREATE,
    on_window: Callable[[WindowReport], None] | None = None,
) -> RunResult:
    """Run one experiment to its step budget.

    Args:
        config: What to run.
        trace_path: Where to record it; by default `trace_path_for(config)`, with the resolved document
            beside it.
        env: Used instead of the environment the configuration describes, and closed at the end all
            the same.
        algorithm: Used instead of the one the configuration describes.
        trace_mode: What to do about a trace that is already there.
        on_window: Called after each window's update.

    Raises:
        InputError: If something the configuration names cannot be built, or a trace is in the way.
        RunError: If the run fails on its way; everything before is in the trace.
    """
    path = trace_path_for(config) if trace_path is None else Path(trace_path)
    with ExitStack() as stack:
        if env is not None:
            stack.enter_context(_closing(env))
        if path is not None:
            TraceWriter.check(path, trace_mode)
            if trace_path is None:
                _check_document(path)
        provider = _provider(config.regime)
        prepare = partial(_prepared, _reward_spec(config.reward), provider)
        if env is not None:
            env = prepare(env)
        else:
            env = config.environment.build(prepare)
            stack.enter_context(_closing(env))
        algorithm = _checked(_algorithm(config, env) if algorithm is None else algorithm)
        collector = RolloutCollector(
            env,
            algorithm.policy,
            window_steps=config.rollout.window_steps,
            auto_reset=config.rollout.auto_reset,
            seed=config.run.seed,
            regime=provider,
            record_observations=config.rollout.record_observations,
        )
        collector.reset()
        if path is not None:  # only now: a run that cannot begin neither replaces a trace nor leaves one
            writer = TraceWriter(path, config.run.meta(), trace_mode)
            collector.record_to(stack.enter_context(writer))
            if trace_path is None:
                _write_document(path, config)
        windows = collector.windows(config.rollout.total_steps)
        reports = _learn(windows, algorithm, ShiftDetector(provider))
        metrics, regimes = [], {}
        for report in reports:
            metrics.append(dict(report.metrics))
            regimes.update(dict.fromkeys(report.regimes))
            if on_window is not None:
                on_window(report)
        run_id = str(config.run.name)
        return RunResult(run_id, collector.step_index, metrics, tuple(regimes), dict(collector.run), path)


def _check_document(trace: Path) -> None:
    """Make sure that the resolved document will replace nobody's own file."""
    document, mark = trace.with_name(CONFIG_FILE), RESOLVED.encode()
    if not document.exists():
        return
    with document.open("rb") as file:
        begin = file.read(len(mark))
    if not mark.startswith(begin):  # a run that was killed or had no room left a part of the mark
        problem = f"{document} was written by no run and would be replaced by the resolved document"
        raise ConfigError(f"run.output_dir: {problem}; rename it, or choose another run.name or output_dir")


def _write_document(trace: Path, config: ExperimentConfig) -> None:
    document = trace.with_name(CONFIG_FILE)
    try:
        document.write_text(RESOLVED + config.to_yaml(), encoding="utf-8")
    except OSError as error:
        if not trace.stat().st_size:  # begun for this run, which cannot begin
            trace.unlink()
        problem = f"{document}: cannot be written: {error.strerror}"
        raise TraceError(f"{problem}; choose another output_dir") from error


def _learn(
    windows: Iterator[RolloutWindow], algorithm: Algorithm, shifts_in: ShiftDetector
) -> Iterator[WindowReport]:
    """Let the algorithm learn from each window, and say how far the run is."""
    on_regime_shift = getattr(algorithm, "on_regime_shift", None)
    steps = 0
    for window in windows:
        steps += len(window.streams[0]) if window.streams else len(window)
        doing = "on_regime_shift"
        try:
            for shift in shifts_in(window):
                if on_regime_shift is not None:
                    on_regime_shift(shift)
            doing = "update"
            metrics = dict(algorithm.update(window))
        except SkyfallError:
            raise
        except Exception as error:
            problem = f"{doing} failed after step {steps - 1}: {type(error).__name__}: {error}"
            raise RunError(f"{type(algorithm).__name__}.{problem}") from error
        rewards = window.rewards
        yield WindowReport(steps, sum(rewards) / len(rewards), tuple(dict.fromkeys(window.regimes)), metrics)
        del window  # the next one is collected without holding on to this one


def _provider(config: RegimeConfig) -> Any:
    factory = plugins.load(plugins.find(Group.REGIMES, config.provider))
    return call_factory(factory, config.params, "regime.params")


def _prepared(reward: RewardSpec | None, provider: Any, env: Any) -> Any:
    """`env` under the document's reward, with the provider bound where it can be."""
    if reward is not None:
        if not isinstance(env, gymnasium.Env):
            problem = (
                f"{type(env).__name__} is not a single gymnasium.Env, which is what a reward spec scores"
            )
            raise ConfigError(f"reward: {problem}; leave the section out or use environment.worlds")
        env = ScoredReward(env, reward)
    bind_regime = capability(env, "bind_regime")
    if callable(bind_regime):
        bind_regime(provider)
        return env
    for regime in getattr(provider, "regimes", ()):
        if regime.axes:
            axes = ", ".join(map(repr, regime.axes))
            problem = f"{regime.regime_id!r} sets {axes}, and nothing in the environment applies it"
            remedy = "add the wrapper 'skyfall_core.envs:AttributeShift' or leave the axes out"
            raise ConfigError(f"regime: configuration {problem}; {remedy}")
    return env


def _reward_spec(config: RewardConfig | None) -> RewardSpec | None:
    if config is None:
        return None
    spec = call_factory(plugins.resolve(Group.REWARDS, config.spec), config.params, "reward.params")
    if not isinstance(spec, RewardSpec):
        raise ConfigError(f"reward.spec: {config.spec!r} gave a {type(spec).__name__}, not a RewardSpec")
    return spec


def _algorithm(config: ExperimentConfig, env: Any) -> Any:
    several = isinstance(env, VectorEnv)
    spaces = {
        name: getattr(env, f"single_{name}" if several else name, None)
        for name in ("observation_space", "action_space")
    }
    factory, kwargs = registry.resolve(config.algorithm.name), dict(config.algorithm.kwargs)
    if config.algorithm.policy is not None:
        if not takes_keyword(factory, "policy"):
            raise ConfigError(f"algorithm.policy: {config.algorithm.name!r} takes no policy; leave it out")
        kwargs["policy"] = _policy(config.algorithm.policy, spaces)
    return call_factory(factory, kwargs, "algorithm.kwargs", **spaces)


def _checked(algorithm: Any) -> Any:
    """`algorithm`, if it has what a run cannot do without."""
    try:
        policy = getattr(algorithm, "policy", None)
    except Exception as error:
        problem = f"policy cannot be had: {type(error).__name__}: {error}"
        raise ConfigError(f"algorithm: {type(algorithm).__name__}.{problem}") from error
    for owner, name in ((algorithm, "update"), (policy, "act")):
        if not callable(getattr(owner, name, None)):
            whose = "algorithm" if owner is algorithm else "algorithm's policy"
            raise ConfigError(f"algorithm: {type(algorithm).__name__}: the {whose} {owner!r} has no {name}()")
    return algorithm


def _policy(config: PolicyConfig, spaces: Mapping[str, Any]) -> Any:
    factory = plugins.resolve(Group.POLICIES, config.factory)
    return call_factory(factory, config.kwargs, "algorithm.policy.kwargs", **spaces)


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
