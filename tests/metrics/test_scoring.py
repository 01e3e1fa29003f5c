"""The worked example of the definitions, to 1e-12, and what a whole scorecard promises."""

import json
import math

import pytest

from skyfall_metrics.bounds import BoundSource
from skyfall_metrics.errors import BoundsError
from skyfall_metrics.measures import MEASURES
from skyfall_metrics.parameters import Parameters
from skyfall_metrics.scoring import score
from skyfall_metrics.trace import trace_from_arrays
from skyfall_metrics.values import Value

EXAMPLE = [0, 1, 1, 1, 0, 0, 0.5, 1, 0.5, 1, 1, 1]
PLAIN = Parameters(window=1, hold=1, settled_fraction=0.5)


@pytest.fixture
def worked():
    trace = trace_from_arrays(EXAMPLE, list("AAAABBBBAAAA"))
    return score(trace, PLAIN, bounds={"A": 1, "B": 1})


def exactly(value):
    return pytest.approx(value, abs=1e-12)


def test_worked_example_levels(worked):
    segments = worked.worlds[0].segments
    assert [segment.settled for segment in segments] == exactly([1, 0.75, 1])
    assert [segment.opening for segment in segments] == exactly([0, 0, 0.5])
    assert [segment.revisited for segment in segments] == [False, False, True]


def test_worked_example_reward(worked):
    reward = worked.worlds[0].reward
    assert [c.mean for c in reward.configurations] == exactly([0.8125, 0.375])
    assert reward.overall.value == exactly(0.59375)


def test_worked_example_adaptation(worked):
    adaptation = worked.worlds[0].adaptation
    assert [shift.threshold for shift in adaptation.shifts] == exactly([0.675, 0.95])
    assert [shift.steps for shift in adaptation.shifts] == [3, 1]
    assert [shift.speed for shift in adaptation.shifts] == exactly([0.25, 0.75])
    assert adaptation.speed.value == exactly(0.5)
    assert (adaptation.mean_steps.value, adaptation.median_steps.value) == (2, 2)


def test_worked_example_recovery(worked):
    recovery = worked.worlds[0].recovery
    assert [shift.threshold for shift in recovery.shifts] == exactly([0.95, 0.7125])
    assert [shift.steps for shift in recovery.shifts] == [3, 1]
    assert recovery.mean_steps.value == exactly(2)
    assert recovery.censored_share.value == 0


def test_worked_example_forgetting(worked):
    result = worked.worlds[0].forgetting
    assert result.forgetting.value == exactly(0.5)
    assert result.retention.value == exactly(0)
    assert result.savings.value == exactly(0)


def test_worked_example_stability(worked):
    stability = worked.worlds[0].stability
    assert stability.deviation.value == exactly((0 + 0.25 + 0) / 3)
    assert stability.drawdown.value == 0


def test_worked_example_gap(worked):
    gaps = worked.worlds[0].gap.configurations
    assert [gap.gap for gap in gaps] == exactly([0, 0.25])
    assert worked.measures["gap"].value == exactly(0.125)


def test_every_measure_has_a_finite_number_or_a_reason(worked):
    assert list(worked.measures) == [measure.name for measure in MEASURES]
    for value in worked.measures.values():
        assert (value.value is None) == bool(value.reason)
        assert value.value is None or math.isfinite(value.value)


def test_to_dict_is_plain_json(worked):
    assert json.loads(json.dumps(worked.to_dict(), allow_nan=False)) == worked.to_dict()
    assert worked.to_dict()["schema_version"] == 1


def test_single_segment_has_reasons_instead_of_numbers():
    card = score(trace_from_arrays([1.0, 2.0], ["A", "A"]))
    assert card.measures["adaptation_speed"].reason == "no shift"
    assert card.measures["recovery_steps"].reason == "no shift"
    assert card.measures["forgetting"].reason == "no revisit"
    assert card.measures["gap"].reason == "no bound for 'A'"
    assert card.measures["reward"].value == 1.5


def test_one_row_is_scored():
    card = score(trace_from_arrays([3.0], ["A"]))
    assert card.measures["reward"].value == 3
    assert card.measures["stability"].value == 0
    assert card.measures["worst_drops"].reason == "no two neighboring rows with rewards in one segment"


def test_all_rewards_missing_gives_no_number_anywhere():
    card = score(trace_from_arrays([None, math.nan, math.inf, -math.inf], list("AABB")))
    assert card.missing_rewards == 4
    assert {value.value for value in card.measures.values()} == {None}
    assert card.measures["reward"].reason == "all rewards are missing"
    assert card.measures["adaptation_speed"].reason == "rewards around every shift are missing"


def test_missing_rewards_are_left_out_not_counted_as_zero():
    whole = score(trace_from_arrays([1.0, 1.0, 3.0, 3.0], list("AABB")))
    holed = score(trace_from_arrays([1.0, None, 3.0, math.inf], list("AABB")))
    assert holed.measures["reward"].value == whole.measures["reward"].value == 2
    assert (holed.rows, holed.missing_rewards) == (4, 2)


def test_worlds_are_scored_apart_and_averaged():
    one = score(trace_from_arrays(EXAMPLE, list("AAAABBBBAAAA")), PLAIN)
    other = score(trace_from_arrays([0.0] * 12, list("AAAABBBBAAAA")), PLAIN)
    rewards = [value for pair in zip(EXAMPLE, [0.0] * 12, strict=True) for value in pair]
    labels = [label for label in "AAAABBBBAAAA" for _ in range(2)]
    both = score(trace_from_arrays(rewards, labels, world=[0, 1] * 12), PLAIN)
    assert [world.world for world in both.worlds] == [0, 1]
    for name in ("reward", "adaptation_speed", "recovery_steps", "stability", "forgetting"):
        mean = (one.measures[name].value + other.measures[name].value) / 2
        assert both.measures[name].value == exactly(mean)
    assert both.configurations[0].rows == 16


def test_given_bounds_go_before_recorded_ones_before_those_on_rows():
    trace = trace_from_arrays(
        [1.0, 1.0, 1.0],
        list("ABC"),
        upper_bound=[5.0, 5.0, 5.0],
        metadata={"reward_upper_bounds": {"A": 3.0, "B": 3.0}},
    )
    gaps = score(trace, bounds={"A": 2.0}).worlds[0].gap.configurations
    assert [(gap.gap, gap.source) for gap in gaps] == [
        (1.0, BoundSource.GIVEN),
        (2.0, BoundSource.TRACE),
        (4.0, BoundSource.ROWS),
    ]


def test_level_above_its_bound_is_negative_and_flagged():
    gap = score(trace_from_arrays([2.0], ["A"]), bounds={"A": 1.5}).worlds[0].gap.configurations[0]
    assert (gap.gap, gap.above_bound) == (-0.5, True)


@pytest.mark.parametrize("bound", [math.nan, math.inf, "1", True, None])
def test_bound_that_is_no_number_is_refused(bound):
    with pytest.raises(BoundsError, match=r"A: bound .*, expected a finite number"):
        score(trace_from_arrays([2.0], ["A"]), bounds={"A": bound})


def test_forward_transfer_compares_the_first_visit_with_the_reference():
    trace = trace_from_arrays(EXAMPLE, list("AAAABBBBAAAA"))
    card = score(trace, PLAIN, references={"A": 0.5, "B": -0.5})
    transfers = {t.configuration: t.transfer for t in card.worlds[0].transfer.configurations}
    assert transfers == {"A": exactly((0.75 - 0.5) / 0.5), "B": exactly((0.375 + 0.5) / 0.5)}
    assert card.measures["forward_transfer"].value == exactly((0.5 + 1.75) / 2)


def test_constant_reward_neither_climbs_nor_fails_to_recover():
    card = score(
        trace_from_arrays([0.1] * 999, [str(t // 333) for t in range(999)]), Parameters(recovery_level=1.0)
    )
    assert card.worlds[0].adaptation.no_rise == 2
    assert card.measures["adaptation_speed"].value == 1
    assert card.measures["recovery_steps"].value == 0


def test_gap_to_a_bound_too_small_to_divide_by_has_no_share():
    card = score(trace_from_arrays([1.0], ["A"]), bounds={"A": 5e-324})
    assert card.measures["gap"].value == -1.0
    assert card.measures["gap_share"] == Value(None, "every known bound is 0")
