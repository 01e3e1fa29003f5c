"""MORPHEUS spaces as an export bundle describes them."""

from __future__ import annotations

import json

import jsonschema
import pytest

from skyfall_core.bundle.schemas import space_schema
from skyfall_core.bundle.spaces import ForeignSpace, space_from_json, space_to_json
from skyfall_morpheus.spaces import ActionSpace, StateSpace

ACTIONS, STATES = ActionSpace(("wait", "ship_order"), seed=0), StateSpace(1000, seed=0)


@pytest.mark.parametrize("space", [ACTIONS, STATES], ids=str)
def test_samples_validate_and_the_space_comes_back_as_a_foreign_one(space: ActionSpace | StateSpace) -> None:
    validator = jsonschema.Draft202012Validator(space_schema(space))
    for _ in range(5):
        validator.validate(space.sample())
    came_back = space_from_json(json.loads(json.dumps(space_to_json(space))))
    assert isinstance(came_back, ForeignSpace)
    assert came_back.text == repr(space)


def test_schemas_refuse_what_the_spaces_do_not_contain() -> None:
    actions, states = (jsonschema.Draft202012Validator(space_schema(space)) for space in (ACTIONS, STATES))
    for value in (None, 3, ["wait"], "x" * 20_001):
        assert not ACTIONS.contains(value)
        assert not actions.is_valid(value)
    for value in (None, "text", [1]):
        assert not STATES.contains(value)
        assert not states.is_valid(value)
