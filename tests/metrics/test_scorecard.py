"""The scorecard's stable form for other programs."""

import json
from pathlib import Path

import msgspec
import pytest

from skyfall_metrics.comparison import comparison_schema
from skyfall_metrics.scorecard import Scorecard, scorecard_schema
from skyfall_metrics.scoring import score
from skyfall_metrics.trace import trace_from_arrays

DOCS = Path(__file__).parents[2] / "docs" / "metrics"


@pytest.mark.parametrize(
    ("name", "schema"), [("scorecard", scorecard_schema), ("comparison", comparison_schema)]
)
def test_documented_schema_is_what_the_types_say(name, schema):
    """A difference is a change of the format: new names only, or a new `schema_version`."""
    assert json.loads((DOCS / f"{name}.schema.json").read_text()) == schema()


def test_scorecard_decodes_as_what_it_was():
    card = score(
        trace_from_arrays(
            [1.0, None, 3.0, 0.5],
            list("ABBA"),
            world=[0, 0, 1, 1],
            effective_rank=[3.0, None, 2.0, 1.0],
            metadata={"run_id": "r", "seed": "first", "reward_upper_bounds": {"A": 2}},
        ),
        references={"A": 1.0},
    )
    assert msgspec.convert(card.to_dict(), Scorecard) == card
