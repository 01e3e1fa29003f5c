"""Whether the options in a dataclass are of the types it declares, asked before anything is built from them.

A document can hold anything: `null` or text for a number, half a step, `"false"` for a switch, NaN. Most of
it would otherwise be found out much later, or never.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from numbers import Integral, Real
from os import PathLike
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from skyfall_core.errors import ConfigError, suggestion

__all__ = ["check_types"]

_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a finite number",
    str: "text",
    NoneType: "null",
    Mapping: "a mapping",
    PathLike: "a path",
    tuple[int, ...]: "a list of integers",
    tuple[str, ...]: "a list of texts",
}


def check_types(options: Any, *, may_be_infinite: Collection[str] = ()) -> None:
    """Refuse a field whose value is not of its declared type; a switch's value becomes its member.

    A list passes for a tuple and an integer for a number, a boolean for neither.

    Args:
        options: A dataclass instance, frozen or not.
        may_be_infinite: Numbers that bound something, where infinity means no bound.

    Raises:
        ConfigError: Naming the field, its value and what was expected.
    """
    for name, kinds in _declared(options.__class__).items():
        value = getattr(options, name)
        if isinstance(kinds[0], type) and issubclass(kinds[0], Enum):
            object.__setattr__(options, name, _member(name, value, kinds[0]))
        elif not any(_fits(value, kind, infinite=name in may_be_infinite) for kind in kinds):
            expected = " or ".join(_WORDS[kind] for kind in kinds)
            raise ConfigError(f"{name} {value!r}: expected {expected}")


@cache
def _declared(cls: Any) -> dict[str, tuple[Any, ...]]:
    """Each field's possible types, as `_WORDS` knows them."""
    hints = {field.name: get_type_hints(cls)[field.name] for field in fields(cls)}
    return {
        name: tuple(map(_plain, get_args(hint) if get_origin(hint) is UnionType else (hint,)))
        for name, hint in hints.items()
    }


def _plain(kind: Any) -> Any:
    """A mapping or path without what is said about its contents."""
    origin = get_origin(kind)
    return kind if origin in {None, tuple} else origin


def _member(name: str, value: Any, kind: type[Enum]) -> Enum:
    values = [member.value for member in kind]
    if value not in values:
        raise ConfigError(f"{name} {value!r}: {suggestion(str(value), values)}")
    return kind(value)


def _fits(value: Any, kind: Any, *, infinite: bool) -> bool:
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return isinstance(value, list | tuple) and all(_fits(v, item, infinite=infinite) for v in value)
    if kind in {int, float} and isinstance(value, bool):
        return False
    if kind is int:
        return isinstance(value, Integral) and -(2**63) <= int(value) < 2**63  # as torch counts and seeds
    if kind is float:
        return isinstance(value, Real) and (_is_finite(value) or (infinite and abs(value) == math.inf))
    return isinstance(value, kind)


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False
