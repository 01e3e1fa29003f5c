"""Finding the action in whatever a model wrote."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_torch import actions
from skyfall_torch.actions import first_json_object, parse_action

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=4), json_values, max_size=4)
noise = st.text(alphabet='{}[]":,\\ a1\n', max_size=24)


def slow_first_object(text: str) -> dict | None:
    """The obvious quadratic search: the standard decoder at every brace."""
    decoder = json.JSONDecoder(parse_constant=lambda name: json.loads(""))
    for start, character in enumerate(text):
        if character == "{":
            try:
                return decoder.raw_decode(text, start)[0]
            except ValueError:
                continue
    return None


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"pick": 3}', {"pick": 3}),
        ('I take {"pick": 3} and not {"pick": 4}.', {"pick": 3}),
        ('{"note": "a } and {", "n": {"d": [1, {}]}}', {"note": "a } and {", "n": {"d": [1, {}]}}),
        ('{"quote": "\\"{\\""}', {"quote": '"{"'}),
        ('he said {oops "x" {"pick": 1}', {"pick": 1}),
        ('{"pick": {"inner": 1}, broken', {"inner": 1}),
        ('<think>{hm}</think>{"pick": 2}', {"pick": 2}),
        ("{}", {}),
        ('[{"pick": 5}]', {"pick": 5}),
    ],
)  # fmt: skip
def test_the_first_complete_object_is_the_action(text, action):
    assert parse_action(text) == action


@pytest.mark.parametrize(
    "text", ["", "no action", '{"pick":', '{"pick": NaN}', "{'pick': 1}", "}{", '{"a": 1,}', "[1, 2]"]
)
def test_text_without_an_object_is_the_action_itself(text):
    assert parse_action(f" {text}\n") == text


def test_nesting_and_integers_beyond_the_decoder_are_text():
    deep = '{"a":' * 50_000 + "1" + "}" * 50_000
    huge = '{"a": ' + "9" * 10_000 + "}"
    assert parse_action(deep) == deep
    assert parse_action(huge) == huge


@given(noise, objects, noise)
def test_it_agrees_with_the_standard_decoder_at_every_brace(before, action, after):
    text = before + json.dumps(action) + after
    assert first_json_object(text) == slow_first_object(text)


@given(noise)
def test_it_agrees_on_garbage(text):
    assert first_json_object(text) == slow_first_object(text)


@pytest.mark.parametrize(
    "unit",
    ["{", "}", '{"a":', '{"a":"{",', '{":{":":{",', '{"', "[", '{ "', "{\n", '{"a":"\\', '{"a":[{"b":1],'],
    ids=repr,
)
def test_tokens_read_grow_linearly_with_the_text(unit, monkeypatch):
    """Counts scanner steps, not seconds: four times the text may not take much over four times as many."""
    pattern = actions._TOKEN

    class Counting:
        calls = 0

        def match(self, text, position):
            self.calls += 1
            return pattern.match(text, position)

    def steps(length: int) -> int:
        counter = Counting()
        monkeypatch.setattr(actions, "_TOKEN", counter)
        first_json_object((unit * length)[:length])
        return counter.calls

    assert steps(8_000) <= 4.2 * steps(2_000) + 20
    assert steps(8_000) <= 3 * 8_000
