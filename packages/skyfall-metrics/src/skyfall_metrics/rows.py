"""One line of a trace: which of its keys are read, as what, and what to say when that fails.

A row type is made for each trace. It names only the keys that the trace has, so that everything else
(observations, actions, messages) is skipped by the decoder without being built. A column that the first
row lacks is typed `None`: meeting a value there later fails the decoding, and the reader widens the type.
What must not change within a trace, its run and its version, is typed as the one value it may have.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import msgspec

from skyfall_metrics.errors import ParameterError, shortened

__all__ = [
    "COLUMNS",
    "TRACE_VERSION",
    "Keys",
    "describe_failure",
    "open_type",
    "parse_leniently",
    "strict_type",
]

TRACE_VERSION = 1

_Step = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Name = str | int | None
_Number = float | None
_Flag = bool | None

COLUMNS: Mapping[str, Any] = {
    "boundary": _Flag,
    "origin": _Name,
    "world": _Name,
    "effective_rank": _Number,
    "upper_bound": _Number,
    "resumed": _Flag,
}
"""Columns a trace may have beside step, reward and regime, with the type of their values."""

_FIXED = ("run_id", "trace_version")
"""Keys whose value is the same on every row of a trace."""

_EXPECTED = {
    "step": "a whole number from 0",
    "reward": "a number or null",
    "regime": "a string",
    "boundary": "true or false",
    "origin": "a string or null",
    "world": "a whole number or a string",
    "effective_rank": "a number or null",
    "upper_bound": "a number or null",
    "resumed": "true or false",
    "run_id": "the run's one identifier",
    "trace_version": "the trace's one version",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What the rows of a trace call things; the defaults are this project's own names.

    Logs of other tools are scored by naming their keys here. `step=None` numbers the rows in file order,
    for logs whose step restarts with every episode.

    Raises:
        ParameterError: Two columns read from the same key.
    """

    step: str | None = "step"
    reward: str = "reward"
    regime: str = "regime_id"
    boundary: str = "boundary"
    origin: str = "origin"
    world: str = "world"
    effective_rank: str = "effective_rank"
    upper_bound: str = "upper_bound"
    resumed: str = "resumed"
    run_id: str = "run_id"
    algorithm_id: str = "algorithm_id"
    task: str = "task"
    seed: str = "seed"

    def __post_init__(self) -> None:
        names = self.columns()
        for column, key in names.items():
            other = next(c for c, k in names.items() if k == key)
            if other != column:
                raise ParameterError(
                    f"key {key!r} cannot be both {other} and {column}: name two different keys"
                )

    def columns(self) -> dict[str, str]:
        """Key in the file, by column, for what is read from every row."""
        apart = ("algorithm_id", "task", "seed")
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in apart}
        return {column: key for column, key in named.items() if key is not None} | {
            "trace_version": "trace_version"
        }

    def identity(self) -> dict[str, str]:
        """Key in the file, by name, for what tells runs apart."""
        return {
            "run_id": self.run_id,
            "algorithm_id": self.algorithm_id,
            "task": self.task,
            "seed": self.seed,
        }


def open_type(keys: Keys, header: Mapping[str, Any]) -> type[msgspec.Struct]:
    """The row type of a trace that reads every column and leaves run and version to be looked at.

    Args:
        keys: What the trace calls its columns.
        header: The first row, whole. A trace whose first row has a label has one on every row.
    """
    label: tuple[Any, ...] = (_Name, None) if header.get(keys.regime) is None else (str | int,)
    return _struct(keys, COLUMNS, label, dict.fromkeys(_FIXED, Any))


def strict_type(keys: Keys, header: Mapping[str, Any], columns: Collection[str]) -> type[msgspec.Struct]:
    """The row type of a trace that accepts nothing beyond what is known of it.

    Args:
        keys: What the trace calls its columns.
        header: The first row, whole.
        columns: The optional columns that have had values; any other must be absent or null.
    """
    label: tuple[Any, ...] = (None, None) if header.get(keys.regime) is None else (str | int,)
    names = keys.columns()
    kinds = {name: kind if name in columns else None for name, kind in COLUMNS.items()}
    return _struct(keys, kinds, label, {name: _only(header.get(names[name])) for name in _FIXED})


def _struct(
    keys: Keys, columns: Mapping[str, Any], label: tuple[Any, ...], fixed: Mapping[str, Any]
) -> type[msgspec.Struct]:
    names = keys.columns()
    spec: list[Any] = [("step", _Step)] if "step" in names else []
    spec += [("reward", _Number), ("regime", *label)]
    spec += [(name, kind, None) for name, kind in columns.items()]
    spec += [(name, kind, None) for name, kind in fixed.items()]
    return msgspec.defstruct("Row", spec, rename=names, gc=False)


def _only(value: Any) -> Any:
    return None if value is None else Literal[value]


def parse_leniently(line: bytes) -> dict[str, Any] | None:
    """A row that strict JSON refuses for its numbers alone: bare NaN and Infinity, or 1e999.

    Python's own `json.dumps` writes these, so logs hold them. They become NaN here, whatever their sign.

    Returns:
        The row; None when the line is wrong for any other reason.
    """
    odd: list[str] = []

    def constant(token: str) -> float:
        odd.append(token)
        return math.nan

    def number(token: str) -> float:
        value = float(token)
        return value if math.isfinite(value) else constant(token)

    def integer(token: str) -> int | float:
        return int(token) if len(token) < 20 else number(token)

    try:
        row = json.loads(line.decode(), parse_constant=constant, parse_float=number, parse_int=integer)
        json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return row if odd and isinstance(row, dict) else None


def describe_failure(line: bytes, error: Exception, keys: Keys) -> str:
    """Why a line is no row of the trace, with the value at fault and the remedy."""
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        if missing := re.search(r"missing required field `(.*?)`", text):
            return f"no {missing[1]!r} in this row; every row needs one"
        if "got" in text and text.startswith("Expected `object`"):
            return f"not a JSON object but {text.split('got ')[1]}; a trace has one object a line"
        for column, key in keys.columns().items():
            if text.endswith(f"`$.{key}`"):
                return f"{key} is {_value(line, key)}, expected {_EXPECTED[column]}"
    if line.startswith(codecs.BOM_UTF8):
        return "begins with a byte order mark; save the file as UTF-8 without one"
    why = f"not a JSON object ({text})"
    if isinstance(error, UnicodeDecodeError):
        why = f"not UTF-8 ({error.reason})"
    elif isinstance(error, RecursionError):
        why = "nested too deeply"
    return f"{why}: {_excerpt(line)}"


def _value(line: bytes, key: str) -> str:
    try:
        return shortened(json.dumps(json.loads(line)[key], ensure_ascii=False))
    except (ValueError, KeyError, RecursionError):
        return "unreadable"


def _excerpt(line: bytes) -> str:
    return repr(shortened(line[:200].decode("utf-8", "backslashreplace").strip()))
