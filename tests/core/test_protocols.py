"""Capability probing through real Gymnasium wrappers, and every form an info may take."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import VectorWrapper
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from skyfall_core.protocols import (
    DEFAULT_REGIME_ID,
    BindsRegime,
    DescribesRuns,
    capability,
    describe_run,
    record_from_info,
    regime_from_info,
    regime_origin_from_info,
)


class Described(gym.Wrapper[Any, Any, Any, Any]):
    """A middle wrapper that adds capabilities its inner environment does not have."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.provider: Any = None

    def describe_run(self) -> Mapping[str, Any]:
        return {"world": "cart", "seed": 3}

    def bind_regime(self, provider: Any) -> None:
        self.provider = provider


@pytest.fixture
def stacked() -> gym.Env[Any, Any]:
    return TimeLimit(Described(gym.make("CartPole-v1")), max_episode_steps=5)


def test_capability_of_a_middle_wrapper_is_found(stacked: gym.Env[Any, Any]) -> None:
    assert not hasattr(stacked, "describe_run")
    assert not hasattr(stacked.unwrapped, "describe_run")
    assert capability(stacked, "describe_run")() == {"world": "cart", "seed": 3}


def test_capability_of_the_innermost_environment_is_found(stacked: gym.Env[Any, Any]) -> None:
    assert capability(stacked, "force_mag") == 10.0


def test_bound_provider_reaches_the_middle_wrapper(stacked: gym.Env[Any, Any]) -> None:
    provider = object()
    capability(stacked, "bind_regime")(provider)
    assert stacked.get_wrapper_attr("provider") is provider


def test_absent_capability_is_none(stacked: gym.Env[Any, Any]) -> None:
    assert capability(stacked, "teleport") is None


def test_capability_behind_vector_wrappers_is_found() -> None:
    class DescribedWorlds(gym.vector.SyncVectorEnv):
        def describe_run(self) -> Mapping[str, Any]:
            return {"worlds": self.num_envs}

    worlds = DescribedWorlds([lambda: gym.make("CartPole-v1")] * 2)
    wrapped = VectorWrapper(RecordEpisodeStatistics(worlds))
    assert describe_run(wrapped) == {"worlds": 2}
    assert capability(wrapped, "return_queue") is not None
    assert capability(wrapped, "teleport") is None


def test_bare_double_is_asked_directly() -> None:
    double = SimpleNamespace(describe_run=lambda: {"kind": "double"})
    assert describe_run(double) == {"kind": "double"}
    assert capability(double, "bind_regime") is None


def test_description_is_a_copy_and_verbatim(stacked: gym.Env[Any, Any]) -> None:
    source = {"anything": [1, 2], "nested": {"a": None}}
    described = describe_run(SimpleNamespace(describe_run=lambda: source))
    assert described == source
    assert described is not source
    assert describe_run(stacked) == {"world": "cart", "seed": 3}


@pytest.mark.parametrize(
    "env", [gym.make("CartPole-v1"), object(), SimpleNamespace(describe_run="no function")]
)
def test_nothing_reported_is_an_empty_description(env: Any) -> None:
    assert describe_run(env) == {}


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, (DEFAULT_REGIME_ID, False)),
        ({"regime": None}, (DEFAULT_REGIME_ID, False)),
        ({"regime": "windy"}, ("windy", False)),
        ({"regime": 3}, ("3", False)),
        ({"regime": {}}, (DEFAULT_REGIME_ID, False)),
        ({"regime": {"id": "windy"}}, ("windy", False)),
        ({"regime": {"id": 0}}, ("0", False)),
        ({"regime": {"id": None, "boundary": True}}, (DEFAULT_REGIME_ID, True)),
        ({"regime": {"boundary": True}}, (DEFAULT_REGIME_ID, True)),
        ({"regime": {"id": "windy", "boundary": np.True_, "origin": "calm"}}, ("windy", True)),
    ],
)
def test_regime_in_every_form(info: Mapping[str, Any], expected: tuple[str, bool]) -> None:
    label, boundary = regime_from_info(info)
    assert (label, boundary) == expected
    assert type(label) is str
    assert type(boundary) is bool


@pytest.mark.parametrize(
    ("info", "origin"),
    [
        ({}, None),
        ({"regime": "windy"}, None),
        ({"regime": {"id": "windy"}}, None),
        ({"regime": {"id": "again", "origin": None}}, None),
        ({"regime": {"id": "again", "origin": "windy"}}, "windy"),
        ({"regime": {"id": "again", "origin": 2}}, "2"),
    ],
)
def test_origin_in_every_form(info: Mapping[str, Any], origin: str | None) -> None:
    assert regime_origin_from_info(info) == origin


def test_record_is_handed_over_whole_or_not_at_all() -> None:
    record = {"effective_rank": 3.0}
    assert record_from_info({"trace": record}) is record
    assert record_from_info({}) is None
    assert record_from_info({"trace": "a line of text"}) is None


def test_capabilities_are_recognised_by_structure(stacked: gym.Env[Any, Any]) -> None:
    middle = Described(gym.make("CartPole-v1"))
    assert isinstance(middle, DescribesRuns)
    assert isinstance(middle, BindsRegime)
    assert not isinstance(stacked, DescribesRuns)
