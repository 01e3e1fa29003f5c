"""Calling what a document names, with the document's keywords."""

import collections
import pickle
from functools import partial
from typing import Any

import pytest

from skyfall_core.errors import ConfigError, RunError, SpaceError
from skyfall_core.factories import call_factory


def refusal(factory: Any, kwargs: dict[str, Any], **offered: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        call_factory(factory, kwargs, "algorithm.kwargs", **offered)
    return str(caught.value)


class Learner:
    def __init__(self, gamma: float, *, policy: Any = None, observation_space: Any = None) -> None:
        self.gamma, self.policy, self.observation_space = gamma, policy, observation_space


def test_factory_is_given_the_keywords_and_what_it_names_of_the_offer() -> None:
    made = call_factory(Learner, {"gamma": 0.9}, "x", observation_space="box", action_space="discrete")
    assert vars(made) == {"gamma": 0.9, "policy": None, "observation_space": "box"}


def test_keyword_of_the_document_beats_the_offer() -> None:
    made = call_factory(Learner, {"gamma": 1, "observation_space": "mine"}, "x", observation_space="offered")
    assert made.observation_space == "mine"


def test_open_keywords_take_the_document_but_not_the_whole_offer() -> None:
    def factory(**keywords: Any) -> dict[str, Any]:
        return keywords

    assert call_factory(factory, {"a": 1}, "x", observation_space="box") == {"a": 1}


def test_keyword_nobody_takes_is_refused_with_the_nearest() -> None:
    assert refusal(Learner, {"gama": 0.9}) == (
        "algorithm.kwargs.gama: Learner takes no 'gama'; did you mean 'gamma'? "
        "known: 'gamma', 'observation_space', 'policy'"
    )


def test_keyword_that_is_needed_and_absent_is_named() -> None:
    assert refusal(Learner, {}) == "algorithm.kwargs: Learner needs 'gamma', which is not given"


def test_what_is_already_bound_cannot_be_given_again() -> None:
    bound = partial(lambda env, scale=1: (env, scale), "env")
    assert call_factory(bound, {"scale": 2}, "x") == ("env", 2)
    assert "takes no 'env'; known: 'scale'" in refusal(bound, {"env": "other"})


def test_failure_inside_is_told_with_the_place_and_chained() -> None:
    def build(size: int) -> None:
        raise ValueError(f"size {size} is odd")

    with pytest.raises(ConfigError) as caught:
        call_factory(build, {"size": 3}, "reward.params")
    assert str(caught.value).startswith("reward.params: building ")
    assert str(caught.value).endswith("build failed: ValueError: size 3 is odd")
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("error", [SpaceError("already told"), RunError("already told")])
def test_deliberate_error_passes_unchanged(error: Exception) -> None:
    def build() -> None:
        raise error

    with pytest.raises(type(error), match=r"^already told$") as caught:
        call_factory(build, {}, "x")
    assert caught.value is error


def test_callable_without_a_signature_is_called_all_the_same() -> None:
    assert call_factory(dict, {"a": 1}, "x", observation_space="box") == {"a": 1}
    assert call_factory(collections.Counter, {"a": 1}, "x") == {"a": 1}


def test_positional_only_parameter_is_not_offered() -> None:
    def build(policy: Any = "own", /, size: int = 0) -> tuple[Any, int]:
        return policy, size

    assert call_factory(build, {"size": 2}, "x", policy="offered") == ("own", 2)


def test_keywords_called_like_the_offer_are_not_taken_for_it() -> None:
    def build(**policy: Any) -> dict[str, Any]:
        return policy

    assert call_factory(build, {"a": 1}, "x", policy="offered") == {"a": 1}


def test_object_that_cannot_be_called_is_told_with_the_place() -> None:
    assert refusal(3, {}) == "algorithm.kwargs: building int failed: TypeError: 'int' object is not callable"


def test_a_factorys_own_complaint_is_told_with_the_place_that_caused_it() -> None:
    def picky(level: int = 0) -> None:
        raise ConfigError(f"level is {level}: give 1 or 2")

    with pytest.raises(ConfigError, match=r"^algorithm\.kwargs: level is 7: give 1 or 2$"):
        call_factory(picky, {"level": 7}, "algorithm.kwargs")


def test_a_complaint_that_names_its_place_is_not_told_it_twice() -> None:
    def precise() -> None:
        raise ConfigError.at("reward.params.terms[0]", "no component")

    with pytest.raises(ConfigError, match=r"^reward\.params\.terms\[0\]: no component$"):
        call_factory(precise, {}, "reward.params")


def test_a_complaint_that_begins_like_a_place_and_names_none_is_told_it() -> None:
    def picky() -> None:
        raise ConfigError("rewards are 3: give 1 or 2")

    with pytest.raises(ConfigError, match=r"^reward\.params: rewards are 3: give 1 or 2$") as told:
        call_factory(picky, {}, "reward.params")
    assert told.value.place == "reward.params"


def test_a_place_survives_the_way_between_processes() -> None:
    back = pickle.loads(pickle.dumps(ConfigError.at("run.seed", "is -1")))  # noqa: S301 - our own
    assert (str(back), back.place) == ("run.seed: is -1", "run.seed")
