"""The shipped reward specs: hand-computed rewards, bounds, and registration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_core import plugins
from skyfall_core.plugins import Group
from skyfall_core.rewards import RewardSpec
from skyfall_morpheus.rewards import ledger, operational, process, service

NOTHING = {
    "net_delta": 0.0,
    "on_time": 0.0,
    "late": 0.0,
    "tickets_closed": 0.0,
    "edi_recovered": 0.0,
    "invalid": 0.0,
    "novel": 0.0,
    "episode_on_time": 0.0,
    "episode_shipped": 0.0,
}


def record(**inputs: float) -> dict[str, Any]:
    return {"reward_inputs": {**NOTHING, **inputs}}


@pytest.mark.parametrize(
    ("inputs", "final", "expected"),
    [
        ({}, False, {"ledger": 0.0, "process": 0.0, "exploration": 0.0}),
        ({"net_delta": 100.0}, False, {"ledger": 0.05, "process": 0.0, "exploration": 0.0}),
        ({"net_delta": -9000.0}, False, {"ledger": -0.25, "process": 0.0, "exploration": 0.0}),
        ({"on_time": 1.0, "novel": 1.0}, False, {"ledger": 0.0, "process": 0.25, "exploration": 0.01}),
        ({"late": 1.0}, False, {"ledger": 0.0, "process": 0.075, "exploration": 0.0}),
        (
            {"tickets_closed": 1.0, "invalid": 1.0},
            False,
            {"ledger": 0.0, "process": 0.075, "exploration": 0.0},
        ),
        ({"edi_recovered": 4.0}, False, {"ledger": 0.0, "process": 0.25, "exploration": 0.0}),
        (
            {"episode_on_time": 3.0, "episode_shipped": 4.0},
            True,
            {"ledger": 0.0, "process": 0.0, "exploration": 0.0, "service": 0.075},
        ),
        ({"episode_shipped": 0.0}, True, {"ledger": 0.0, "process": 0.0, "exploration": 0.0}),
    ],
)
def test_operational_rewards_are_what_the_formula_says(
    inputs: dict[str, float], final: bool, expected: dict[str, float]
) -> None:
    assert operational().score(record(**inputs), final=final) == pytest.approx(expected)


@given(st.dictionaries(st.sampled_from(sorted(NOTHING)), st.floats(-1e6, 1e6)))
def test_the_two_main_terms_together_stay_within_a_half(inputs: dict[str, float]) -> None:
    parts = operational().score(record(**inputs), final=False)
    assert -0.5 <= parts["ledger"] + parts["process"] <= 0.5


def test_the_ceiling_is_reached() -> None:
    parts = operational().score(record(net_delta=500.0, on_time=1.0), final=False)
    assert parts["ledger"] + parts["process"] == 0.5


def test_weights_and_scale_are_parameters() -> None:
    spec = operational(ledger_weight=1.0, process_weight=0.0, exploration_bonus=0.0, ledger_scale=100.0)
    assert sum(spec.score(record(net_delta=50.0, on_time=1.0), final=False).values()) == 0.5
    with pytest.raises(ValueError, match="scale"):
        ledger(0.0)


def test_components_read_documented_fields() -> None:
    assert ledger().fields == ("reward_inputs.net_delta",)
    assert set(process().fields) == {
        f"reward_inputs.{name}" for name in ("on_time", "late", "tickets_closed", "edi_recovered", "invalid")
    }
    assert service().score(record(episode_on_time=1.0, episode_shipped=2.0)) == 0.5
    assert service().score(record()) is None


@pytest.mark.parametrize("name", ["morpheus-operational", "morpheus-ledger", "morpheus-process"])
def test_specs_are_plugins(name: str) -> None:
    spec = plugins.load(plugins.find(Group.REWARDS, name))()
    assert isinstance(spec, RewardSpec)
    assert spec.name == name
    scored = spec.score(record(net_delta=250.0, on_time=1.0), final=False)
    assert sum(scored.values()) == pytest.approx(
        {"morpheus-operational": 0.375, "morpheus-ledger": 0.5}.get(name, 1.0)
    )


@pytest.mark.parametrize("name", ["ledger", "process", "exploration", "service"])
def test_components_are_plugins(name: str) -> None:
    component = plugins.load(plugins.find(Group.REWARD_COMPONENTS, f"morpheus-{name}"))()
    assert component.fields
