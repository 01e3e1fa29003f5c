"""`skyfall plugins`: every name a document can use, and who provides it."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from skyfall_core import plugins
from skyfall_core.cli.app import build_app
from skyfall_core.plugins import Group, Plugin


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[Group, dict[str, Plugin]]:
    """A catalogue of our own, so that what is installed beside does not matter."""
    names: dict[Group, dict[str, Plugin]] = {group: {} for group in Group}
    monkeypatch.setattr(plugins, "catalogue", lambda group: names[group])
    return names


def listed(*arguments: str) -> str:
    done = CliRunner().invoke(build_app(), ["plugins", *arguments])
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_each_group_lists_name_target_and_provider(found: dict[Group, dict[str, Plugin]]) -> None:
    found[Group.ALGORITHMS] = {
        "a": Plugin(Group.ALGORITHMS, "a", "m:A", "dist", "1.0"),
        "longer": Plugin(Group.ALGORITHMS, "longer", "m:B", "dist", "1.0", ("other 2.0",)),
        "gone": Plugin(Group.ALGORITHMS, "gone", "m:C", "skyfall-torch"),
        "mine": Plugin(Group.ALGORITHMS, "mine", "m:D"),
    }
    assert listed().splitlines()[:7] == [
        "skyfall.algorithms",
        "  a       m:A  (dist 1.0)",
        "  longer  m:B  (dist 1.0 AND other 2.0: a conflict)",
        "  gone    m:C  (skyfall-torch (not installed))",
        "  mine    m:D  (this process)",
        "skyfall.policies",
        "  none",
    ]


def test_json_says_the_same_for_machines(found: dict[Group, dict[str, Plugin]]) -> None:
    found[Group.REWARDS] = {
        "a": Plugin(Group.REWARDS, "a", "m:A", "dist", "1.0", ("other 2.0",)),
        "gone": Plugin(Group.REWARDS, "gone", "m:C", "skyfall-morpheus"),
    }
    printed: dict[str, Any] = json.loads(listed("--json"))
    assert list(printed) == [group.value for group in Group]
    assert printed["skyfall.rewards"] == [
        {
            "name": "a",
            "target": "m:A",
            "distribution": "dist",
            "version": "1.0",
            "installed": True,
            "conflicts_with": ["other 2.0"],
        },
        {
            "name": "gone",
            "target": "m:C",
            "distribution": "skyfall-morpheus",
            "version": None,
            "installed": False,
            "conflicts_with": [],
        },
    ]


def test_nothing_installed_is_listed_as_nothing(found: dict[Group, dict[str, Plugin]]) -> None:
    assert set(listed().splitlines()[1::2]) == {"  none"}
