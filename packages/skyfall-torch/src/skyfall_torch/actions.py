"""The action inside a generated response: its first complete JSON object.

A generation can be anything, so the scan takes time linear in the text whatever it holds. Where an
attempt to read an object fails, the objects it completed on the way are the candidates, and the ones
it left open cannot complete either, so none is read again. Only braces inside the strings of a failed
attempt get one of their own.
"""

import json
import re
from typing import Any

__all__ = ["first_json_object", "parse_action"]

_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
        (?P<mark>[{}\[\]:,])
      | (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
      | (?P<scalar>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)
    )""",
    re.VERBOSE,
)

_Span = tuple[int, int]


def parse_action(text: str) -> Any:
    """The first complete JSON object in `text`, or the stripped text when it holds none.

    A malformed generation is an action for the environment to refuse, so nothing is raised.
    """
    found = first_json_object(text)
    return text.strip() if found is None else found


def first_json_object(text: str) -> dict[str, Any] | None:
    """The complete JSON object that begins first in `text`, or None.

    Args:
        text: Anything. Braces inside strings do not count as structure; `NaN` and its like are no JSON.

    Returns:
        The decoded object. None also when the only candidates cannot be decoded, being nested
        deeper than the decoder goes or holding an integer longer than Python converts.
    """
    visited: set[int] = set()
    start = text.find("{")
    while start != -1:
        if start not in visited:
            for begin, end in _complete_objects(text, start, visited):
                decoded = _decode(text[begin:end])
                if decoded is not None:
                    return decoded
        start = text.find("{", start + 1)
    return None


def _decode(span: str) -> dict[str, Any] | None:
    """The object that `span` spells, or None where it exceeds what the decoder can hold."""
    try:
        decoded = json.loads(span)
    except (RecursionError, ValueError):
        return None
    return decoded if isinstance(decoded, dict) else None


def _complete_objects(text: str, start: int, visited: set[int]) -> list[_Span]:
    """Outermost complete objects of the attempt at `start`: itself, or what it completed before failing.

    Args:
        text: The whole text.
        start: Position of a `{`.
        visited: Collects the position of every brace this attempt read as structure.
    """
    open_at: list[int] = []  # opening positions; the mark itself is text[position]
    complete: list[_Span] = []
    expected = "value"
    position = start
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            return complete
        position = match.end()
        mark = match["mark"]
        if mark in {"{", "["} and expected in {"value", "value or ]"}:
            open_at.append(position - 1)
            visited.add(position - 1)
            expected = "key or }" if mark == "{" else "value or ]"
            continue
        if mark in {"}", "]"} and _closes(mark, expected, text[open_at[-1]]):
            opened = open_at.pop()
            if mark == "}":
                while complete and complete[-1][0] > opened:
                    complete.pop()
                complete.append((opened, position))
            if not open_at:
                return complete
            expected = "end"
            continue
        following = _after(match, expected, text[open_at[-1]] if open_at else "")
        if following is None:
            return complete
        expected = following


def _closes(mark: str, expected: str, opener: str) -> bool:
    """Whether `mark` may close the innermost structure here."""
    if opener == "{":
        return mark == "}" and expected in {"key or }", "end"}
    return mark == "]" and expected in {"value or ]", "end"}


def _after(match: re.Match[str], expected: str, opener: str) -> str | None:
    """What JSON's grammar expects behind this token, or None where the token does not fit."""
    if match["mark"] is not None:
        if match["mark"] == ":" and expected == "colon":
            return "value"
        if match["mark"] == "," and expected == "end":
            return "key" if opener == "{" else "value"
        return None
    if match["string"] is not None and expected in {"key", "key or }"}:
        return "colon"
    return "end" if expected in {"value", "value or ]"} else None
