"""Schedules against a slow, obvious oracle: one label written down for every step."""

import dataclasses
import json
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfall_core import schedule as schedule_module
from skyfall_core.errors import ConfigError, ScheduleError
from skyfall_core.schedule import Regime, RegimeSchedule

MODES = ("abrupt", "cyclic", "linear_drift")
HORIZON = 80


def refusal(config: Any) -> str:
    with pytest.raises(ScheduleError) as caught:
        RegimeSchedule.from_dict(config)
    return str(caught.value)


def entries(durations: Sequence[int | None]) -> list[dict[str, Any]]:
    return [
        {"regime_id": f"r{index}", "duration_steps": duration, "axes": {"axis": index * 10}}
        for index, duration in enumerate(durations)
    ]


def labels_of(durations: Sequence[int | None], mode: str) -> list[str]:
    """The label of each of the first `HORIZON` steps, spelled out."""
    once: list[str] = []
    for index, duration in enumerate(durations):
        once += [f"r{index}"] * (HORIZON if duration is None else duration)
    if mode == "cyclic":
        return list(islice(cycle(once), HORIZON))
    return (once + [once[-1]] * HORIZON)[:HORIZON]


@st.composite
def schedules(draw: st.DrawFn) -> tuple[RegimeSchedule, list[str]]:
    """A schedule of any mode and its label at every step."""
    mode = draw(st.sampled_from(MODES))
    drift_window = draw(st.integers(0, 6))
    shortest = max(drift_window, 1) if mode == "linear_drift" else 1
    durations: list[int | None] = draw(st.lists(st.integers(shortest, shortest + 12), min_size=1, max_size=6))
    if mode != "cyclic" and draw(st.booleans()):
        durations[-1] = None
    schedule = RegimeSchedule(entries(durations), mode, drift_window, draw(st.integers(0, 2**40)))
    return schedule, labels_of(durations, mode)


# ---------------------------------------------------------------- labels and boundaries


@given(schedules())
def test_label_is_the_one_written_down_for_the_step(made: tuple[RegimeSchedule, list[str]]) -> None:
    schedule, labels = made
    assert [schedule.regime_id(step) for step in range(HORIZON)] == labels
    assert [schedule.regime_at(step).regime_id for step in range(HORIZON)] == labels


@given(schedules())
def test_boundary_is_where_the_label_changes_or_one_configuration_begins_again(
    made: tuple[RegimeSchedule, list[str]],
) -> None:
    schedule, labels = made
    # labels of neighbours differ everywhere but in a schedule of one entry, which never shifts
    changes = [step > 0 and labels[step] != labels[step - 1] for step in range(HORIZON)]
    assert [schedule.is_boundary(step) for step in range(HORIZON)] == changes


@given(schedules())
def test_next_boundary_is_the_first_boundary_after_the_step(made: tuple[RegimeSchedule, list[str]]) -> None:
    schedule, labels = made
    for step in range(HORIZON):
        following = (later for later in range(step + 1, HORIZON) if labels[later] != labels[later - 1])
        expected = next(following, None)
        found = schedule.next_boundary(step)
        if expected is None:
            assert found is None or found >= HORIZON
        else:
            assert found == expected


@given(schedules(), st.lists(st.integers(0, 10**9), max_size=20), st.randoms())
def test_answer_depends_on_the_step_and_on_nothing_asked_before(
    made: tuple[RegimeSchedule, list[str]], steps: list[int], random: Any
) -> None:
    schedule, _ = made
    first = {step: schedule.regime_at(step) for step in steps}
    random.shuffle(steps)
    again = RegimeSchedule(schedule.regimes, schedule.shift_mode, schedule.drift_window, schedule.seed)
    assert {step: again.regime_at(step) for step in steps} == first


def test_answer_is_the_same_in_another_process() -> None:
    config = {
        "regimes": [
            {"regime_id": "a", "duration_steps": 40, "axes": {"word": "old", "number": 1, "gone": [1]}},
            {"regime_id": "b", "axes": {"word": "new", "number": 4}},
        ],
        "shift_mode": "linear_drift",
        "drift_window": 30,
        "seed": 11,
    }
    here = [dict(RegimeSchedule.from_dict(config).regime_at(step).axes) for step in range(80)]
    code = (
        "import json, sys\nfrom skyfall_core.schedule import RegimeSchedule\n"
        "schedule = RegimeSchedule.from_dict(json.loads(sys.argv[1]))\n"
        "answers = {step: dict(schedule.regime_at(step).axes) for step in reversed(range(80))}\n"
        "print(json.dumps([answers[step] for step in range(80)]))"
    )
    for salt in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code, json.dumps(config)],
            env={"PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout) == here


@pytest.mark.parametrize(
    ("mode", "durations", "total"),
    [
        ("abrupt", [3, 4], 7),
        ("abrupt", [3, None], 0),
        ("abrupt", [None], 0),
        ("cyclic", [3, 4, 5], 12),
        ("linear_drift", [3, 4], 7),
        ("linear_drift", [3, None], 0),
    ],
)
def test_total_is_what_all_entries_last_or_zero_without_an_end(
    mode: str, durations: list[int | None], total: int
) -> None:
    assert RegimeSchedule(entries(durations), mode).total_steps == total


def test_cycle_begins_again_far_out() -> None:
    schedule = RegimeSchedule(entries([3, 4]), "cyclic")
    far = 7 * 10**15
    assert [schedule.regime_id(far + step) for step in range(8)] == ["r0"] * 3 + ["r1"] * 4 + ["r0"]
    assert schedule.is_boundary(far)
    assert schedule.next_boundary(far + 3) == far + 7


def test_single_entry_that_cycles_never_shifts() -> None:
    schedule = RegimeSchedule(entries([3]), "cyclic")
    assert not any(schedule.is_boundary(step) for step in range(20))
    assert schedule.next_boundary(5) is None


def test_finite_schedule_stays_in_its_last_entry() -> None:
    schedule = RegimeSchedule(entries([3, 4]))
    assert schedule.regime_id(10**9) == "r1"
    assert schedule.next_boundary(3) is None


@pytest.mark.parametrize("ask", ["regime_at", "regime_id", "next_boundary"])
def test_negative_step_is_refused(ask: str) -> None:
    with pytest.raises(ValueError, match=r"^step -1 is negative; a run's steps start at 0$"):
        getattr(RegimeSchedule(entries([3, None])), ask)(-1)


def test_looking_a_step_up_costs_a_logarithm_of_the_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    comparisons = 0

    class Counting(int):
        def __lt__(self, other: int) -> bool:
            nonlocal comparisons
            comparisons += 1
            return int(self) < other

    monkeypatch.setattr(
        schedule_module, "bisect_right", lambda starts, step: bisect_right(starts, Counting(step))
    )
    schedule = RegimeSchedule(entries([2] * 9_999 + [None]))
    for step in (0, 1, 9_999, 19_998, 10**9):
        comparisons = 0
        schedule.regime_at(step)
        assert 0 < comparisons <= 15  # log2(10,000) is 13.3


# ---------------------------------------------------------------- aliases


def test_alias_copies_axes_and_shares_the_identity_under_its_own_label() -> None:
    schedule = RegimeSchedule.from_dict(
        {
            "regimes": [
                {"regime_id": "a", "duration_steps": 2, "axes": {"gravity": 1}},
                {"regime_id": "b", "duration_steps": 2, "axes": {"gravity": 5}},
                {"regime_id": "again", "duration_steps": 2, "alias_of": "a"},
                {"regime_id": "and_again", "alias_of": "again", "axes": {}},
            ]
        }
    )
    assert [regime.regime_id for regime in schedule.regimes] == ["a", "b", "again", "and_again"]
    assert [regime.origin for regime in schedule.regimes] == [None, None, "a", "a"]
    assert [regime.identity for regime in schedule.regimes] == ["a", "b", "a", "a"]
    assert [dict(schedule.regime_at(step).axes) for step in (0, 2, 4, 6)] == [
        {"gravity": 1},
        {"gravity": 5},
        {"gravity": 1},
        {"gravity": 1},
    ]


def test_alias_keeps_its_origin_while_the_world_drifts_back() -> None:
    schedule = RegimeSchedule(
        [
            {"regime_id": "a", "duration_steps": 4, "axes": {"g": 0}},
            {"regime_id": "b", "duration_steps": 4, "axes": {"g": 8}},
            {"regime_id": "back", "alias_of": "a"},
        ],
        "linear_drift",
        4,
    )
    assert schedule.regime_at(10) == Regime("back", None, {"g": 4.0}, "a")


# ---------------------------------------------------------------- drift


@given(
    st.integers(1, 40),
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6),
)
def test_number_moves_linearly_over_the_window_and_is_exactly_new_after_it(
    window: int, old: float, new: float
) -> None:
    schedule = RegimeSchedule(
        [
            {"regime_id": "a", "duration_steps": 50, "axes": {"g": old}},
            {"regime_id": "b", "axes": {"g": new}},
        ],
        "linear_drift",
        window,
    )
    assert schedule.regime_at(49).get("g") == old
    for k in range(window):
        assert schedule.regime_at(50 + k).get("g") == pytest.approx(old + (new - old) * k / window, abs=1e-6)
    assert [schedule.regime_at(50 + k).get("g") for k in (window, window + 1, 10**6)] == [new] * 3


def test_first_configuration_drifts_from_nowhere() -> None:
    schedule = RegimeSchedule(entries([20, None]), "linear_drift", 20)
    assert [schedule.regime_at(step).get("axis") for step in range(20)] == [0] * 20


def test_label_changes_at_once_while_axes_drift() -> None:
    schedule = RegimeSchedule(entries([20, None]), "linear_drift", 20)
    assert [schedule.regime_id(step) for step in (19, 20)] == ["r0", "r1"]
    assert schedule.is_boundary(20)
    assert not schedule.is_boundary(40)
    assert schedule.regime_at(30) == Regime("r1", None, {"axis": 5.0})


def words(seed: int, boundary: int = 500, window: int = 400) -> list[str]:
    """The value of a non-numeric axis at each step of the drift."""
    schedule = RegimeSchedule(
        [
            {"regime_id": "a", "duration_steps": boundary, "axes": {"word": "old"}},
            {"regime_id": "b", "axes": {"word": "new"}},
        ],
        "linear_drift",
        window,
        seed,
    )
    return [schedule.regime_at(boundary + step).get("word") for step in range(window)]


def test_other_axes_switch_with_a_probability_that_rises_to_certainty() -> None:
    switched = [0] * 4
    for seed in range(30):
        drawn = words(seed)
        assert drawn[0] == "old"
        for quarter in range(4):
            switched[quarter] += drawn[quarter * 100 : (quarter + 1) * 100].count("new")
    # 3,000 draws a quarter with mean probabilities 1/8, 3/8, 5/8, 7/8: five standard deviations are 0.045
    assert [count / 3000 for count in switched] == pytest.approx([0.125, 0.375, 0.625, 0.875], abs=0.045)


def test_draws_depend_on_seed_and_boundary() -> None:
    assert words(1) == words(1)
    assert words(1) != words(2)
    assert words(1) != words(1, boundary=501)


def test_draws_do_not_depend_on_what_else_the_schedule_holds() -> None:
    longer = RegimeSchedule(
        [
            {"regime_id": "x", "duration_steps": 100, "axes": {"word": "older", "n": 1}},
            {"regime_id": "a", "duration_steps": 400, "axes": {"word": "old", "n": 2}},
            {"regime_id": "b", "duration_steps": 400, "axes": {"word": "new"}},
            {"regime_id": "c", "axes": {}},
        ],
        "linear_drift",
        400,
        7,
    )
    assert [longer.regime_at(500 + step).get("word") for step in range(400)] == words(7)


def test_axis_that_one_side_lacks_comes_or_goes_with_the_draw() -> None:
    schedule = RegimeSchedule(
        [
            {"regime_id": "a", "duration_steps": 100, "axes": {"goes": 3, "n": 0}},
            {"regime_id": "b", "axes": {"comes": 4, "n": 1}},
        ],
        "linear_drift",
        50,
    )
    seen = {tuple(sorted(schedule.regime_at(100 + step).exclude("n").items())) for step in range(50)}
    assert seen == {(("goes", 3),), (("comes", 4),)}
    assert dict(schedule.regime_at(150).axes) == {"comes": 4, "n": 1}


@pytest.mark.parametrize(
    ("old", "new"), [(True, False), ("1", "2"), (None, 3), (1.0, float("inf")), ([1], [2])]
)
def test_what_is_no_finite_number_is_never_interpolated(old: Any, new: Any) -> None:
    schedule = RegimeSchedule(
        [
            {"regime_id": "a", "duration_steps": 60, "axes": {"x": old}},
            {"regime_id": "b", "axes": {"x": new}},
        ],
        "linear_drift",
        60,
    )
    values = [schedule.regime_at(60 + step).get("x") for step in range(60)]
    assert values[0] == old
    assert all(value in (old, new) for value in values)
    assert old in values[1:]
    assert new in values


@pytest.mark.parametrize("window", [-3, 0, 1])
def test_window_below_one_step_counts_as_one(window: int) -> None:
    schedule = RegimeSchedule(entries([5, None]), "linear_drift", window)
    assert schedule.drift_window == 1
    assert [schedule.regime_at(step).get("axis") for step in (4, 5, 6)] == [0, 0, 10]


def test_last_entry_may_be_shorter_than_the_window() -> None:
    schedule = RegimeSchedule(entries([8, 2]), "linear_drift", 8)
    assert [schedule.regime_at(step).get("axis") for step in (8, 12, 16)] == [0, 5, 10]


def test_abrupt_and_cyclic_ignore_the_window() -> None:
    for mode in ("abrupt", "cyclic"):
        schedule = RegimeSchedule(entries([5, 5]), mode, drift_window=9)
        assert [schedule.regime_at(step).get("axis") for step in (4, 5, 6)] == [0, 10, 10]


# ---------------------------------------------------------------- bad schedules


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (None, "a schedule is a mapping with 'regimes', not NoneType"),
        ([], "a schedule is a mapping with 'regimes', not list"),
        ({}, "regimes: missing; list at least one entry with a regime_id"),
        ({"regimes": []}, "regimes: []: expected a list with at least one entry"),
        ({"regimes": "a"}, "regimes: 'a': expected a list with at least one entry"),
        (
            {"regimes": {"regime_id": "a"}},
            "regimes: {'regime_id': 'a'}: expected a list with at least one entry",
        ),
        ({"regimes": ["a"]}, "regimes[0]: 'a': expected a mapping with a regime_id"),
        ({"regimes": [None]}, "regimes[0]: None: expected a mapping with a regime_id"),
        ({"regimes": [{}]}, "regimes[0].regime_id: None: expected a non-empty string"),
        ({"regimes": [{"regime_id": ""}]}, "regimes[0].regime_id: '': expected a non-empty string"),
        ({"regimes": [{"regime_id": 3}]}, "regimes[0].regime_id: 3: expected a non-empty string"),
        (
            {"regimes": [{"regime_id": "a"}], "shift_mod": "cyclic"},
            (
                "shift_mod: unknown key; did you mean 'shift_mode'? "
                "known: 'drift_window', 'regimes', 'seed', 'shift_mode'"
            ),
        ),
        (
            {"regimes": [{"regime_id": "a", "duration": 3}]},
            (
                "regimes[0].duration: unknown key; did you mean 'duration_steps'? "
                "known: 'alias_of', 'axes', 'duration_steps', 'regime_id'"
            ),
        ),
        (
            {"regimes": [{"regime_id": "a"}], 3: 4},
            "3: unknown key; known: 'drift_window', 'regimes', 'seed', 'shift_mode'",
        ),
        (
            {"regimes": [{"regime_id": "a"}], "shift_mode": "cyclc"},
            "shift_mode: 'cyclc': did you mean 'cyclic'? known: 'abrupt', 'cyclic', 'linear_drift'",
        ),
        (
            {"regimes": [{"regime_id": "a"}], "shift_mode": ["cyclic"]},
            "shift_mode: ['cyclic']: did you mean 'cyclic'? known: 'abrupt', 'cyclic', 'linear_drift'",
        ),
        (
            {"regimes": [{"regime_id": "a"}], "drift_window": 2.5},
            "drift_window: 2.5: expected an integer",
        ),
        ({"regimes": [{"regime_id": "a"}], "seed": None}, "seed: None: expected an integer"),
        ({"regimes": [{"regime_id": "a"}], "seed": -1}, "seed: -1 is negative; seeds start at 0"),
        (
            {"regimes": [{"regime_id": "a", "axes": [1]}]},
            "regimes[0].axes: [1]: expected a mapping of axis to value",
        ),
        (
            {"regimes": [{"regime_id": "a", "axes": {1: 2}}]},
            "regimes[0].axes.1: the key 1 is not text; put it in quotes",
        ),
    ],
)
def test_schedule_that_cannot_hold_is_refused(config: Any, problem: str) -> None:
    assert refusal(config) == problem


@pytest.mark.parametrize(
    ("duration", "problem"),
    [
        (0, "0 is no duration; at least 1 step, or none on the last entry"),
        (-5, "-5 is no duration; at least 1 step, or none on the last entry"),
        (True, "True: expected an integer"),
        (2.0, "2.0: expected an integer"),
        ("3", "'3': expected an integer"),
        (float("inf"), "inf: expected an integer"),
    ],
)
@pytest.mark.parametrize("as_object", [False, True])
def test_duration_is_a_positive_integer(duration: Any, problem: str, as_object: bool) -> None:
    entry: Any = Regime("a", duration) if as_object else {"regime_id": "a", "duration_steps": duration}
    assert refusal({"regimes": [entry, {"regime_id": "b"}]}) == f"regimes[0].duration_steps: {problem}"


def test_gap_is_refused_where_it_opens() -> None:
    config = {"regimes": entries([3, None, 4])}
    assert refusal(config) == (
        "regimes[1].duration_steps: missing, which leaves a gap before 'r2'; "
        "only the last entry may go without"
    )


def test_cycle_without_an_end_is_refused() -> None:
    config = {"regimes": entries([3, None]), "shift_mode": "cyclic"}
    assert refusal(config) == "regimes[1].duration_steps: missing; a cyclic schedule needs every duration"


def test_label_that_stands_twice_is_refused() -> None:
    config = {"regimes": [{"regime_id": "a", "duration_steps": 3}, {"regime_id": "a", "alias_of": "a"}]}
    assert refusal(config) == (
        "regimes[1].regime_id: 'a' stands twice; give the revisit its own label and alias_of"
    )


@pytest.mark.parametrize(
    ("alias", "problem"),
    [
        ("basline", "'basline' is no earlier entry; did you mean 'baseline'? known: 'baseline'"),
        ("b", "'b' is no earlier entry; known: 'baseline'"),
        ("later", "'later' is no earlier entry; known: 'baseline'"),
        (["baseline"], "['baseline'] is no earlier entry; did you mean 'baseline'? known: 'baseline'"),
        ({}, "{} is no earlier entry; known: 'baseline'"),
    ],
)
def test_alias_of_nothing_earlier_is_refused(alias: Any, problem: str) -> None:
    config = {
        "regimes": [
            {"regime_id": "baseline", "duration_steps": 3},
            {"regime_id": "b", "duration_steps": 3, "alias_of": alias},
            {"regime_id": "later"},
        ]
    }
    assert refusal(config) == f"regimes[1].alias_of: {problem}"


def test_alias_with_axes_of_its_own_is_refused() -> None:
    config = {
        "regimes": [
            {"regime_id": "a", "duration_steps": 3},
            {"regime_id": "b", "alias_of": "a", "axes": {"g": 1}},
        ]
    }
    assert refusal(config) == "regimes[1].axes: an alias copies the axes of 'a'; leave them out"


def test_entry_too_short_for_its_drift_is_refused() -> None:
    config = {"regimes": entries([9, 4, None]), "shift_mode": "linear_drift", "drift_window": 5}
    assert refusal(config) == (
        "regimes[1].duration_steps: 4 is shorter than drift_window 5, so the drift would never arrive; "
        "lengthen the entry or shorten the window"
    )


# ---------------------------------------------------------------- files


def test_file_error_names_file_line_entry_and_field(tmp_path: Path) -> None:
    file = tmp_path / "shifts.yaml"
    file.write_text(
        "shift_mode: abrupt\nregimes:\n"
        "  - regime_id: a\n    duration_steps: 5\n"
        "  - regime_id: b\n    alias_of: c\n"
    )
    with pytest.raises(ConfigError) as caught:
        RegimeSchedule.from_yaml_file(file)
    assert str(caught.value) == f"{file}:6: regimes[1].alias_of: 'c' is no earlier entry; known: 'a'"


def test_file_with_a_field_missing_names_the_line_of_its_entry(tmp_path: Path) -> None:
    file = tmp_path / "shifts.yaml"
    file.write_text("regimes:\n- regime_id: a\n- regime_id: b\n")
    with pytest.raises(
        ConfigError, match=rf"^{file}:2: regimes\[0\]\.duration_steps: missing, which leaves a gap"
    ):
        RegimeSchedule.from_yaml_file(file)


def test_file_gives_the_schedule_its_mapping_gives(tmp_path: Path) -> None:
    file = tmp_path / "shifts.yaml"
    file.write_text(
        "regimes: [{regime_id: a, duration_steps: 3, axes: {g: 1e-3}}, {regime_id: b}]\nseed: 4\n"
    )
    schedule = RegimeSchedule.from_yaml_file(str(file))
    assert schedule.regimes == (Regime("a", 3, {"g": 0.001}), Regime("b"))
    assert schedule.seed == 4


# ---------------------------------------------------------------- one configuration


def test_regime_gives_selects_and_excludes_axes() -> None:
    regime = Regime("a", 3, {"x": 1, "y": None})
    assert (regime.get("x"), regime.get("y", 5), regime.get("z"), regime.get("z", 6)) == (1, None, None, 6)
    assert regime.select(["x", "z"]) == {"x": 1}
    assert regime.select("y") == {"y": None}
    assert regime.exclude({"x", "z"}) == {"y": None}
    assert regime.exclude("x") == {"y": None}


def test_regime_as_plain_data_leaves_out_what_is_not_set() -> None:
    assert Regime("a").to_dict() == {"regime_id": "a"}
    assert Regime("b", 3, {"x": 1}, "a").to_dict() == {
        "regime_id": "b",
        "duration_steps": 3,
        "axes": {"x": 1},
        "origin": "a",
    }


def test_regime_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Regime("a").regime_id = "b"  # type: ignore[misc]
