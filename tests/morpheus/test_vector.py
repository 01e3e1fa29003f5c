"""PersistentVectorEnv: persistence, isolation of failures, seeds, batching, and Gymnasium's own contract."""

from __future__ import annotations

import subprocess
import sys
import threading
from importlib.metadata import entry_points
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import iterate
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core.errors import SpaceError
from skyfall_core.protocols import capability
from skyfall_core.seeding import spread_seed
from skyfall_morpheus.errors import WorldsFailedError
from skyfall_morpheus.vector import OnError, PersistentVectorEnv


class Counter(gym.Env[np.ndarray, int]):
    """Counts its steps for as long as it lives; truncates every third; a reset starts it over."""

    metadata = {"render_modes": ["ansi"], "origin": "counter"}  # noqa: RUF012
    observation_space = spaces.Box(0.0, 1e6, (2,), np.float64)
    action_space = spaces.Discrete(10)
    render_mode = "ansi"

    def __init__(self, name: int = 0, info: dict[str, Any] | None = None) -> None:
        self.name = name
        self.info = info
        self.count = 0
        self.resets: list[tuple[int | None, dict[str, Any] | None]] = []
        self.closes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.resets.append((seed, options))
        self.count = 0
        return self._observation(), {"name": self.name}

    def step(self, action: int) -> Any:
        self.count += 1
        info = {"count": self.count} if self.info is None else self.info
        return self._observation(), float(action), self.count == 5, self.count % 3 == 0, info

    def render(self) -> str:
        return f"world {self.name}"

    def close(self) -> None:
        self.closes += 1

    def _observation(self) -> np.ndarray:
        return np.array([self.name, self.count], dtype=np.float64)


class Fragile(Counter):
    """Raises where it is told to."""

    def __init__(self, name: int = 0, *, on: str = "", at: int = 1) -> None:
        super().__init__(name)
        self.on = on
        self.at = at

    def reset(self, **kwargs: Any) -> Any:
        if self.on == "reset":
            raise ConnectionError("no world today")
        return super().reset(**kwargs)

    def step(self, action: int) -> Any:
        result = super().step(action)
        if self.on == "step" and self.count >= self.at:
            raise ConnectionError("the line went dead")
        return result

    def close(self) -> None:
        super().close()
        if self.on == "close":
            raise OSError(f"world {self.name} would not go")


def counters(count: int, **kwargs: Any) -> PersistentVectorEnv:
    return PersistentVectorEnv([lambda index=index: Counter(index) for index in range(count)], **kwargs)


def fragile(count: int, broken: set[int], on: str, **kwargs: Any) -> PersistentVectorEnv:
    def make(index: int) -> Any:
        return lambda: Fragile(index, on=on if index in broken else "")

    return PersistentVectorEnv([make(index) for index in range(count)], **kwargs)


def test_is_a_vector_environment_with_autoreset_disabled() -> None:
    envs = counters(3)
    assert isinstance(envs, VectorEnv)
    assert envs.metadata == {
        "render_modes": ["ansi"],
        "origin": "counter",
        "autoreset_mode": AutoresetMode.DISABLED,
    }
    assert "autoreset_mode" not in Counter.metadata
    assert envs.num_envs == 3
    assert envs.single_observation_space == Counter.observation_space
    assert envs.observation_space.shape == (3, 2)
    assert envs.action_space == spaces.MultiDiscrete([10, 10, 10])
    envs.close()


def test_truncation_and_termination_are_reported_and_never_reset_a_world() -> None:
    envs = counters(2)
    envs.reset(seed=1)
    flags = []
    for expected in range(1, 8):
        observations, rewards, terminations, truncations, infos = envs.step(np.array([1, 2]))
        np.testing.assert_array_equal(observations, [[0, expected], [1, expected]])
        np.testing.assert_array_equal(rewards, [1.0, 2.0])
        np.testing.assert_array_equal(infos["count"], [expected, expected])
        flags.append((terminations.tolist(), truncations.tolist()))
    assert flags[2] == ([False, False], [True, True])
    assert flags[4] == ([True, True], [False, False])
    assert [len(env.resets) for env in envs.envs] == [1, 1]
    envs.close()


def test_gymnasiums_own_vector_environment_refuses_the_step_that_goes_on_here() -> None:
    stock = SyncVectorEnv([Counter], autoreset_mode=AutoresetMode.DISABLED)
    stock.reset()
    for _ in range(3):
        stock.step(np.array([0]))
    with pytest.raises(AssertionError):
        stock.step(np.array([0]))


def test_a_base_seed_is_spread_and_neighbors_share_no_world_seed() -> None:
    envs = counters(16)
    seen: list[set[int]] = []
    for base in range(20):
        envs.reset(seed=np.int64(base))
        used = [env.resets[-1][0] for env in envs.envs]
        assert used == spread_seed(base, 16)
        seen.append(set(used))
    assert len(set.union(*seen)) == 20 * 16
    envs.close()


def test_seeds_may_be_given_one_a_world() -> None:
    envs = counters(3)
    envs.reset(seed=[7, np.int32(8), None])
    assert [env.resets[-1][0] for env in envs.envs] == [7, 8, None]
    envs.reset(seed=np.array([1, 2, 3]))
    assert [env.resets[-1][0] for env in envs.envs] == [1, 2, 3]
    with pytest.raises(ValueError, match="2 seeds for 3 worlds"):
        envs.reset(seed=[1, 2])
    envs.close()


def test_reset_mask_starts_only_the_selected_worlds_over() -> None:
    envs = counters(3)
    envs.reset()
    envs.step([1, 1, 1])
    options = {"reset_mask": np.array([False, True, False]), "layout": "x"}
    observations, infos = envs.reset(seed=5, options=options)
    np.testing.assert_array_equal(observations, [[0, 1], [1, 0], [2, 1]])
    assert [len(env.resets) for env in envs.envs] == [1, 2, 1]
    assert envs.envs[1].resets[-1] == (spread_seed(5, 3)[1], {"layout": "x"})
    np.testing.assert_array_equal(infos["_name"], [False, True, False])
    assert set(options) == {"reset_mask", "layout"}, "the caller's options were changed"
    envs.close()


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False, False], TypeError),
        (np.array([1, 0, 0]), TypeError),
        (np.array([True, False]), ValueError),
        (np.array([False, False, False]), ValueError),
    ],
)
def test_a_mask_that_cannot_hold_is_refused(mask: Any, error: type[Exception]) -> None:
    envs = counters(3)
    envs.reset()
    with pytest.raises(error, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})
    envs.close()


def test_a_mask_that_leaves_out_a_world_without_observation_is_refused() -> None:
    envs = counters(2)
    with pytest.raises(ValueError, match=r"worlds \[1\] were never reset"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ValueError, match="never reset"):
        envs.step([0, 0])
    envs.close()


def test_one_failing_world_is_raised_with_its_index_after_the_rest_have_finished() -> None:
    envs = fragile(4, {0, 2}, "step")
    envs.reset()
    with pytest.raises(WorldsFailedError) as caught:
        envs.step([1, 1, 1, 1])
    assert set(caught.value.failures) == {0, 2}
    assert "world 2: ConnectionError: the line went dead" in str(caught.value)
    assert [env.count for env in envs.envs] == [1, 1, 1, 1]
    observations, rewards, _, truncations, infos = caught.value.results
    np.testing.assert_array_equal(rewards, [0, 1, 0, 1])
    np.testing.assert_array_equal(observations[[1, 3]], [[1, 1], [3, 1]])
    np.testing.assert_array_equal(truncations, [True, False, True, False])
    np.testing.assert_array_equal(infos["_world_failed"], [True, False, True, False])
    envs.close()


def test_isolated_failure_leaves_the_rest_going_until_that_world_is_reset() -> None:
    envs = fragile(3, {1}, "step", on_error="isolate")
    assert envs.on_error is OnError.ISOLATE
    envs.reset()
    observations, rewards, terminations, truncations, infos = envs.step([4, 4, 4])
    np.testing.assert_array_equal(observations, [[0, 1], [1, 0], [2, 1]])
    np.testing.assert_array_equal(rewards, [4, 0, 4])
    np.testing.assert_array_equal(truncations, [False, True, False])
    assert not terminations.any()
    assert infos["world_error"].tolist() == [None, "ConnectionError: the line went dead", None]
    np.testing.assert_array_equal(infos["world_failed"], [False, True, False])

    infos = envs.step([4, 4, 4])[-1]
    assert [env.count for env in envs.envs] == [2, 1, 2], "a failed world was stepped again"
    np.testing.assert_array_equal(infos["world_failed"], [False, True, False])

    envs.envs[1].on = ""
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    infos = envs.step([4, 4, 4])[-1]
    assert [env.count for env in envs.envs] == [3, 1, 3]
    assert "world_failed" not in infos
    envs.close()


def test_a_failed_world_keeps_its_configuration_and_says_so_in_its_record() -> None:
    class Shifting(Fragile):
        def step(self, action: int) -> Any:
            *rest, info = super().step(action)
            told = {"regime": {"id": "edi_spike", "boundary": True, "origin": None}, "trace": {"own": 1}}
            return (*rest, {**info, **told})

    envs = PersistentVectorEnv([Shifting, lambda: Shifting(1, on="step", at=2)], on_error="isolate")
    envs.reset(seed=1)
    envs.step([0, 0])
    infos = envs.step([0, 0])[4]
    for later in (infos, envs.step([0, 0])[4]):
        assert later["regime"]["id"].tolist() == ["edi_spike", "edi_spike"]
        assert later["regime"]["boundary"].tolist() == [True, False]
        assert later["trace"]["world_failed"].tolist() == [False, True]
        assert later["trace"]["_world_failed"].tolist() == [False, True]
    assert "ConnectionError" in infos["trace"]["world_error"][1]
    envs.close()


def test_isolating_every_world_raises_after_all() -> None:
    envs = fragile(2, {0, 1}, "step", on_error="isolate")
    envs.reset()
    with pytest.raises(WorldsFailedError):
        envs.step([0, 0])
    envs.close()


def test_a_world_that_fails_its_first_reset_shows_a_blank_observation() -> None:
    envs = fragile(2, {1}, "reset", on_error="isolate")
    observations, infos = envs.reset()
    np.testing.assert_array_equal(observations, [[0, 0], [0, 0]])
    np.testing.assert_array_equal(infos["world_failed"], [False, True])
    envs.close()


def test_close_closes_every_world_once_and_reports_all_failures_together() -> None:
    envs = fragile(4, {1, 3}, "close")
    worlds = envs.envs
    with pytest.raises(WorldsFailedError) as caught:
        envs.close()
    assert set(caught.value.failures) == {1, 3}
    assert "world 1 would not go" in str(caught.value)
    assert "world 3 would not go" in str(caught.value)
    envs.close()
    assert [env.closes for env in worlds] == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="closed"):
        envs.step([0, 0, 0, 0])


def test_a_failing_factory_closes_the_worlds_built_before_it() -> None:
    built: list[Counter] = []

    def good() -> Counter:
        built.append(Counter())
        return built[-1]

    def bad() -> Counter:
        raise RuntimeError("no capacity")

    with pytest.raises(RuntimeError, match="no capacity"):
        PersistentVectorEnv([good, good, bad])
    assert [env.closes for env in built] == [1, 1]


def test_worlds_with_unequal_spaces_or_no_world_are_refused() -> None:
    class Other(Counter):
        action_space = spaces.Discrete(3)

    with pytest.raises(SpaceError, match="world 1: its action_space"):
        PersistentVectorEnv([Counter, Other])
    with pytest.raises(SpaceError, match="no factory"):
        PersistentVectorEnv([])


def test_worlds_step_at_the_same_time() -> None:
    barrier = threading.Barrier(6, timeout=20)

    class Meeting(Counter):
        def step(self, action: int) -> Any:
            barrier.wait()  # passes only when all six are inside step at once
            return super().step(action)

    envs = PersistentVectorEnv([Meeting] * 6)
    envs.reset()
    envs.step([0] * 6)
    envs.close()


def test_fewer_workers_than_worlds_still_step_every_world() -> None:
    envs = counters(5, max_workers=2)
    envs.reset()
    observations, *_ = envs.step([0] * 5)
    np.testing.assert_array_equal(observations[:, 1], [1] * 5)
    envs.close()


def test_a_wrong_number_of_actions_is_refused_before_any_world_moves() -> None:
    envs = counters(3)
    envs.reset()
    with pytest.raises(ValueError, match="2 actions for 3 worlds"):
        envs.step(np.array([1, 1]))
    assert [env.count for env in envs.envs] == [0, 0, 0]
    envs.close()


JSON_LIKE = spaces.Dict(
    {"text": spaces.Text(8), "level": spaces.Discrete(5), "grid": spaces.Box(0, 1, (2, 2), np.float32)}
)


class Anything(gym.Space[Any]):
    """A space Gymnasium knows nothing about."""

    def __init__(self) -> None:
        super().__init__(None, None)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        return {"value": int(self.np_random.integers(100))}

    def contains(self, x: Any) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Anything)

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (3,), np.float32),
        spaces.Discrete(4),
        spaces.MultiBinary(3),
        spaces.Text(12),
        JSON_LIKE,
        spaces.Tuple([spaces.Discrete(3), spaces.Text(4)]),
        Anything(),
        spaces.Dict({"free": Anything(), "n": spaces.Discrete(2)}),
    ],
    ids=["box", "discrete", "binary", "text", "dict", "tuple", "custom", "dict-custom"],
)
def test_observations_and_actions_of_any_space_are_batched_and_taken_apart(space: gym.Space[Any]) -> None:
    class Echo(gym.Env[Any, Any]):
        observation_space = space
        action_space = space

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return self.observation_space.sample(), {}

        def step(self, action: Any) -> Any:
            return action, 0.0, False, False, {}

    envs = PersistentVectorEnv([Echo] * 3)
    first, _ = envs.reset()
    assert len(list(iterate(envs.observation_space, first))) == 3
    sent = [space.sample() for _ in range(3)]
    actions = envs.action_space.sample()
    if isinstance(space, Anything):
        actions = tuple(sent)
    else:
        sent = list(iterate(envs.action_space, actions))
    observations = envs.step(actions)[0]
    received = list(iterate(envs.observation_space, observations))
    assert all(data_equivalence(a, b) for a, b in zip(received, sent, strict=True))
    envs.close()


@pytest.mark.parametrize("space", [spaces.Box(0, 9, (1,), np.float64), Anything()], ids=["box", "custom"])
def test_a_world_that_reuses_its_buffer_cannot_change_an_earlier_batch(space: gym.Space[Any]) -> None:
    class Reusing(gym.Env[Any, Any]):
        observation_space = space
        action_space = spaces.Discrete(2)

        def __init__(self) -> None:
            self.buffer = np.zeros(1)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return self.buffer, {}

        def step(self, action: Any) -> Any:
            self.buffer += 1
            return self.buffer, 0.0, False, False, {}

    envs = PersistentVectorEnv([Reusing, Reusing])
    first, _ = envs.reset()
    envs.step([0, 0])
    assert [float(part[0]) for part in first] == [0.0, 0.0]
    envs.close()


def test_infos_are_merged_as_gymnasium_merges_them() -> None:
    infos = [{"a": 1, "b": {"c": 2.5}, "s": "x"}, {"a": 2, "arr": np.arange(3)}]
    ours = PersistentVectorEnv([lambda info=info: Counter(info=info) for info in infos])
    stock = SyncVectorEnv([lambda info=info: Counter(info=info) for info in infos])
    ours.reset()
    stock.reset()
    assert data_equivalence(ours.step([0, 0])[-1], stock.step(np.array([0, 0]))[-1])
    ours.close()


def test_values_that_fit_no_common_array_are_kept_whole() -> None:
    infos = [
        {"x": 1, "y": None, "z": {"k": 1}, "w": 1.5},
        {"x": 1.5, "y": 2, "z": 3, "w": None},
        {"x": "word", "y": {"k": 1}, "z": {"k": 2}, "w": np.zeros(2)},
    ]
    envs = PersistentVectorEnv([lambda info=info: Counter(info=info) for info in infos])
    envs.reset()
    merged = envs.step([0, 0, 0])[-1]
    assert merged["x"].tolist() == [1, 1.5, "word"]
    assert merged["y"].tolist() == [None, 2, {"k": 1}]
    assert merged["z"].tolist() == [{"k": 1}, 3, {"k": 2}]
    assert merged["w"][:2].tolist() == [1.5, None]
    assert all(merged[f"_{key}"].all() for key in "xyzw")
    envs.close()


LEAF = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text("ab", max_size=2)
INFO = st.dictionaries(
    st.sampled_from("pqr"), LEAF | st.dictionaries(st.sampled_from("uv"), LEAF, min_size=1), max_size=3
)


def _unmerge(merged: dict[str, Any], index: int) -> dict[str, Any]:
    return {
        key: _unmerge(value, index) if isinstance(value, dict) else value[index]
        for key, value in merged.items()
        if not key.startswith("_") and merged["_" + key][index]
    }


@settings(deadline=None, max_examples=60)
@given(st.lists(INFO, min_size=3, max_size=3))
def test_every_world_gets_its_own_info_back_out_of_the_merged_one(infos: list[dict[str, Any]]) -> None:
    envs = counters(3)
    merged: dict[str, Any] = {}
    for index, info in enumerate(infos):
        merged = envs._add_info(merged, info, index)
    assert [_unmerge(merged, index) for index in range(3)] == infos
    envs.close()


def test_call_get_attr_set_attr_and_render_reach_every_world() -> None:
    envs = counters(3)
    envs.reset()
    assert envs.get_attr("name") == (0, 1, 2)
    assert envs.call("render") == envs.render() == ("world 0", "world 1", "world 2")
    envs.set_attr("name", [5, 6, 7])
    assert envs.get_attr("name") == (5, 6, 7)
    envs.set_attr("name", 9)
    assert envs.get_attr("name") == (9, 9, 9)
    with pytest.raises(ValueError, match="2 values for 3 worlds"):
        envs.set_attr("name", [1, 2])
    envs.close()


class Describing(Counter):
    provider: Any = None

    def describe_run(self) -> dict[str, Any]:
        return {"world": self.name}

    def bind_regime(self, provider: Any) -> None:
        self.provider = provider


def test_optional_capabilities_exist_exactly_where_every_world_has_them() -> None:
    plain = PersistentVectorEnv([Counter, Describing])
    assert capability(plain, "describe_run") is None
    assert capability(plain, "bind_regime") is None
    plain.close()

    envs = PersistentVectorEnv([lambda: gym.wrappers.TimeLimit(Describing(4), 9), lambda: Describing(5)])
    assert envs.describe_run() == {"num_worlds": 2, "worlds": [{"world": 4}, {"world": 5}]}
    provider = object()
    envs.bind_regime(provider)
    assert envs.get_attr("provider") == (provider, provider)
    envs.close()


def test_matches_the_stock_vector_environment_until_an_episode_ends() -> None:
    seeds = [3, 4, 5]
    ours = PersistentVectorEnv([lambda: gym.make("CartPole-v1")] * 3)
    stock = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 3)
    assert data_equivalence(ours.reset(seed=seeds), stock.reset(seed=seeds))
    ours.action_space.seed(0)
    for _ in range(8):
        actions = ours.action_space.sample()
        assert data_equivalence(ours.step(actions), stock.step(actions))
    ours.close()
    stock.close()


def test_gymnasium_vector_wrappers_apply() -> None:
    envs = gym.wrappers.vector.DictInfoToList(counters(2))
    envs.reset()
    infos = envs.step(np.array([0, 0]))[-1]
    assert infos == [{"count": 1}, {"count": 1}]
    envs.close()


def test_is_registered_as_the_persistent_vector_plugin() -> None:
    (found,) = [entry for entry in entry_points(group="skyfall.vectors") if entry.name == "persistent"]
    assert found.load() is PersistentVectorEnv


def test_importing_the_module_loads_no_http_library() -> None:
    probe = (
        "import sys, skyfall_morpheus.vector; sys.exit('httpx' in sys.modules or 'uvicorn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
