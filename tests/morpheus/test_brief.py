"""The one-line view of a world, the letters that act on it, and the demonstrations in it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from skyfall_morpheus.brief import BRIEF_LIMIT, brief
from skyfall_morpheus.cli import app
from skyfall_morpheus.configurations import CANONICAL
from skyfall_morpheus.demo import demonstrate, discounted
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.tools import TOOL_NAMES, TOOLS, tool_of


def state(**changes: Any) -> dict[str, Any]:
    nothing: dict[str, Any] = {
        "ledger": {"cash": 10.0},
        "edi": {"items": []},
        "orders": {"pending": 0, "allocated": 0, "packed": 0},
        "invoices": {"draft": 0, "to_collect": []},
        "payments": {"unmatched": 0},
        "tickets": {"items": []},
    }
    return {**nothing, **changes}


def stuck(number: int, failure: str, *, corrected: bool = False, wait: int = 0) -> dict[str, Any]:
    return {"id": f"E{number}", "failure": failure, "corrected": corrected, "wait": wait}


def ticket(number: int, document: int, **marks: Any) -> dict[str, Any]:
    plain = {"failure": "format_change", "assigned": False, "verified": False}
    return {"id": f"T{number}", "document": f"E{document}", **plain, **marks}


def test_a_world_with_nothing_to_do_is_all_zeros() -> None:
    assert brief(state()) == "f0 r0 d0 p0 v0 c0 o0 q0 s0 i0 u0 m0 $0"


def test_every_count_stands_for_what_its_letter_says() -> None:
    documents = [
        stuck(1, "format_change"),
        stuck(2, "missing_data", corrected=True),
        stuck(3, "duplicate_data"),
        stuck(4, "rate_limit", wait=30),
        stuck(5, "permission_denied"),
    ]
    tickets = [
        ticket(1, 1),
        ticket(2, 9),
        ticket(3, 8, verified=True),
        ticket(4, 5, failure="permission_denied"),
    ]
    seen = state(
        ledger={"cash": -1.0},
        edi={"items": documents},
        orders={"pending": 3, "allocated": 12, "packed": 4},
        invoices={"draft": 5, "to_collect": [{}, {}]},
        payments={"unmatched": 6},
        tickets={"items": tickets},
    )
    assert brief(seen) == "f1 r1 d1 p1 v1 c1 o3 q9 s4 i5 u2 m6 $1"


@pytest.mark.parametrize("configuration", list(CANONICAL))
def test_the_line_always_has_its_length(configuration: str) -> None:
    lines = [one.observation for one in demonstrate(configuration, 150, 2, observe="brief")]
    assert {len(line) for line in lines} == {BRIEF_LIMIT}
    assert len(set(lines)) > 10


def test_letters_name_tools_and_no_two_the_same() -> None:
    assert len({tool.letter for tool in TOOLS.values()}) == len(TOOL_NAMES)
    for tool in TOOLS.values():
        assert tool_of(tool.letter) is tool_of(tool.name) is tool


def test_an_environment_shows_the_line_and_takes_a_letter() -> None:
    env = MorpheusEnv(observe="brief")
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    while observation[observation.index("o") + 1] == "0":
        observation, *_ = env.step('{"tool":"w"}')
    before, _, _, _, info = observation, *env.step({"tool": "o"})[1:]
    assert info["trace"]["tool"] == "allocate_order"
    assert not info["invalid_action"]
    assert before != brief(env.latest["state"])
    assert env.step('{"tool":"z"}')[4]["invalid_action"]
    env.close()


def test_brief_demonstrations_hold_lines_letters_and_returns(tmp_path: Path) -> None:
    path = tmp_path / "demo.jsonl"
    options = ["--observe", "brief", "--steps", "60", "--gamma", "0.5", "--configuration", "edi_spike"]
    assert CliRunner().invoke(app, ["demo", "-o", str(path), *options]).exit_code == 0
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {len(row["observation"]) for row in rows} == {BRIEF_LIMIT}
    assert {row["action"]["tool"] for row in rows} <= {tool.letter for tool in TOOLS.values()}
    for row, following in itertools.pairwise(rows):
        assert row["return"] == pytest.approx(row["reward"] + 0.5 * following["return"])
    assert rows[-1]["return"] == rows[-1]["reward"]


def test_returns_count_later_rewards_for_less() -> None:
    assert discounted([1.0, 0.0, 4.0], 0.5) == [2.0, 2.0, 4.0]
    assert discounted([], 0.5) == []


def test_an_unknown_kind_of_observation_is_input_that_cannot_be_used(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "x"), "--observe", "breif"])
    assert (result.exit_code, "did you mean 'brief'" in result.output) == (2, True)
