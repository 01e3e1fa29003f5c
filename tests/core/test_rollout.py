"""The collector over one world: windows, resets, labels, records, and what nobody may change afterwards."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core.base import RolloutWindow
from skyfall_core.errors import EnvironmentFailedError, NonFiniteRewardError, RunError, TraceError
from skyfall_core.regime import RegimeSchedule, ScheduledRegime
from skyfall_core.rollout import RolloutCollector
from skyfall_core.trace import TraceWriter


class World(gymnasium.Env[np.ndarray, int]):
    """Counts steps, reuses every buffer it hands out, ends an episode every `episode` steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, episode: int = 4, reward: Any = 1.0, fails_at: int | None = None) -> None:
        self.episode, self.reward, self.fails_at = episode, reward, fails_at
        self.count = 0
        self.resets: list[int | None] = []
        self.observation = np.zeros(2)
        self.info: dict[str, Any] = {"trace": {"count": 0, "list": [0]}, "reward_components": {"c": 0.0}}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.resets.append(seed)
        self.observation[:] = (-1, len(self.resets))
        return self.observation, self.info

    def step(self, action: int) -> Any:
        if self.count == self.fails_at:
            raise OSError("the cable is out")
        self.count += 1
        self.observation[:] = (self.count, len(self.resets))
        self.info["trace"]["count"] = self.count
        self.info["trace"]["list"][0] = self.count
        self.info["reward_components"]["c"] = float(self.count)
        return self.observation, self.reward, False, self.count % self.episode == 0, self.info


class Double:
    """No `gymnasium.Env` at all."""

    def __init__(self, **info: Any) -> None:
        self.info = info

    def reset(self, seed: int | None = None) -> Any:
        return 0, {}

    def step(self, action: Any) -> Any:
        return 0, 1, False, False, self.info


class Constant:
    def act(self, observation: Any) -> Any:
        return 1


def collect(
    env: Any, steps: int, policy: Any = None, window_steps: int = 5, **kwargs: Any
) -> list[RolloutWindow]:
    collector = RolloutCollector(env, policy or Constant(), window_steps=window_steps, **kwargs)
    return list(collector.windows(steps))


def transitions(windows: list[RolloutWindow]) -> list[Any]:
    return [transition for window in windows for transition in window.transitions]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---- windows


@given(total=st.integers(1, 30), window_steps=st.integers(1, 12), episode=st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_windows_slice_one_run_and_keep_the_rest(total: int, window_steps: int, episode: int) -> None:
    windows = collect(World(episode), total, window_steps=window_steps, auto_reset=True)
    assert [len(window) for window in windows[:-1]] == [window_steps] * (len(windows) - 1)
    assert 1 <= len(windows[-1]) <= window_steps
    assert [one.step for one in transitions(windows)] == list(range(total))
    assert [list(*window.streams or ()) for window in windows] == [list(range(len(one))) for one in windows]


@pytest.mark.parametrize("window_steps", [0, -1])
def test_a_window_without_steps_is_refused(window_steps: int) -> None:
    with pytest.raises(ValueError, match="at least one step"):
        RolloutCollector(World(), Constant(), window_steps=window_steps)


def test_the_step_index_runs_across_windows_and_calls() -> None:
    collector = RolloutCollector(World(), Constant(), window_steps=4)
    seen = [(collector.step_index, len(window)) for window in collector.windows(6)]
    assert seen == [(4, 4), (6, 2)]
    assert [len(window) for window in collector.windows(9)] == [3]
    assert list(collector.windows(9)) == []


def test_beginning_again_counts_from_zero_without_the_seed() -> None:
    env = World()
    collector = RolloutCollector(env, Constant(), window_steps=4, seed=3)
    list(collector.windows(4))
    collector.reset()
    assert collector.step_index == 0
    assert [one.step for one in transitions(list(collector.windows(4)))] == [0, 1, 2, 3]
    assert env.resets == [3, None]


# ---- resets


def test_truncation_does_not_reset() -> None:
    env = World(episode=2)
    kept = transitions(collect(env, 9, seed=5))
    assert env.resets == [5]
    assert [one.truncated for one in kept] == [False, True] * 4 + [False]
    assert [one.observation[0] for one in kept] == [-1, *range(1, 9)]


def test_auto_reset_seeds_only_the_first_time() -> None:
    env = World(episode=3)
    kept = transitions(collect(env, 10, seed=5, auto_reset=True))
    assert env.resets == [5, None, None, None]
    assert [tuple(one.observation) for one in kept[2:5]] == [(2, 1), (-1, 2), (4, 2)]


def test_a_run_that_ends_with_an_episode_resets_no_more() -> None:
    env = World(episode=3)
    collect(env, 6, auto_reset=True)
    assert len(env.resets) == 2


def test_an_episode_that_ends_with_a_window_goes_on_in_a_new_one() -> None:
    env = World(episode=3)
    kept = transitions(collect(env, 6, window_steps=3, auto_reset=True))
    assert [one.observation[0] for one in kept] == [-1, 1, 2, -1, 4, 5]


# ---- nobody changes what is stored


def test_an_environment_that_reuses_its_buffers_changes_no_transition(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        kept = transitions(collect(World(episode=100), 6, writer=writer))
    assert [one.observation[0] for one in kept] == [-1, 1, 2, 3, 4, 5]
    assert [one.info["trace"] for one in kept] == [{"count": n, "list": [n]} for n in range(1, 7)]
    assert [one.reward_components for one in kept] == [{"c": float(n)} for n in range(1, 7)]
    assert [row["count"] for row in rows(tmp_path / "t.jsonl")] == list(range(1, 7))


class Buffered:
    """Acts out of one array, over and over, and thinks as it acts."""

    def __init__(self) -> None:
        self.action = np.zeros(1)
        self.last_logprob: float | None = None

    def act(self, observation: Any) -> np.ndarray:
        self.action += 1
        self.last_logprob = -float(self.action[0])
        return self.action


class Clipping(World):
    """Changes the action it is given, in place."""

    def step(self, action: Any) -> Any:
        action -= 0.5
        return super().step(action)


def test_neither_policy_nor_environment_changes_a_stored_action() -> None:
    assert [one.action[0] for one in transitions(collect(World(), 3, Buffered()))] == [1, 2, 3]
    kept = transitions(collect(Clipping(), 3, Buffered()))
    assert [one.action[0] for one in kept] == [1, 1.5, 2]
    assert [one.logprob for one in kept] == [-1, -1.5, -2]


# ---- labels and records


def test_a_shift_does_not_end_a_window() -> None:
    schedule = RegimeSchedule([{"regime_id": "a", "duration_steps": 3}, {"regime_id": "b"}])
    (window,) = collect(World(), 5, regime=ScheduledRegime(schedule))
    assert window.regimes == ["a", "a", "a", "b", "b"]
    assert [one.boundary for one in window.transitions] == [False, False, False, True, False]


def test_the_environments_own_label_beats_the_providers() -> None:
    schedule = RegimeSchedule([{"regime_id": "a", "duration_steps": 1}, {"regime_id": "b"}])
    (window,) = collect(Double(regime={"id": "own"}), 3, regime=ScheduledRegime(schedule))
    assert window.regimes == ["own"] * 3


def test_the_environments_record_is_kept_whole_below_the_harness(tmp_path: Path) -> None:
    record = {"reward": "theirs", "regime_id": "theirs", "profit": {"a": [1, None]}, "note": "x"}
    with TraceWriter(tmp_path / "t.jsonl", {"run_id": "r"}) as writer:
        (window,) = collect(Double(trace=record), 1, writer=writer)
    (row,) = rows(tmp_path / "t.jsonl")
    assert (row["reward"], row["regime_id"], row["profit"], row["note"]) == (
        1.0,
        "baseline",
        {"a": [1, None]},
        "x",
    )
    assert window.transitions[0].info["trace"] == record


class Described(gymnasium.Wrapper[Any, Any, Any, Any]):
    def describe_run(self) -> dict[str, Any]:
        return {"layout": "small"}


def test_a_capability_of_a_middle_wrapper_is_seen() -> None:
    env = TimeLimit(Described(gymnasium.make("CartPole-v1").unwrapped), 10)
    collector = RolloutCollector(env, Constant(), window_steps=4)
    (window,) = collector.windows(4)
    assert collector.run == window.run == {"layout": "small"}


def test_a_bare_double_can_be_driven_and_can_describe_itself() -> None:
    assert collect(Double(), 2)[0].run == {}
    double = Double()
    double.describe_run = lambda: {"who": "double"}  # type: ignore[attr-defined]
    assert collect(double, 2)[0].run == {"who": "double"}


def test_rows_carry_observations_only_on_request(tmp_path: Path) -> None:
    for record_observations in (False, True):
        path = tmp_path / f"{record_observations}.jsonl"
        with TraceWriter(path) as writer:
            collect(World(), 2, writer=writer, record_observations=record_observations)
        assert [row.get("observation") for row in rows(path)] == (
            [[-1, 1], [1, 1]] if record_observations else [None, None]
        )


def test_each_row_is_there_before_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    class Watching(World):
        def step(self, action: int) -> Any:
            assert len(rows(path)) == self.count
            return super().step(action)

    with TraceWriter(path) as writer:
        collect(Watching(), 7, writer=writer)
    assert len(rows(path)) == 7


# ---- failures


@pytest.mark.parametrize(
    "reward", [math.nan, math.inf, -math.inf, None, "1.0", np.float32("nan"), 10**400], ids=repr
)
def test_a_reward_that_is_no_finite_number_stops_after_its_row(tmp_path: Path, reward: Any) -> None:
    class Turning(World):
        def step(self, action: int) -> Any:
            observation, _, *rest = super().step(action)
            return (observation, reward if self.count == 4 else 1.0, *rest)

    with TraceWriter(tmp_path / "t.jsonl") as writer:
        collector = RolloutCollector(Turning(), Constant(), window_steps=10, writer=writer)
        with pytest.raises(NonFiniteRewardError, match=r"Turning returned reward .* at step 3;"):
            list(collector.windows(10))
    assert [row["reward"] for row in rows(tmp_path / "t.jsonl")] == [1.0, 1.0, 1.0, None]
    assert collector.step_index == 4


def test_an_environment_that_raises_is_named_with_the_step(tmp_path: Path) -> None:
    with (
        TraceWriter(tmp_path / "t.jsonl") as writer,
        pytest.raises(
            EnvironmentFailedError, match="World failed at step 5: OSError: the cable is out"
        ) as caught,
    ):
        collect(World(fails_at=5), 10, writer=writer)
    assert isinstance(caught.value.__cause__, OSError)
    assert [row["step"] for row in rows(tmp_path / "t.jsonl")] == list(range(5))


def test_an_environment_that_cannot_reset_is_named_with_the_step() -> None:
    class Once(World):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            if self.resets:
                raise ConnectionError("gone")
            return super().reset()

    collector = RolloutCollector(Once(episode=2), Constant(), window_steps=2, auto_reset=True)
    windows = collector.windows(4)
    assert len(next(windows)) == 2
    with pytest.raises(
        EnvironmentFailedError, match="Once failed to reset before step 2: ConnectionError: gone"
    ):
        next(windows)


@pytest.mark.parametrize(
    "answer",
    [
        (0, 1.0, False, {}),
        None,
        (0, 1.0, False, False, None),
        (0, 1.0, np.zeros(2), False, {}),
        (0, 1.0, False, False, {"reward_components": np.ones(2)}),
        (0, 1.0, False, False, {"reward_components": [1.0]}),
    ],
    ids=repr,
)
def test_an_environment_that_does_not_speak_gymnasium_is_named(answer: Any) -> None:
    double = Double()
    double.step = lambda action: answer  # type: ignore[method-assign]
    with pytest.raises(EnvironmentFailedError, match="Double failed at step 0"):
        collect(double, 1)


def test_an_environment_that_cannot_describe_itself_is_named() -> None:
    double = Double()
    double.describe_run = lambda: 1 / 0  # type: ignore[attr-defined]
    with pytest.raises(EnvironmentFailedError, match="Double failed to describe the run: ZeroDivisionError"):
        collect(double, 1)


def test_a_policy_that_raises_is_named_with_the_step() -> None:
    class Tired:
        def act(self, observation: Any) -> int:
            if observation[0] == 3:
                raise ValueError("tired")
            return 0

    with pytest.raises(RunError, match="Tired failed to act at step 3: ValueError: tired"):
        collect(World(), 5, Tired())


@pytest.mark.parametrize("name", ["last_logprob", "last_value", "last_effective_rank"])
def test_a_policy_that_cannot_say_what_it_thought_is_named_with_the_step(tmp_path: Path, name: str) -> None:
    broken = type("Broken", (Constant,), {name: property(lambda self: 1 / 0)})
    with (
        TraceWriter(tmp_path / "t.jsonl") as writer,
        pytest.raises(RunError, match="Broken failed to act at step 0: ZeroDivisionError"),
    ):
        collect(World(), 2, broken(), writer=writer)


def test_a_policy_that_reuses_its_buffers_changes_no_thought() -> None:
    class Reusing(Constant):
        def __init__(self) -> None:
            self.last_value = self.last_logprob = np.zeros(())

        def act(self, observation: Any) -> Any:
            self.last_value += 1
            return 0

    stored = transitions(collect(World(), 3, Reusing()))
    assert [(float(one.logprob), float(one.value)) for one in stored] == [(1, 1), (2, 2), (3, 3)]


def test_an_action_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    class Odd:
        def act(self, observation: Any) -> Any:
            return object()

    with (
        TraceWriter(tmp_path / "t.jsonl") as writer,
        pytest.raises(TraceError, match="step 0: 'action' has no JSON"),
    ):
        collect(World(), 5, Odd(), writer=writer)
