"""Which tokens of a response are reinforced."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_torch.tokens import ActionTokens, action_token_start

OPEN, CLOSE, BRACE, BRACE_QUOTE, NEWLINE = 90, 91, 80, 81, 10
IDS = {"json_open_ids": {BRACE, BRACE_QUOTE}, "think_open_id": OPEN, "think_close_id": CLOSE}

tokens = st.lists(st.sampled_from([1, 2, NEWLINE, BRACE, BRACE_QUOTE, OPEN, CLOSE]), max_size=12)
plain_tokens = st.lists(st.sampled_from([1, 2, NEWLINE, BRACE, BRACE_QUOTE]), max_size=12)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([OPEN, 1, CLOSE, BRACE, 2], (0, True)),
        ([OPEN, 1, 2], (0, True)),
        ([NEWLINE, OPEN, 1, CLOSE, BRACE], (0, True)),
        ([NEWLINE, OPEN, 1, BRACE], (3, False)),
        ([1, 2, BRACE, 1], (2, False)),
        ([1, BRACE, 2, BRACE_QUOTE, 1], (3, False)),
        ([BRACE, 1], (0, False)),
        ([1, 2], (0, False)),
        ([], (0, False)),
    ],
)
def test_three_cases_in_their_order_of_priority(ids, expected):
    assert action_token_start(ids, **IDS) == expected


def test_a_brace_inside_quoted_prose_counts_because_the_rule_reads_ids_and_not_text():
    say_quote_brace_quote = [1, 34, BRACE, 34]
    assert action_token_start(say_quote_brace_quote, **IDS) == (2, False)


def test_without_special_ids_everything_is_reinforced():
    assert action_token_start([OPEN, CLOSE, BRACE]) == (0, False)


def test_modes_are_accepted_by_value_and_unknown_ones_refused():
    assert action_token_start([1, BRACE], mode="all", **IDS) == (0, False)
    with pytest.raises(ValueError, match="reasoning"):
        action_token_start([1], mode="reasoning")


@given(tokens)
def test_the_whole_response_is_reinforced_under_all(ids):
    assert action_token_start(ids, mode=ActionTokens.ALL, **IDS) == (0, False)


@given(tokens)
def test_a_response_thinks_exactly_when_it_closes_or_begins_with_the_tag(ids):
    start, thinking = action_token_start(ids, **IDS)
    assert thinking == (CLOSE in ids or ids[:1] == [OPEN])
    assert not thinking or start == 0


@given(plain_tokens)
def test_nothing_opens_json_behind_the_slice_that_does_not_think(ids):
    start, _ = action_token_start(ids, **IDS)
    opening = {BRACE, BRACE_QUOTE}
    assert not opening.intersection(ids[start + 1 :])
    assert opening.isdisjoint(ids) or ids[start] in opening


@given(tokens)
def test_index_lies_inside_the_response(ids):
    start, _ = action_token_start(ids, **IDS)
    assert 0 <= start < max(len(ids), 1)


@pytest.mark.parametrize("module", ["skyfall_torch", "skyfall_torch.tokens"])
def test_importing_leaves_torch_unimported(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
