"""One step between environment and record: ownership, rewards, labels, rows."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_core.base import Transition
from skyfall_core.errors import RunError
from skyfall_core.regime import RegimeSchedule, ScheduledRegime
from skyfall_core.schedule import Regime
from skyfall_core.steps import (
    Recorder,
    RegimeLabeller,
    as_reward,
    environment_failed,
    owned,
    owned_info,
    reward_refused,
)
from skyfall_core.trace import TraceWriter


class Pair(NamedTuple):
    left: Any
    right: Any


class Marked(np.ndarray):
    """An array of a subclass, as masked and memory-mapped arrays are."""


# ---- ownership


@pytest.mark.parametrize(
    "wrap",
    [
        lambda array: array,
        lambda array: array.view(Marked),
        lambda array: {"a": array},
        lambda array: OrderedDict(a={"b": array}),
        lambda array: (1, array),
        lambda array: [[array]],
        lambda array: Pair("x", array),
        lambda array: {"deep": [Pair({"er": (array,)}, None)]},
    ],
    ids=["array", "subclass", "dict", "ordered", "tuple", "list", "named", "deep"],
)
def test_a_reused_buffer_cannot_change_what_is_owned(wrap: Any) -> None:
    buffer = np.zeros(3)
    kept = owned(wrap(buffer))
    buffer[:] = 7
    assert "7" not in repr(kept)
    assert "0., 0., 0." in repr(kept)


def test_containers_are_copied_and_keep_their_kind() -> None:
    inner: dict[str, Any] = {"list": [1], "pair": Pair([2], 3)}
    kept = owned(inner)
    inner["list"].append(9)
    inner["pair"].left.append(9)
    inner["new"] = 1
    assert kept == {"list": [1], "pair": Pair([2], 3)}
    assert type(kept["pair"]) is Pair


def test_what_cannot_change_is_not_copied() -> None:
    for value in (1, 1.5, "text", None, b"b", np.float32(1), np.int64(2), object()):
        assert owned(value) is value


@pytest.mark.parametrize("info", [None, [], "text", 3])
def test_info_that_is_no_mapping_is_refused(info: Any) -> None:
    with pytest.raises(TypeError, match="not a mapping"):
        owned_info(info)


# ---- rewards


@given(st.one_of(st.floats(), st.integers(-(2**53), 2**53), st.booleans()))
def test_numbers_are_the_reward_they_are(reward: float) -> None:
    read = as_reward(reward)
    assert type(read) is float
    assert read == reward or math.isnan(reward)


@pytest.mark.parametrize(
    "reward", [np.float32(1.5), np.float64(1.5), Decimal("1.5"), Fraction(3, 2), np.array(1.5)]
)
def test_other_numbers_are_rewards_too(reward: Any) -> None:
    read = as_reward(reward)
    assert (type(read), read) == (float, 1.5)


@pytest.mark.parametrize(
    "reward",
    [None, "1.5", "nan", b"1", bytearray(b"1"), [1.0], {}, 1j, 10**400, object()],
    ids=lambda value: type(value).__name__ + str(value)[:4],
)
def test_what_is_no_number_is_no_reward(reward: Any) -> None:
    assert math.isnan(as_reward(reward))


def test_messages_name_environment_step_and_world() -> None:
    error = reward_refused(object(), 4, "x", 2)
    assert str(error).startswith("object returned reward 'x' at step 4 of world 2")
    assert (
        str(environment_failed(object(), "at step 4", KeyError("k")))
        == "object failed at step 4: KeyError: 'k'"
    )


# ---- labels


SCHEDULE = RegimeSchedule(
    [
        {"regime_id": "a", "duration_steps": 3},
        {"regime_id": "b", "duration_steps": 2},
        {"regime_id": "a2", "alias_of": "a"},
    ]
)


class OnlyLabels:
    """The least a provider may be."""

    def regime_id(self, step: int) -> str:
        return SCHEDULE.regime_id(step)


class WithoutForesight(OnlyLabels):
    def regime_at(self, step: int) -> Regime:
        return SCHEDULE.regime_at(step)


@pytest.mark.parametrize("provider", [ScheduledRegime(SCHEDULE), OnlyLabels(), WithoutForesight()])
def test_a_provider_labels_a_silent_environment(provider: Any) -> None:
    label = RegimeLabeller(provider)
    told = [label(step, {}) for step in range(7)]
    assert [one[0] for one in told] == ["a", "a", "a", "b", "b", "a2", "a2"]
    assert [step for step, one in enumerate(told) if one[1]] == [3, 5]
    origin = None if type(provider) is OnlyLabels else "a"
    assert [one[2] for one in told] == [None] * 5 + [origin] * 2


@given(
    durations=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    mode=st.sampled_from(["abrupt", "cyclic", "linear_drift"]),
)
def test_asking_once_a_configuration_gives_what_asking_every_step_gives(
    durations: list[int], mode: str
) -> None:
    entries = [{"regime_id": f"r{index}", "duration_steps": steps} for index, steps in enumerate(durations)]
    schedule = RegimeSchedule(entries, shift_mode=mode)
    quick, slow = RegimeLabeller(ScheduledRegime(schedule)), []
    for step in range(40):
        label = schedule.regime_id(step)
        slow.append((label, step > 0 and label != schedule.regime_id(step - 1), None))
    assert [quick(step, {}) for step in range(40)] == slow


def test_without_a_provider_a_run_is_one_configuration() -> None:
    label = RegimeLabeller()
    assert [label(step, {}) for step in range(3)] == [("baseline", False, None)] * 3


def test_the_environments_own_label_beats_the_providers() -> None:
    label = RegimeLabeller(ScheduledRegime(SCHEDULE))
    infos: list[dict[str, Any]] = [
        {"regime": {"id": "own", "boundary": True, "origin": "older"}},
        {"regime": "own"},
        {"regime": "other"},
        {"regime": {"id": "other", "boundary": False}},
        {"regime": {"id": "third"}},
    ]
    assert [label(step, info) for step, info in enumerate(infos)] == [
        ("own", True, "older"),
        ("own", False, None),
        ("other", True, None),
        ("other", False, None),
        ("third", True, None),
    ]


def test_a_provider_that_raises_is_named_with_the_step() -> None:
    class Broken:
        def regime_id(self, step: int) -> str:
            raise LookupError("no plan")

    with pytest.raises(
        RunError, match=r"Broken failed to say the configuration of step 5: LookupError: no plan"
    ):
        RegimeLabeller(Broken())(5, {})


# ---- rows


def recorded(tmp_path: Path, transition: Transition, *args: Any, **kwargs: Any) -> dict[str, Any]:
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        Recorder(writer, **kwargs)(transition, *args)
    row: dict[str, Any] = json.loads((tmp_path / "t.jsonl").read_text())
    return row


def test_a_plain_step_has_the_plain_keys(tmp_path: Path) -> None:
    row = recorded(tmp_path, Transition(2, np.ones(2), np.int64(1), 0.5, False, True, "a", False))
    assert row == {
        "trace_version": 1,
        "step": 2,
        "reward": 0.5,
        "terminated": False,
        "truncated": True,
        "regime_id": "a",
        "boundary": False,
        "action": 1,
    }


def test_a_step_has_what_environment_and_policy_reported(tmp_path: Path) -> None:
    trace = {"step": 77, "profit": 3, "action": "theirs", "effective_rank": 9.0}
    step = Transition(
        2, np.ones(2), 1, math.nan, False, False, "a", True, {"p": 0.5}, -0.7, 1.2, {"trace": trace}
    )
    row = recorded(tmp_path, step, "origin", 3.5, 4, record_observations=True)
    assert row == {
        "trace_version": 1,
        "step": 2,
        "world": 4,
        "reward": None,
        "terminated": False,
        "truncated": False,
        "regime_id": "a",
        "boundary": True,
        "origin": "origin",
        "reward_components": {"p": 0.5},
        "effective_rank": 3.5,
        "logprob": -0.7,
        "value": 1.2,
        "action": 1,
        "observation": [1.0, 1.0],
        "profit": 3,
    }


def test_the_record_keeps_what_the_harness_does_not_say(tmp_path: Path) -> None:
    step = Transition(
        0, 0, 1, 1.0, False, False, "a", False, info={"trace": {"effective_rank": 9.0, "origin": "o"}}
    )
    row = recorded(tmp_path, step)
    assert (row["effective_rank"], row["origin"]) == (9.0, "o")
