"""Bounds files, observed bounds and reference runs."""

import pytest

from skyfall_metrics.bounds import BoundSource
from skyfall_metrics.bounds_file import BoundsTable, read_bounds, with_observed_bounds, with_table
from skyfall_metrics.errors import BoundsError, ComparisonError
from skyfall_metrics.parameters import Parameters
from skyfall_metrics.references import reference_means, with_reference_runs
from skyfall_metrics.scoring import score
from skyfall_metrics.trace import trace_from_arrays


def card(rewards, labels, *, task="cart", family="ppo", **metadata):
    metadata |= {"task": task, "algorithm_id": family}
    return score(trace_from_arrays(rewards, list(labels), metadata=metadata), Parameters(window=1))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "bounds.yaml"


def test_flat_yaml_json_and_tasks_mean_the_same(file):
    file.write_text(
        "# best known\ncalm: 1.5  # per step\n\"wind: strong\": -2\n'x y': .5\ncart:\n  calm: 2e0\n"
    )
    table = read_bounds(file)
    assert table == BoundsTable({"calm": 1.5, "wind: strong": -2, "x y": 0.5}, {"cart": {"calm": 2}})
    assert table.of("cart")["calm"] == 2
    assert table.of("walk")["calm"] == table.of(None)["calm"] == 1.5
    file.write_text('{"calm": 1.5, "wind: strong": -2, "x y": 0.5, "cart": {"calm": 2}}')
    assert read_bounds(file) == table


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("calm: high\n", "line 1: calm: bound 'high', expected a number"),
        ("calm: .inf\n", "line 1: calm: bound '.inf', expected a number"),
        ("calm: inf\n", "calm: bound inf, expected a finite number"),
        ("# nothing yet\n", "no bound in it; write 'configuration: number', one a line"),
        ("{}", "no bound in it; write 'configuration: number', one a line"),
        ("x" * 5000, f"line 1: '{'x' * 39}…', expected 'configuration: number'"),
        (f"calm: {'x' * 5000}", f"line 1: calm: bound '{'x' * 39}…', expected a number"),
        ("- calm\n", "line 1: '- calm', expected 'configuration: number'"),
        ("calm: [1]\n", "line 1: calm: bound '[1]', expected a number"),
        ("  calm: 1\n", "line 1: 'calm' is indented, but no task stands above it"),
        ("cart:\n  calm:\n", "line 2: 'calm' has no number"),
        ("calm: 1\ncalm: 2\n", "line 2: 'calm' stands there twice"),
        ('{"calm": true}', "calm: bound True, expected a finite number"),
        ('{"cart": {"calm": "1"}}', "cart.calm: bound '1', expected a finite number"),
        ('{"calm": 1', "not JSON: Expecting ',' delimiter: line 1 column 11 (char 10)"),
    ],
)
def test_bad_bounds_file_says_where(file, text, message):
    file.write_text(text)
    with pytest.raises(BoundsError) as caught:
        read_bounds(file)
    assert str(caught.value) == f"{file}: {message}"


def test_absent_bounds_file(file):
    with pytest.raises(BoundsError) as caught:
        read_bounds(file)
    assert str(caught.value) == f"{file}: cannot read: No such file or directory"


def test_table_goes_before_what_the_trace_says():
    scored = card([1.0, 2.0], "AB", reward_upper_bounds={"A": 5.0, "B": 5.0})
    (given,), warnings = with_table([scored], BoundsTable({}, {"cart": {"A": 3.0}}))
    gaps = given.worlds[0].gap.configurations
    assert [(gap.gap, gap.source) for gap in gaps] == [(2.0, BoundSource.GIVEN), (3.0, BoundSource.TRACE)]
    assert given.measures["gap"].value == 2.5
    assert warnings == []


def test_bounds_that_no_run_can_use_are_named():
    _, warnings = with_table(
        [card([1.0], ["calm"])], BoundsTable({"clam": 1.0}, {"cart": {"storm": 1.0}, "walk": {}})
    )
    assert warnings == [
        "bound for 'clam': no such configuration; did you mean 'calm'? known: 'calm'",
        "bound for 'storm' of task 'cart': no such configuration; known: 'calm'",
        "bounds for task 'walk': no such task; known: 'cart'",
    ]


def test_observed_bound_is_the_best_settled_level_of_the_task_and_labeled_so():
    scored = [card([1.0, 4.0], "AB"), card([3.0, 2.0], "AB"), card([9.0], "A", task="walk")]
    first, second, other = with_observed_bounds(scored)
    assert [gap.gap for gap in first.worlds[0].gap.configurations] == [2.0, 0.0]
    assert [gap.gap for gap in second.worlds[0].gap.configurations] == [0.0, 2.0]
    assert other.measures["gap"].value == 0
    assert {gap.source for gap in first.worlds[0].gap.configurations} == {BoundSource.OBSERVED}


def test_references_are_matched_by_family_and_task():
    means = reference_means([card([1.0, 3.0], "AA"), card([4.0], "A"), card([7.0], "A", family="ewc")])
    assert means == {("ppo", "cart"): {"A": 3.0}, ("ewc", "cart"): {"A": 7.0}}
    scored = [card([6.0, 0.0], "AB"), card([7.0], "A", family="her")]
    found, alone = with_reference_runs(scored, means)
    assert found.measures["forward_transfer"].value == 1.0
    assert found.worlds[0].transfer.configurations[1].reason == "no reference run of 'B'"
    assert alone.measures["forward_transfer"].reason == "no reference run of 'A'"


def test_reference_run_of_two_configurations_is_refused():
    with pytest.raises(ComparisonError) as caught:
        reference_means([card([1.0, 2.0], "AB", run_id="r")])
    assert str(caught.value) == (
        "r · ppo · cart: lived 'A', 'B': a reference run lives one configuration alone"
    )
