"""The error tree: what each means to the command line, and how unknown names are helped."""

import inspect
import re

import pytest

from skyfall_core import errors
from skyfall_core.errors import (
    ConfigError,
    InputError,
    RunError,
    ScheduleError,
    SkyfallError,
    suggestion,
)

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SkyfallError)]


@pytest.mark.parametrize("kind", ALL)
def test_wrong_input_exits_2_and_a_failed_run_exits_1(kind: type[SkyfallError]) -> None:
    assert kind.exit_status == (2 if issubclass(kind, InputError) else 1)
    assert kind is SkyfallError or issubclass(kind, InputError) != issubclass(kind, RunError)


def test_tree_in_the_docstring_is_the_tree_of_the_code() -> None:
    drawn: dict[str, str] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^    ([│├└─ ]*)(\w+)", line)
        if found is None:
            continue
        depth = len(found[1]) // 4
        above[depth:] = [found[2]]
        drawn[found[2]] = above[depth - 1] if depth else "Exception"
    assert drawn == {kind.__name__: kind.__mro__[1].__name__ for kind in ALL}


def test_every_error_and_the_helper_are_public() -> None:
    assert sorted(errors.__all__) == sorted([*(kind.__name__ for kind in ALL), "suggestion"])


def test_schedule_error_keeps_place_and_problem_apart() -> None:
    error = ScheduleError("regimes[2].axes", "no good")
    assert (str(error), error.where, error.problem) == (
        "regimes[2].axes: no good",
        "regimes[2].axes",
        "no good",
    )
    assert str(ScheduleError("", "no good")) == "no good"
    assert isinstance(error, ConfigError)


@pytest.mark.parametrize(
    ("name", "known", "help_"),
    [
        ("cyclc", ["abrupt", "cyclic"], "did you mean 'cyclic'? known: 'abrupt', 'cyclic'"),
        ("zzz", ["b", "a"], "known: 'a', 'b'"),
        ("x", [], "none is known"),
        ("", ["a"], "known: 'a'"),
    ],
)
def test_suggestion_gives_the_nearest_when_there_is_one_and_always_the_list(
    name: str, known: list[str], help_: str
) -> None:
    assert suggestion(name, known) == help_
