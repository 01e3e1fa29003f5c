"""AttributeShift: what a configuration sets is what the physics sees, and nothing else changes."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.wrappers import TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core.envs import AttributeShift
from skyfall_core.errors import ConfigError
from skyfall_core.regime import ConstantRegime, RegimeSchedule, ScheduledRegime
from skyfall_core.schedule import Regime


def schedule(*entries: dict[str, Any], **options: Any) -> ScheduledRegime:
    named = [{"regime_id": f"r{index}", **entry} for index, entry in enumerate(entries)]
    return ScheduledRegime(RegimeSchedule(named, **options))


def shifted(env: gymnasium.Env[Any, Any], *entries: dict[str, Any], **options: Any) -> AttributeShift:
    wrapper = AttributeShift(env)
    wrapper.bind_regime(schedule(*entries, **options))
    return wrapper


def trajectory(env: gymnasium.Env[Any, Any], actions: list[Any], seed: int = 3) -> np.ndarray:
    first, _ = env.reset(seed=seed)
    return np.stack([first, *(env.step(action)[0] for action in actions)])


class Plain(gymnasium.Env[Any, Any]):
    """Has an attribute of every kind."""

    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(2)
    CLASSWIDE = 1.0

    def __init__(self) -> None:
        self.rate = 2.0
        self.count = 3
        self.flag = True
        self.mode = "slow"
        self.nothing = None
        self.small = np.float32(0.5)
        self._hidden = 4.0
        self.seen: list[Any] = []

    @property
    def fixed(self) -> float:
        return 1.0

    @property
    def settable(self) -> float:
        return self._hidden

    @settable.setter
    def settable(self, value: float) -> None:
        self._hidden = value

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.seen.append(("reset", self.rate))
        return 0, {}

    def step(self, action: Any) -> Any:
        self.seen.append(("step", self.rate))
        return 0, 1.0, False, False, {"own": 1}


# ---- physics


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "gravity": st.floats(1, 20),
            "length": st.floats(0.1, 2),
            "masspole": st.floats(0.01, 1),
            "masscart": st.floats(0.1, 3),
            "force_mag": st.floats(1, 20),
            "tau": st.floats(0.005, 0.05),
        },
    ),
    st.lists(st.integers(0, 1), min_size=1, max_size=30),
)
@settings(max_examples=30, deadline=None)
def test_cartpole_moves_as_if_it_had_been_built_so(axes: dict[str, float], actions: list[int]) -> None:
    class Built(CartPoleEnv):
        """CartPole with other constants from its first line on: the derived ones follow by its own rule."""

        def __init__(self) -> None:
            super().__init__()
            vars(self).update(axes)
            self.total_mass = self.masspole + self.masscart
            self.polemass_length = self.masspole * self.length

    gentle = CartPoleEnv()
    for env in (gentle, built := Built()):
        env.theta_threshold_radians = env.x_threshold = 1e9
    moved = trajectory(shifted(gentle, {"axes": axes}), actions)
    np.testing.assert_array_equal(moved, trajectory(built, actions))


def test_cartpole_follows_every_shift_and_returns() -> None:
    env = shifted(
        CartPoleEnv(),
        {"duration_steps": 2, "axes": {"length": 1.0, "masspole": 0.2}},
        {"duration_steps": 2, "axes": {"masscart": 2.0}},
        {"duration_steps": 2},
    )
    env.reset(seed=0)
    seen = []
    for _ in range(6):
        env.step(0)
        base: Any = env.unwrapped
        seen.append((base.length, base.total_mass, base.polemass_length))
    np.testing.assert_allclose(seen, [(1, 1.2, 0.2)] * 2 + [(0.5, 2.1, 0.05)] * 2 + [(0.5, 1.1, 0.05)] * 2)


@pytest.mark.parametrize(
    ("name", "axes", "action"),
    [
        ("Pendulum-v1", {"g": 3.0, "m": 2.0}, np.array([1.0], np.float32)),
        ("Acrobot-v1", {"LINK_LENGTH_1": 2.0, "LINK_MASS_2": 0.5}, 0),
        ("MountainCar-v0", {"gravity": 0.004, "force": 0.002}, 2),
        ("MountainCarContinuous-v0", {"power": 0.003}, np.array([1.0], np.float32)),
    ],
)
def test_other_environments_shift_too(name: str, axes: dict[str, float], action: Any) -> None:
    reference = gymnasium.make(name)
    vars(reference.unwrapped).update(axes)
    moved = trajectory(shifted(gymnasium.make(name), {"axes": axes}), [action] * 20)
    np.testing.assert_array_equal(moved, trajectory(reference, [action] * 20))
    assert not np.array_equal(moved, trajectory(gymnasium.make(name), [action] * 20))


def test_a_class_attribute_is_shifted_for_this_environment_alone() -> None:
    before = AcrobotEnv.LINK_LENGTH_1
    env = shifted(AcrobotEnv(), {"axes": {"LINK_LENGTH_1": 2.0}})
    env.reset(seed=0)
    assert env.unwrapped.LINK_LENGTH_1 == 2.0  # type: ignore[attr-defined]
    assert before == AcrobotEnv.LINK_LENGTH_1 == AcrobotEnv().LINK_LENGTH_1


# ---- when


def test_the_configuration_of_a_step_is_in_force_before_it() -> None:
    env = shifted(
        Plain(), {"duration_steps": 2, "axes": {"rate": 5.0}}, {"duration_steps": 1}, {"axes": {"rate": 7}}
    )
    env.reset()
    for _ in range(4):
        env.step(0)
    env.reset()
    assert env.unwrapped.seen == [  # type: ignore[attr-defined]
        ("reset", 5.0),
        ("step", 5.0),
        ("step", 5.0),
        ("step", 2.0),
        ("step", 7),
        ("reset", 7),
    ]


def test_a_drift_is_felt_step_by_step() -> None:
    env = shifted(
        Plain(),
        {"duration_steps": 2, "axes": {"rate": 4.0}},
        {"axes": {"rate": 8.0}},
        shift_mode="linear_drift",
        drift_window=4,
    )
    env.reset()
    for _ in range(8):
        env.step(0)
    assert [rate for what, rate in env.unwrapped.seen if what == "step"] == [4, 4, 4, 5, 6, 7, 8, 8]  # type: ignore[attr-defined]


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5), st.sets(st.integers(0, 14)), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_boundary_is_flagged_once_whatever_is_reset(
    durations: list[int], resets_before: set[int], cyclic: bool
) -> None:
    entries = [{"duration_steps": steps, "axes": {"rate": float(steps)}} for steps in durations]
    provider = schedule(*entries, shift_mode="cyclic" if cyclic else "abrupt")
    env = AttributeShift(Plain())
    env.bind_regime(provider)
    env.reset()
    for step in range(15):
        if step in resets_before:
            env.reset()
            env.reset()
        info = env.step(0)[4]
        assert info["own"] == 1
        assert info["regime"] == {
            "id": provider.regime_id(step),
            "boundary": provider.is_boundary(step),
            "origin": provider.regime_at(step).origin,
        }


def test_a_revisit_reports_what_it_repeats() -> None:
    env = shifted(Plain(), {"duration_steps": 1, "axes": {"rate": 4.0}}, {"alias_of": "r0"})
    env.reset()
    assert [env.step(0)[4]["regime"]["origin"] for _ in range(2)] == [None, "r0"]


def test_without_a_provider_nothing_changes() -> None:
    env = AttributeShift(Plain())
    env.reset()
    assert env.step(0)[4] == {"own": 1}
    actions = [0, 1] * 5
    np.testing.assert_array_equal(
        trajectory(AttributeShift(CartPoleEnv()), actions), trajectory(CartPoleEnv(), actions)
    )


def test_a_stationary_provider_labels_and_changes_nothing() -> None:
    env = AttributeShift(Plain())
    env.bind_regime(ConstantRegime("calm"))
    env.reset()
    assert env.step(0)[4]["regime"] == {"id": "calm", "boundary": False, "origin": None}
    assert env.unwrapped.rate == 2.0  # type: ignore[attr-defined]


def test_binding_again_restores_what_the_first_provider_set() -> None:
    env = shifted(Plain(), {"axes": {"rate": 9.0}})
    env.reset()
    env.step(0)
    env.bind_regime(schedule({"axes": {"count": 1}}))
    env.step(0)
    assert (env.unwrapped.rate, env.unwrapped.count) == (2.0, 1)  # type: ignore[attr-defined]


# ---- whose attribute


class Middle(gymnasium.Wrapper[Any, Any, Any, Any]):
    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.noise = 0.0
        self.rate = 100.0


class Forwarding(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Hands every attribute on, as wrappers of older Gymnasium versions did."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)


def test_an_attribute_of_a_middle_wrapper_is_shifted() -> None:
    middle = Middle(Plain())
    env = shifted(
        TimeLimit(middle, 5), {"axes": {"noise": 0.5, "count": 7, "rate": 50.0, "_max_episode_steps": 2}}
    )
    env.reset()
    assert [env.step(0)[3] for _ in range(2)] == [False, True]
    assert (middle.noise, middle.rate) == (0.5, 50.0)
    assert (env.unwrapped.count, env.unwrapped.rate) == (7, 2.0)  # type: ignore[attr-defined]


def test_a_wrapper_that_only_forwards_is_looked_through() -> None:
    env = shifted(Forwarding(Plain()), {"axes": {"rate": 9.0}})
    env.reset()
    assert env.unwrapped.rate == 9.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "axes",
    [{"flag": False}, {"mode": "fast"}, {"rate": 3}, {"count": 1.5}, {"small": 0.25}, {"settable": 1.0}],
    ids=str,
)
def test_an_axis_of_the_attributes_kind_is_taken(axes: dict[str, Any]) -> None:
    env = shifted(Plain(), {"axes": axes})
    env.reset()
    ((name, value),) = axes.items()
    assert getattr(env.unwrapped, name) == value


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"rat": 1.0}, "regime 'r0': axes.rat: Plain has no attribute 'rat'; did you mean 'rate'"),
        ({"CLASSWIDES": 1.0}, "did you mean 'CLASSWIDE'"),
        ({"rate": "fast"}, "axes.rate: 'fast' is a str; 'rate' holds 2.0"),
        ({"rate": None}, "None is a NoneType"),
        ({"rate": True}, "True is a bool"),
        ({"flag": 1}, "1 is a int; 'flag' holds True"),
        ({"mode": 1}, "'mode' holds 'slow'"),
        ({"nothing": 1}, "'nothing' holds None"),
        ({"seen": 1}, "'seen' holds"),
        ({"reset": 1.0}, "reset is a method"),
        ({"fixed": 2.0}, "Plain.fixed is read-only"),
    ],
    ids=str,
)
def test_a_wrong_axis_is_refused_when_the_provider_is_bound(axes: dict[str, Any], message: str) -> None:
    env = AttributeShift(Plain())
    with pytest.raises(ConfigError, match=message):
        env.bind_regime(schedule({"axes": axes}))


def test_an_axis_of_a_later_configuration_is_checked_at_once() -> None:
    with pytest.raises(ConfigError, match=r"regime 'r1': axes.gravty: CartPoleEnv has no .* 'gravity'"):
        shifted(gymnasium.make("CartPole-v1"), {"duration_steps": 5}, {"axes": {"gravty": 1.0}})


def test_a_derived_quantity_is_no_axis() -> None:
    with pytest.raises(
        ConfigError, match=r"axes\.total_mass: CartPoleEnv\.total_mass follows from other attributes"
    ):
        shifted(CartPoleEnv(), {"axes": {"total_mass": 3.0}})


def test_a_provider_without_axes_is_refused() -> None:
    class Labels:
        def regime_id(self, step: int) -> str:
            return "x"

    with pytest.raises(ConfigError, match="Labels has no regime_at"):
        AttributeShift(Plain()).bind_regime(Labels())


def test_a_provider_that_does_not_list_its_configurations_is_checked_as_they_come() -> None:
    class Surprising:
        def regime_at(self, step: int) -> Regime:
            return Regime("odd", None, {"rate": 3.0}) if step < 2 else Regime("worse", None, {"rat": 1})

    env = AttributeShift(Plain())
    env.bind_regime(Surprising())
    env.reset()
    env.step(0)
    env.step(0)
    with pytest.raises(ConfigError, match=r"regime 'worse': axes\.rat"):
        env.step(0)
