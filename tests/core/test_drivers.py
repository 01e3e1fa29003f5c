"""The collector over several worlds: streams, rows, batches of actions, merged infos, masked resets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core.base import RolloutWindow
from skyfall_core.drivers import SeveralWorldsDriver, SingleWorldDriver, world_info
from skyfall_core.errors import EnvironmentFailedError, InputError, NonFiniteRewardError, RunError
from skyfall_core.regime import RegimeSchedule, ScheduledRegime
from skyfall_core.rollout import RolloutCollector
from skyfall_core.seeding import spread_seed
from skyfall_core.trace import TraceWriter


class World(gymnasium.Env[Any, Any]):
    """Counts its steps; ends an episode every `episode` steps; goes on all the same."""

    observation_space: gymnasium.Space[Any] = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space: gymnasium.Space[Any] = spaces.Discrete(10)

    def __init__(
        self, name: int = 0, episode: int = 100, info: Callable[[int], dict[str, Any]] | None = None
    ) -> None:
        self.name, self.episode, self.info = name, episode, info
        self.count = 0
        self.actions: list[Any] = []
        self.resets: list[int | None] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.resets.append(seed)
        self.count = 0
        return self.observation(), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        self.actions.append(action)
        info = self.info(self.count) if self.info else {}
        return (
            self.observation(),
            float(self.name * 100 + self.count),
            False,
            self.count % self.episode == 0,
            info,
        )

    def observation(self) -> Any:
        return np.array([self.name, self.count], np.float64)


class Persistent(VectorEnv[Any, Any, Any]):
    """Worlds that outlive their truncations, and one set of buffers for all batches."""

    def __init__(self, *worlds: World) -> None:
        self.worlds = worlds
        self.num_envs = len(worlds)
        self.metadata = {"autoreset_mode": AutoresetMode.DISABLED}
        self.single_observation_space = worlds[0].observation_space
        self.single_action_space = worlds[0].action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.batch = np.zeros((self.num_envs, 2))
        self.rewards = np.zeros(self.num_envs)
        self.masks: list[list[bool]] = []

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        mask = np.ones(self.num_envs, bool) if options is None else options["reset_mask"]
        self.masks.append(mask.tolist())
        for index in np.flatnonzero(mask):
            self.batch[index], _ = self.worlds[index].reset(seed=None if seed is None else seed[index])
        return self.batch, {}

    def step(self, actions: Any) -> Any:
        infos: dict[str, Any] = {}
        ends = np.zeros((2, self.num_envs), bool)
        for index, world in enumerate(self.worlds):
            self.batch[index], self.rewards[index], *ends[:, index], info = world.step(actions[index])
            infos = self._add_info(infos, info, index)
        return self.batch, self.rewards, *ends, infos


class Alone:
    """Acts for one world at a time, out of one buffer, and says what it thought last."""

    last_logprob: float | None = None
    last_value: float | None = None
    last_effective_rank: float | None = None

    def __init__(self) -> None:
        self.action = np.zeros((), np.int64)

    def act(self, observation: Any) -> Any:
        self.action[...] = int(observation[0]) + 1
        self.last_logprob = -float(observation[0])
        self.last_value = float(observation[1])
        self.last_effective_rank = 10.0 + float(observation[0])
        return self.action


class Together(Alone):
    """Acts for all worlds at once, into one buffer."""

    def __init__(self, worlds: int) -> None:
        super().__init__()
        self.actions = np.zeros(worlds, np.int64)

    def act_batch(self, observations: list[Any]) -> Any:
        self.actions[:] = [int(observation[0]) + 1 for observation in observations]
        self.last_logprob = [-float(observation[0]) for observation in observations]  # type: ignore[assignment]
        self.last_value = np.array([observation[1] for observation in observations])  # type: ignore[assignment]
        self.last_effective_rank = 10.0
        return self.actions


def collect(env: Any, policy: Any, steps: int, window_steps: int = 3, **kwargs: Any) -> list[RolloutWindow]:
    return list(RolloutCollector(env, policy, window_steps=window_steps, **kwargs).windows(steps))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def by_world(windows: list[RolloutWindow], world: int) -> list[Any]:
    return [window.transitions[position] for window in windows for position in (window.streams or ())[world]]


# ---- streams and rows


@given(worlds=st.integers(1, 4), steps=st.integers(1, 9), window_steps=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_streams_tell_each_worlds_own_life(worlds: int, steps: int, window_steps: int) -> None:
    env = Persistent(*(World(name, episode=2) for name in range(worlds)))
    windows = collect(env, Alone(), steps, window_steps)
    assert sum(map(len, windows)) == worlds * steps
    for world in range(worlds):
        life = by_world(windows, world)
        assert [one.step for one in life] == list(range(steps))
        assert [one.reward for one in life] == [100 * world + count for count in range(1, steps + 1)]
        assert [list(one.observation) for one in life] == [[world, count] for count in range(steps)]
        assert [one.truncated for one in life] == [count % 2 == 0 for count in range(1, steps + 1)]
    for window in windows:
        positions = sorted(position for stream in window.streams or () for position in stream)
        assert positions == list(range(len(window)))


def test_every_row_has_its_world_and_no_two_are_alike(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        collect(Persistent(World(0), World(1), World(2)), Alone(), 4, writer=writer)
    written = [(row["step"], row["world"], row["reward"]) for row in rows(tmp_path / "t.jsonl")]
    assert written == [(step, world, 100.0 * world + step + 1) for step in range(4) for world in range(3)]


def test_the_worlds_get_seeds_of_their_own_and_only_once() -> None:
    env = Persistent(World(0, episode=2), World(1, episode=3))
    collect(env, Alone(), 6, seed=7, auto_reset=True)
    first, second = spread_seed(7, 2)
    assert env.worlds[0].resets == [first, None, None]
    assert env.worlds[1].resets == [second, None]


# ---- acting


@pytest.mark.parametrize("policy", [Alone(), Together(3)], ids=["act", "act_batch"])
def test_each_world_gets_its_own_action_and_thoughts(tmp_path: Path, policy: Any) -> None:
    env = Persistent(World(0), World(1), World(2))
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        windows = collect(env, policy, 5, writer=writer)
    for world in range(3):
        assert [int(action) for action in env.worlds[world].actions] == [world + 1] * 5
        life = by_world(windows, world)
        assert [int(one.action) for one in life] == [world + 1] * 5
        assert [one.logprob for one in life] == [-world] * 5
        assert [one.value for one in life] == [0, 1, 2, 3, 4]
    ranks = {row["world"]: row["effective_rank"] for row in rows(tmp_path / "t.jsonl")}
    assert ranks == ({0: 10, 1: 11, 2: 12} if type(policy) is Alone else {0: 10, 1: 10, 2: 10})


@pytest.mark.parametrize("name", ["actions", "last_logprob"])
def test_a_batch_of_another_length_is_refused(name: str) -> None:
    class Short(Together):
        def act_batch(self, observations: list[Any]) -> Any:
            super().act_batch(observations)
            setattr(self, name, getattr(self, name)[:2])
            return self.actions

    what = "act_batch" if name == "actions" else name
    with pytest.raises(RunError, match=rf"Short\.{what} gave 2 values for 3 worlds at step 0; one each"):
        collect(Persistent(World(0), World(1), World(2)), Short(3), 1)


def test_a_policy_that_raises_is_named_with_the_step() -> None:
    class Tired(Alone):
        def act_batch(self, observations: list[Any]) -> Any:
            raise ValueError("tired")

    with pytest.raises(RunError, match="Tired failed to act at step 0: ValueError: tired"):
        collect(Persistent(World()), Tired(), 1)


def test_nested_spaces_are_batched_and_split() -> None:
    class Nested(World):
        observation_space = spaces.Dict(
            {"words": spaces.Text(9), "pair": spaces.Tuple((spaces.Box(0, 9, (2,)),))}
        )
        action_space = spaces.Dict({"tool": spaces.Discrete(5), "text": spaces.Text(9)})

        def observation(self) -> Any:
            return {"words": f"w{self.name}", "pair": (np.array([self.name, self.count], np.float32),)}

    class Reader:
        def act(self, observation: Any) -> Any:
            return {"tool": int(observation["pair"][0][0]), "text": observation["words"]}

    env = SyncVectorEnv([lambda: Nested(1), lambda: Nested(2)], autoreset_mode=AutoresetMode.DISABLED)
    windows = collect(env, Reader(), 3)
    for world, name in ((0, 1), (1, 2)):
        life = by_world(windows, world)
        assert [one.action for one in life] == [{"tool": name, "text": f"w{name}"}] * 3
        assert [one.observation["pair"][0][1] for one in life] == [0, 1, 2]
        assert all(
            {**action, "tool": int(action["tool"])} == life[0].action for action in env.envs[world].actions
        )


# ---- resets


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_worlds_that_reset_themselves_are_refused(mode: AutoresetMode) -> None:
    env = SyncVectorEnv([World, World], autoreset_mode=mode)
    with pytest.raises(InputError, match=rf"SyncVectorEnv has autoreset_mode {mode.name}, .*DISABLED"):
        RolloutCollector(env, Alone(), window_steps=1)


def test_a_vector_environment_that_does_not_say_is_refused() -> None:
    env = Persistent(World())
    env.metadata = {}
    with pytest.raises(InputError, match="autoreset_mode None"):
        RolloutCollector(env, Alone(), window_steps=1)


def test_truncation_resets_no_world() -> None:
    env = Persistent(World(0, episode=2), World(1, episode=3))
    collect(env, Alone(), 7)
    assert env.masks == [[True, True]]


def test_auto_reset_resets_each_world_at_its_own_end() -> None:
    env = Persistent(World(0, episode=2), World(1, episode=3))
    windows = collect(env, Alone(), 7, auto_reset=True)
    assert env.masks == [[True, True], [True, False], [False, True], [True, False], [True, True]]
    assert [one.observation[1] for one in by_world(windows, 0)] == [0, 1, 0, 1, 0, 1, 0]
    assert [one.observation[1] for one in by_world(windows, 1)] == [0, 1, 2, 0, 1, 2, 0]


def test_a_run_that_ends_with_an_episode_resets_no_more() -> None:
    env = Persistent(World(0, episode=2), World(1, episode=3))
    collect(env, Alone(), 2, auto_reset=True)
    assert env.masks == [[True, True]]


def test_gymnasiums_own_vector_environment_is_reset_world_by_world() -> None:
    env = SyncVectorEnv(
        [lambda: World(0, episode=2), lambda: World(1, episode=3)], autoreset_mode=AutoresetMode.DISABLED
    )
    windows = collect(env, Together(2), 7, auto_reset=True, seed=1)
    assert [one.observation[1] for one in by_world(windows, 0)] == [0, 1, 0, 1, 0, 1, 0]
    assert [one.observation[1] for one in by_world(windows, 1)] == [0, 1, 2, 0, 1, 2, 0]


# ---- infos and labels


def test_each_world_has_its_own_info_and_nobody_elses() -> None:
    def first(count: int) -> dict[str, Any]:
        return {"regime": {"id": "a", "boundary": count == 2}, "trace": {"profit": 1.5, "deep": {"n": count}}}

    def second(count: int) -> dict[str, Any]:
        return {"regime": "b", "note": f"step {count}", "array": np.full(2, count), "none": None}

    def third(count: int) -> dict[str, Any]:
        return {"regime": {"id": "c"}, "_private": 4, "list": [count], "final_obs": np.zeros(1)}

    windows = collect(Persistent(World(0, info=first), World(1), World(2, info=third)), Alone(), 2)
    one, none, three = (by_world(windows, world)[1] for world in range(3))
    assert one.info == first(2)
    assert none.info == {}
    assert three.info == third(2)
    assert (one.regime_id, one.boundary) == ("a", True)
    assert (none.regime_id, three.regime_id) == ("baseline", "c")
    (window,) = collect(Persistent(World(0, info=second)), Alone(), 2)
    assert {**window.transitions[1].info, "array": 0} == {
        "regime": "b",
        "note": "step 2",
        "array": 0,
        "none": None,
    }
    assert [list(one.info["array"]) for one in window.transitions] == [[1, 1], [2, 2]]


keys = st.sampled_from(["a", "b", "c", "_d"])
leaves = st.one_of(
    st.integers(-5, 5), st.text(max_size=3), st.lists(st.integers(0, 3), max_size=2), st.none()
)
# Gymnasium's merge types an array after the first world's value, so each key keeps one kind of value.
kinds = {
    "a": st.integers(-5, 5),
    "b": leaves.filter(lambda value: not isinstance(value, int)),
    "_d": st.booleans(),
}
flat = st.fixed_dictionaries({}, optional=kinds)
nested = st.tuples(flat, st.none() | flat).map(
    lambda pair: pair[0] if pair[1] is None else {**pair[0], "inner": pair[1]}
)


@given(st.lists(nested, min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_unmerging_undoes_gymnasiums_merge(infos: list[dict[str, Any]]) -> None:
    env = Persistent(*(World() for _ in infos))
    merged: dict[str, Any] = {}
    for world, info in enumerate(infos):
        merged = env._add_info(merged, info, world)
    assert [world_info(merged, world) for world in range(len(infos))] == infos


def test_an_entry_that_is_no_array_belongs_to_every_world() -> None:
    infos = {"clock": 7, "tariff": "night", "load": np.array([1, 2])}
    assert [world_info(infos, world) for world in range(2)] == [
        {"clock": 7, "tariff": "night", "load": 1},
        {"clock": 7, "tariff": "night", "load": 2},
    ]


def test_a_provider_labels_every_world_by_its_own_steps() -> None:
    schedule = RegimeSchedule([{"regime_id": "a", "duration_steps": 2}, {"regime_id": "b"}])
    windows = collect(Persistent(World(0), World(1)), Alone(), 4, regime=ScheduledRegime(schedule))
    for world in range(2):
        life = by_world(windows, world)
        assert [(one.regime_id, one.boundary) for one in life] == [
            ("a", False),
            ("a", False),
            ("b", True),
            ("b", False),
        ]


# ---- failures


def test_a_bad_reward_stops_with_world_and_step_after_all_rows_of_the_step(tmp_path: Path) -> None:
    class Ill(World):
        def step(self, action: Any) -> Any:
            observation, reward, *rest = super().step(action)
            return (observation, math.nan if self.count == 3 else reward, *rest)

    with (
        TraceWriter(tmp_path / "t.jsonl") as writer,
        pytest.raises(NonFiniteRewardError, match=r"Persistent returned reward .*nan.* at step 2 of world 1"),
    ):
        collect(Persistent(World(0), Ill(1), World(2)), Alone(), 5, writer=writer)
    last = [(row["step"], row["world"], row["reward"]) for row in rows(tmp_path / "t.jsonl")][-3:]
    assert last == [(2, 0, 3.0), (2, 1, None), (2, 2, 203.0)]


def test_a_failed_world_earns_nothing_that_a_score_would_count(tmp_path: Path) -> None:
    """Its rows stay, so that actions pair with transitions, but their reward is null and they say why."""

    def told(count: int) -> dict[str, Any]:
        if count < 2:
            return {}
        return {"world_failed": True, "trace": {"world_failed": True}}

    with TraceWriter(tmp_path / "t.jsonl") as writer:
        (window,) = collect(Persistent(World(0), World(1, info=told)), Alone(), 3, writer=writer)
    found = [(row["world"], row["reward"], row.get("world_failed")) for row in rows(tmp_path / "t.jsonl")]
    assert found == [
        (0, 1.0, None),
        (1, 101.0, None),
        (0, 2.0, None),
        (1, None, True),
        (0, 3.0, None),
        (1, None, True),
    ]
    assert len(window) == 6


def test_worlds_that_say_half_of_their_ends_are_named_with_the_step() -> None:
    class Half(Persistent):
        def step(self, actions: Any) -> Any:
            observations, rewards, terminations, truncations, infos = super().step(actions)
            return observations, rewards, terminations[:1], truncations, infos

    with pytest.raises(EnvironmentFailedError, match="Half failed at step 0: ValueError"):
        collect(Half(World(), World()), Alone(), 1)


def test_a_batch_that_raises_is_named_with_the_step() -> None:
    class Broken(World):
        def step(self, action: Any) -> Any:
            if self.count == 2:
                raise OSError("the cable is out")
            return super().step(action)

    with pytest.raises(
        EnvironmentFailedError, match="Persistent failed at step 2: OSError: the cable is out"
    ):
        collect(Persistent(World(0), Broken(1)), Alone(), 5)


def test_the_drivers_count_alike() -> None:
    for driver in (
        SingleWorldDriver(World(), Alone(), None, auto_reset=False),
        SeveralWorldsDriver(Persistent(World(), World()), Alone(), None, auto_reset=False),
    ):
        driver.reset(None)
        driver.collect(3)
        driver.collect(2)
        assert driver.step_index == 5
        driver.reset(None)
        assert driver.step_index == 0
