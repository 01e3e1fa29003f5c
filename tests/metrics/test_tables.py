"""Tables of a scorecard: which there are, and what is in them."""

from skyfall_metrics.parameters import Parameters
from skyfall_metrics.scoring import score
from skyfall_metrics.tables import segment_sheet
from skyfall_metrics.trace import trace_from_arrays

PARAMETERS = Parameters(window=1, hold=1, settled_fraction=0.5)


def rows_of(reward, label, **more):
    sheet = segment_sheet(score(trace_from_arrays(reward, label, **more), PARAMETERS))
    return None if sheet is None else [row.cells for row in sheet.rows]


def test_each_segment_of_a_life_stands_under_its_own_label():
    found = rows_of(
        [0.0, 1.0, 0.5, 0.5, 0.25, 0.75],
        ["a", "a", "b", "b", "a_revisit", "a_revisit"],
        origin=[None, None, None, None, "a", "a"],
    )
    assert found == [
        ("a", "0", "2", "0.5", "0", "1"),
        ("b", "2", "2", "0.5", "0.5", "0.5"),
        ("a_revisit (again a)", "4", "2", "0.5", "0.25", "0.75"),
    ]


def test_worlds_with_one_plan_are_averaged_and_those_with_several_are_not_shown():
    rewards = [0.0, 1.0, 1.0, 1.0, 2.0, 3.0]
    assert rows_of(rewards, list("abaaba"), world=[0, 0, 0, 1, 1, 1], step=[0, 1, 2] * 2) == [
        ("a", "0", "2", "0.5", "0.5", "0.5"),
        ("b", "1", "2", "1.5", "1.5", "1.5"),
        ("a", "2", "2", "2", "2", "2"),
    ]
    assert rows_of(rewards, list("ababab"), world=[0, 0, 0, 1, 1, 1], step=[0, 1, 2] * 2) is None


def test_a_life_without_a_revisit_and_a_very_long_one_have_no_such_table():
    assert rows_of([0.0, 1.0, 1.0], list("abc")) is None
    assert rows_of([0.0] * 24, list("ab" * 12)) is not None
    assert rows_of([0.0] * 26, list("ab" * 13)) is None
