"""Spaces as JSON: equal spaces come back, and their schemas say what the spaces contain."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest
from gymnasium import Space, spaces
from hypothesis import given
from hypothesis import strategies as st

from skyfall_core.bundle.schemas import DIALECT, space_schema
from skyfall_core.bundle.spaces import ForeignSpace, space_from_json, space_to_json, value_to_json
from skyfall_core.errors import BundleError


def boxes() -> st.SearchStrategy[Space[Any]]:
    def box(shape: list[int], low: float, span: float, dtype: str, unbounded: bool) -> Space[Any]:
        if dtype == "float32" and unbounded:
            return spaces.Box(-np.inf, low, tuple(shape), np.float32)
        lowest = np.full(shape, low).astype(dtype)
        step = np.arange(lowest.size).reshape(shape) % 2
        return spaces.Box(lowest, (lowest + int(span) + step).astype(dtype), dtype=np.dtype(dtype))

    return st.builds(
        box,
        st.lists(st.integers(1, 3), max_size=2),
        st.integers(-50, 50).map(lambda number: number / 4),
        st.integers(0, 9),
        st.sampled_from(["float32", "float64", "int32", "int8"]),
        st.booleans(),
    )


LEAVES = st.one_of(
    boxes(),
    st.builds(lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 9), st.integers(-5, 5)),
    st.builds(
        lambda nvec, start: spaces.MultiDiscrete(nvec, start=[start] * len(nvec)),
        st.lists(st.integers(1, 5), min_size=1, max_size=3),
        st.integers(-3, 3),
    ),
    st.builds(spaces.MultiBinary, st.one_of(st.integers(1, 4), st.just([2, 3]))),
    st.builds(
        lambda shortest, more, charset: spaces.Text(shortest + more, min_length=shortest, charset=charset),
        st.integers(0, 3),
        st.integers(1, 4),
        st.sampled_from(["abc", "a-z", "]^\\[", "äß漢", ".*+?$()|/{}"]),
    ),
)
SPACES = st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.dictionaries(st.text("ab é/", min_size=1, max_size=4), part, min_size=1, max_size=3).map(
            spaces.Dict
        ),
        st.lists(part, min_size=1, max_size=3).map(spaces.Tuple),
        st.lists(part, min_size=1, max_size=3).map(spaces.OneOf),
        part.map(spaces.Sequence),
    ),
    max_leaves=6,
)


def checker(space: Space[Any]) -> jsonschema.Draft202012Validator:
    schema = json.loads(json.dumps(space_schema(space), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == DIALECT
    return jsonschema.Draft202012Validator(schema)


@given(SPACES)
def test_a_space_comes_back_equal_through_strict_json(space: Space[Any]) -> None:
    text = json.dumps(space_to_json(space), allow_nan=False)
    assert space_from_json(json.loads(text)) == space


@given(SPACES, st.integers(0, 2**31))
def test_what_a_space_samples_validates_in_json_form(space: Space[Any], seed: int) -> None:
    space.seed(seed)
    validator = checker(space)
    for _ in range(3):
        value = json.loads(json.dumps(value_to_json(space, space.sample()), allow_nan=False))
        validator.validate(value)


WRONG = {
    "below the box": (spaces.Box(-1.0, 1.0, (2,)), [-1.5, 0.0]),
    "above an entry's own bound": (
        spaces.Box(np.array([0.0, 5.0]), np.array([1.0, 9.0]), dtype=np.float64),
        [2.0, 6.0],
    ),
    "box of another length": (spaces.Box(-1.0, 1.0, (2,)), [0.0]),
    "box not nested": (spaces.Box(-1.0, 1.0, (1, 2)), [0.0, 0.0]),
    "half a whole number": (spaces.Box(0, 9, (1,), np.int32), [0.5]),
    "one too many": (spaces.Discrete(3, start=1), 4),
    "one too few": (spaces.Discrete(3, start=1), 0),
    "text for a number": (spaces.Discrete(3), "1"),
    "beyond an entry's count": (spaces.MultiDiscrete([2, 5]), [2, 4]),
    "two in a binary": (spaces.MultiBinary(2), [0, 2]),
    "letter not allowed": (spaces.Text(5, charset="ab"), "abc"),
    "a newline at the end": (spaces.Text(5, charset="ab"), "ab\n"),
    "a dash that is no range": (spaces.Text(5, charset="a-c"), "b"),
    "too long": (spaces.Text(2, charset="ab"), "aba"),
    "missing key": (spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2)), {"a": 0}),
    "unknown key": (spaces.Dict(a=spaces.Discrete(2)), {"a": 0, "c": 0}),
    "tuple too short": (spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))), [0]),
    "another branch's value": (spaces.OneOf((spaces.Discrete(2), spaces.Text(3))), [0, "ab"]),
    "no such branch": (spaces.OneOf((spaces.Discrete(2), spaces.Text(3))), [2, 0]),
    "wrong item": (spaces.Sequence(spaces.Discrete(2)), [0, 1, 2]),
    "link with three ends": (
        spaces.Graph(spaces.Discrete(2), spaces.Discrete(2)),
        {"nodes": [0], "edges": [1], "edge_links": [[0, 0, 0]]},
    ),
}


@pytest.mark.parametrize(("space", "value"), WRONG.values(), ids=WRONG)
def test_what_a_space_does_not_contain_is_refused_by_its_schema(space: Space[Any], value: Any) -> None:
    assert not checker(space).is_valid(value)


@pytest.mark.parametrize("edges", [None, spaces.Box(0, 1, (2,))], ids=["no edges", "edges"])
def test_graphs_come_back_and_their_samples_validate(edges: Space[Any] | None) -> None:
    space = spaces.Graph(spaces.Box(-1, 1, (3,)), edges, seed=0)
    assert space_from_json(json.loads(json.dumps(space_to_json(space)))) == space
    for _ in range(5):
        checker(space).validate(json.loads(json.dumps(value_to_json(space, space.sample()))))


@pytest.mark.parametrize("part", [spaces.Discrete(3), spaces.Dict(a=spaces.Box(0, 1, (2,)))], ids=str)
def test_a_stacked_sequence_is_laid_out_item_by_item(part: Space[Any]) -> None:
    space = spaces.Sequence(part, stack=True, seed=1)
    assert space_from_json(space_to_json(space)) == space
    for _ in range(5):
        checker(space).validate(json.loads(json.dumps(value_to_json(space, space.sample()))))


def test_boxes_are_described_as_in_the_data_sets_of_the_field() -> None:
    low, high = np.array([-1.0, -np.inf], np.float32), np.array([1.0, np.inf], np.float32)
    space = spaces.Box(low, high)
    assert space_to_json(space) == {
        "type": "Box",
        "dtype": "float32",
        "shape": [2],
        "low": [-1.0, "-Infinity"],
        "high": [1.0, "Infinity"],
    }
    assert space_to_json(spaces.Discrete(4, start=-1)) == {
        "type": "Discrete",
        "dtype": "int64",
        "start": -1,
        "n": 4,
    }
    assert space_to_json(spaces.Dict(x=spaces.MultiBinary([2, 2])))["subspaces"] == {
        "x": {"type": "MultiBinary", "n": [2, 2]}
    }


def test_an_images_schema_does_not_grow_with_the_image() -> None:
    schema = space_schema(spaces.Box(0, 255, (210, 160, 3), np.uint8))
    assert len(json.dumps(schema)) < 500
    assert schema["items"]["items"]["items"] == {"type": "integer", "minimum": 0, "maximum": 255}


class Utterances(Space[str]):
    def __init__(self, length: int) -> None:
        super().__init__(None, None)
        self.length = length

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.length}

    def __repr__(self) -> str:
        return f"Utterances({self.length})"


def test_a_foreign_space_keeps_its_description_and_its_own_schema() -> None:
    space = Utterances(3)
    came_back = space_from_json(json.loads(json.dumps(space_to_json(space))))
    assert isinstance(came_back, ForeignSpace)
    assert came_back.text == "Utterances(3)"
    assert came_back.original.endswith(":Utterances")
    assert came_back == space_from_json(space_to_json(came_back))
    assert not checker(space).is_valid("four")
    with pytest.raises(BundleError, match=r"only .*:Utterances' itself can be sampled"):
        came_back.sample()


def test_a_foreign_space_that_says_nothing_allows_anything() -> None:
    class Silent(Space[Any]):
        pass

    validator = checker(Silent(None, None))
    assert all(map(validator.is_valid, [None, 1, "x", {"y": []}]))


BROKEN = [
    None,
    [],
    {"type": "Nothing"},
    {"type": ["Box"]},
    {"type": "Box"},
    {"type": "Discrete", "dtype": "int64", "start": 0, "n": 0},
    {"type": "Box", "dtype": "float32", "shape": [2], "low": [0], "high": [1, 1]},
    {"type": "Box", "dtype": "object", "shape": [1], "low": [0], "high": [1]},
    {"type": "Tuple", "subspaces": [{"type": "Discrete", "dtype": "int64", "n": 2}]},
]


@pytest.mark.parametrize("described", BROKEN, ids=str)
def test_a_description_that_makes_no_space_is_refused(described: Any) -> None:
    with pytest.raises(BundleError, match="space of type"):
        space_from_json(described)
