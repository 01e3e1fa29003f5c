"""What windows answer and what counts as a policy or an algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import pytest

from skyfall_core.base import Algorithm, Policy, RolloutWindow, Transition


def transition(step: int, **changes: Any) -> Transition:
    values = {"reward": 0.0, "terminated": False, "truncated": False, "regime_id": "a", "boundary": False}
    return Transition(step, [0.0], 0, **{**values, **changes})


class Idle:
    """A minimal algorithm that is its own policy, as a backend that owns its model may be."""

    @property
    def policy(self) -> Policy:
        return self

    def act(self, observation: Any) -> int:
        return 0

    def update(self, window: RolloutWindow) -> Mapping[str, float]:
        return {"steps": float(len(window))}

    def on_regime_shift(self, shift: Mapping[str, Any]) -> None: ...

    def save_checkpoint(self, path: str | PathLike[str]) -> None: ...

    def load_checkpoint(self, path: str | PathLike[str]) -> None: ...


def test_window_lists_its_steps_in_acting_order() -> None:
    window = RolloutWindow([transition(0, reward=1.0), transition(1, reward=-2.0, regime_id="b")])
    assert len(window) == 2
    assert window.rewards == [1.0, -2.0]
    assert window.regimes == ["a", "b"]


def test_terminals_hold_both_kinds_of_end() -> None:
    window = RolloutWindow(
        [transition(0), transition(1, terminated=True), transition(2, truncated=True), transition(3)]
    )
    assert window.terminals == [False, True, True, False]


def test_one_world_is_one_stream_over_everything() -> None:
    window = RolloutWindow([transition(0), transition(1), transition(2)])
    assert window.streams is not None
    assert [list(stream) for stream in window.streams] == [[0, 1, 2]]


def test_streams_of_several_worlds_are_kept() -> None:
    window = RolloutWindow(
        [transition(0), transition(0), transition(1), transition(1)], streams=[[0, 2], [1, 3]]
    )
    assert window.streams == [[0, 2], [1, 3]]


def test_empty_window_answers_with_nothing() -> None:
    window = RolloutWindow([])
    assert (len(window), window.rewards, window.terminals, window.regimes) == (0, [], [], [])


def test_optional_fields_default_to_absent_and_are_not_shared() -> None:
    first, second = transition(0), transition(1)
    assert (first.logprob, first.value, first.info, first.reward_components) == (None, None, {}, {})
    assert first.info is not second.info
    assert first.reward_components is not second.reward_components
    assert RolloutWindow([]).run is not RolloutWindow([]).run


def test_transition_has_no_room_for_a_misspelled_field() -> None:
    with pytest.raises(AttributeError):
        transition(0).rewards = 1.0  # type: ignore[attr-defined]


def test_structure_decides_what_is_a_policy_and_an_algorithm() -> None:
    assert isinstance(Idle(), Policy)
    assert isinstance(Idle(), Algorithm)
    assert not isinstance(object(), Policy)
    assert not isinstance(type("ActsOnly", (), {"act": Idle.act})(), Algorithm)
