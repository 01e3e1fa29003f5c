"""The names that the core knows without an extra are exactly those that the extras register."""

import tomllib
from pathlib import Path

from skyfall_core.plugins import EXTRAS, SHIPPED

ROOT = Path(__file__).parents[1]


def test_core_knows_every_name_of_the_extras_and_where_it_leads() -> None:
    registered: dict[str, dict[str, str]] = {}
    for distribution, _ in EXTRAS.values():
        text = (ROOT / "packages" / distribution / "pyproject.toml").read_text(encoding="utf-8")
        for group, names in tomllib.loads(text)["project"]["entry-points"].items():
            registered.setdefault(group, {}).update(names)
    assert {group.value: dict(names) for group, names in SHIPPED.items()} == registered
