"""Composable rewards: weights, scopes, what is read, and what is refused."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core import plugins
from skyfall_core.errors import ConfigError, PluginError, RewardSpecError
from skyfall_core.plugins import Group
from skyfall_core.rewards import (
    RewardComponent,
    RewardSpec,
    Scope,
    ScoredReward,
    Term,
    field_value,
    read_field,
    register_component,
    threshold,
    weighted,
)
from skyfall_core.rollout import RolloutCollector


class Scripted(gymnasium.Env[Any, Any]):
    """Reports the given infos, one a step; the last one ends the episode."""

    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(2)

    def __init__(self, *infos: dict[str, Any], terminated: bool = True) -> None:
        self.infos, self.terminated, self.count = infos, terminated, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.count = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        info = self.infos[self.count]
        self.count += 1
        last = self.count == len(self.infos)
        return 0, 0.25, last and self.terminated, last and not self.terminated, info


class Constant:
    def act(self, observation: Any) -> int:
        return 0


def played(env: gymnasium.Env[Any, Any], steps: int) -> list[tuple[float, dict[str, float]]]:
    env.reset()
    answers = [env.step(0) for _ in range(steps)]
    return [(float(answer[1]), answer[4]["reward_components"]) for answer in answers]


def spec(*terms: dict[str, Any]) -> RewardSpec:
    return weighted(list(terms))


PROFIT = {"component": "field", "params": {"field": "profit"}}


# ---- what a step earns


def test_contributions_are_weighted_and_summed() -> None:
    given_spec = spec(
        {**PROFIT, "weight": 2},
        {
            "component": "threshold",
            "params": {"field": "level", "at_least": 3},
            "weight": -0.5,
            "name": "high",
        },
        {"component": "field", "params": {"field": "deep.rate", "scale": 10, "offset": 1}, "name": "rate"},
    )
    env = ScoredReward(Scripted({"profit": 1.5, "level": 3, "deep": {"rate": 1.25}}), given_spec)
    env.reset()
    _, reward, terminated, truncated, info = env.step(0)
    assert info["reward_components"] == {"profit": 3.0, "high": -0.5, "rate": 2.5}
    assert reward == 5.0
    assert info["environment_reward"] == 0.25
    assert (terminated, truncated) == (True, False)


@pytest.mark.parametrize("terminated", [True, False], ids=["terminated", "truncated"])
def test_an_episode_term_fires_on_the_final_step_only(terminated: bool) -> None:
    env = ScoredReward(
        Scripted(*({"profit": float(n)} for n in range(3)), terminated=terminated),
        spec(PROFIT, {**PROFIT, "scope": "episode", "name": "bonus", "weight": 10}),
    )
    for _ in range(2):
        assert played(env, 3) == [(0, {"profit": 0}), (1, {"profit": 1}), (22, {"profit": 2, "bonus": 20})]


def test_a_windows_edge_is_no_episodes_end() -> None:
    env = ScoredReward(
        Scripted(*({"profit": 1.0} for _ in range(6))),
        spec({**PROFIT, "scope": "episode", "name": "bonus"}, PROFIT),
    )
    windows = list(RolloutCollector(env, Constant(), window_steps=2).windows(6))
    assert [window.rewards for window in windows] == [[1, 1], [1, 1], [1, 2]]
    assert windows[2].transitions[1].reward_components == {"bonus": 1.0, "profit": 1.0}


def test_an_absent_field_contributes_nothing() -> None:
    env = ScoredReward(Scripted({"profit": 1.0}, {}, {"profit": None}), spec(PROFIT))
    assert played(env, 3) == [(1, {"profit": 1}), (0, {}), (0, {})]


def test_a_component_may_decline() -> None:
    odd = RewardComponent(("n",), lambda record: record["n"] if record["n"] % 2 else None)
    env = ScoredReward(Scripted({"n": 1}, {"n": 2}), RewardSpec("odd", [Term("odd", odd)]))
    assert played(env, 2) == [(1, {"odd": 1}), (0, {})]


def test_the_environments_record_wins_over_its_info_and_that_over_the_facts() -> None:
    both = spec(PROFIT, {"component": "field", "params": {"field": "reward"}})
    infos = [{"trace": {"profit": 3, "reward": 7}, "profit": 2}, {"profit": 2, "reward": 5}, {"profit": 2}]
    assert played(ScoredReward(Scripted(*infos), both), 3) == [
        (10, {"profit": 3, "reward": 7}),
        (7, {"profit": 2, "reward": 5}),
        (2.25, {"profit": 2, "reward": 0.25}),
    ]


terms = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c.d"]), st.floats(-4, 4), st.sampled_from(list(Scope)), st.floats(-2, 2)
    ),
    min_size=1,
    max_size=5,
)
records = st.fixed_dictionaries(
    {"a": st.floats(-9, 9)},
    optional={
        "b": st.none() | st.floats(-9, 9),
        "c": st.just({}) | st.fixed_dictionaries({"d": st.floats(-9, 9)}),
    },
)


@given(terms, st.lists(records, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_sums_agree_with_an_obvious_loop(
    given_terms: list[tuple[str, float, Scope, float]], infos: list[dict[str, Any]]
) -> None:
    listed = [
        {
            "component": "field",
            "params": {"field": f, "offset": o},
            "weight": w,
            "scope": s.value,
            "name": f"t{n}",
        }
        for n, (f, w, s, o) in enumerate(given_terms)
    ]
    readable = {"a", *(["b"] if "b" in infos[0] else []), *(["c.d"] if infos[0].get("c") else [])}
    env = ScoredReward(Scripted(*infos), weighted(listed))
    if readable.isdisjoint(field for field, *_ in given_terms):
        with pytest.raises(RewardSpecError):
            played(env, 1)
        return
    for number, (reward, components) in enumerate(played(env, len(infos))):
        info, expected = infos[number], {}
        for n, (field, weight, scope, offset) in enumerate(given_terms):
            value = info.get("c", {}).get("d") if field == "c.d" else info.get(field)
            if value is not None and (scope is Scope.STEP or number == len(infos) - 1):
                expected[f"t{n}"] = weight * (value - offset)
        assert components == pytest.approx(expected)
        assert reward == pytest.approx(math.fsum(expected.values()), abs=1e-9)


# ---- what is refused


def test_a_spec_that_can_read_nothing_names_the_nearest() -> None:
    env = ScoredReward(
        Scripted({"trace": {"money": {"profit": 1}}}), spec({**PROFIT, "params": {"field": "profits"}})
    )
    env.reset()
    with pytest.raises(RewardSpecError, match="'profits', and the first step's record of Scripted has none"):
        env.step(0)
    close = ScoredReward(Scripted({"profit": 1}), spec({**PROFIT, "params": {"field": "profits"}}))
    collector = RolloutCollector(close, Constant(), window_steps=1)
    with pytest.raises(RewardSpecError, match="did you mean 'profit'"):
        list(collector.windows(1))


def test_a_field_that_is_still_none_is_there() -> None:
    assert played(ScoredReward(Scripted({"profit": None}, {"profit": 2}), spec(PROFIT)), 2) == [
        (0, {}),
        (2, {"profit": 2}),
    ]


def test_a_component_without_fields_needs_none() -> None:
    alive = RewardComponent((), lambda record: 1.0)
    assert played(ScoredReward(Scripted({}), RewardSpec("alive", [Term("alive", alive)])), 1) == [
        (1, {"alive": 1})
    ]


@pytest.mark.parametrize("value", ["much", [1], {"a": 1}])
def test_a_component_that_cannot_score_is_named(value: Any) -> None:
    env = ScoredReward(Scripted({"profit": value}), spec(PROFIT))
    collector = RolloutCollector(env, Constant(), window_steps=1)
    with pytest.raises(RewardSpecError, match="reward spec 'weighted': term 'profit' cannot score"):
        list(collector.windows(1))


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([], "no terms"),
        ("profit", "no list of terms"),
        ({"component": "field"}, "no list of terms"),
        ([3], r"terms\[0\]: 3 is no mapping"),
        ([{}], "no mapping with a component"),
        ([PROFIT, {**PROFIT, "wieght": 1}], r"terms\[1\].wieght: unknown key; did you mean 'weight'"),
        ([{**PROFIT, "weight": "2"}], "weight: '2' is no finite number"),
        ([{**PROFIT, "weight": True}], "weight: True is no finite number"),
        ([{**PROFIT, "weight": math.nan}], "weight: nan is no finite number"),
        ([{**PROFIT, "weight": math.inf}], "weight: inf is no finite number"),
        ([{**PROFIT, "scope": "epsiode"}], "scope: 'epsiode': did you mean 'episode'"),
        ([{**PROFIT, "scope": ["step"]}], "scope: "),
        ([{**PROFIT, "params": [1]}], r"params: \[1\] is no mapping"),
        ([{**PROFIT, "params": {"feild": "x"}}], "did you mean 'field'"),
        ([{**PROFIT, "params": {}}], "needs 'field'"),
        ([PROFIT, PROFIT], "two terms are named 'profit'"),
        ([{"component": "builtins:dict"}], "gave a dict, not a RewardComponent"),
    ],
    ids=str,
)
def test_a_faulty_document_is_refused_with_the_place(terms: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        weighted(terms)


def test_an_unknown_component_names_the_nearest() -> None:
    with pytest.raises(PluginError, match="did you mean 'threshold'"):
        spec({"component": "treshold", "params": {"field": "x", "at_least": 1}})


def squared(field: str) -> RewardComponent:
    return RewardComponent((field,), lambda record: float(read_field(record, field)) ** 2)


def test_components_can_be_registered_or_dotted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_components", SimpleNamespace(squared=squared))
    register_component("squared", "my_components:squared")
    try:
        registered = spec({"component": "squared", "params": {"field": "n"}})
    finally:
        plugins.unregister(Group.REWARD_COMPONENTS, "squared")
    dotted = spec({"component": "my_components:squared", "params": {"field": "n"}})
    for one in (registered, dotted):
        assert one.score({"n": 3}, final=False) == {"n": 9.0}


def test_a_spec_lists_what_it_reads_once() -> None:
    one = RewardSpec(
        "x", [Term("a", field_value("f")), Term("b", threshold("f", 1)), Term("c", field_value("g"))]
    )
    assert one.fields == ["f", "g"]


@given(
    st.dictionaries(st.sampled_from("ab"), st.none() | st.dictionaries(st.sampled_from("ab"), st.integers()))
)
def test_fields_are_read_along_dots(record: dict[str, Any]) -> None:
    for path in ("a", "a.b", "b.a", "a.b.a"):
        value: Any = record
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        assert read_field(record, path) == value


def test_numpy_numbers_are_scored() -> None:
    assert spec(PROFIT).score({"profit": np.float32(1.5)}, final=False) == {"profit": 1.5}
