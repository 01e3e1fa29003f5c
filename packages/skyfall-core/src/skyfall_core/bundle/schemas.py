"""Gymnasium spaces as JSON Schema, so that a program in any language can check what it sends.

A schema describes values in JSON form (`skyfall_core.bundle.spaces.value_to_json`) in dialect 2020-12.
A space of somebody else's says what it takes in a method `json_schema()`; without one, its schema
allows anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces

__all__ = ["DIALECT", "space_schema"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The dialect, as `$schema` names it."""

Schema = dict[str, Any]


def space_schema(space: Space[Any]) -> Schema:
    """The JSON Schema of `space`, with the dialect it is written in."""
    return {"$schema": DIALECT, **_schema(space)}


def _schema(space: Space[Any]) -> Schema:  # noqa: C901, PLR0911 - one case a kind of space
    match space:
        case spaces.Box():
            return _array(space.low, space.high, space.dtype)
        case spaces.Discrete():
            return _whole(int(space.start), int(space.start + space.n) - 1)
        case spaces.MultiDiscrete():
            return _array(space.start, space.start + space.nvec - 1, space.dtype)
        case spaces.MultiBinary():
            zeros = np.zeros(space.shape, np.int8)
            return _array(zeros, zeros + 1, zeros.dtype)
        case spaces.Text():
            return _text(space)
        case spaces.Dict():
            return _object({str(key): _schema(part) for key, part in space.spaces.items()})
        case spaces.Tuple():
            return _list([_schema(part) for part in space.spaces])
        case spaces.OneOf():
            parts = enumerate(space.spaces)
            return {"oneOf": [_list([{"const": number}, _schema(part)]) for number, part in parts]}
        case spaces.Sequence():
            return {"type": "array", "items": _schema(space.feature_space)}
        case spaces.Graph():
            return _graph(space)
    told = getattr(space, "json_schema", None)
    described = told() if callable(told) else None
    return dict(described) if isinstance(described, Mapping) else {}


def _array(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any], dtype: np.dtype[Any] | None) -> Schema:
    """Nested lists of numbers between two arrays; one schema for all items where they agree."""
    if low.ndim:
        if not len(low) or ((low == low[0]).all() and (high == high[0]).all()):
            count = {"minItems": len(low), "maxItems": len(low)}
            return {
                "type": "array",
                **count,
                **({"items": _array(low[0], high[0], dtype)} if len(low) else {}),
            }
        return _list([_array(lowest, highest, dtype) for lowest, highest in zip(low, high, strict=True)])
    kind = "f" if dtype is None else dtype.kind
    if kind == "b":
        return {"enum": sorted({bool(low), bool(high)})}
    if kind in "iu":
        return _whole(int(low), int(high))
    limits = {"minimum": float(low), "maximum": float(high)}
    return {"type": "number", **{name: limit for name, limit in limits.items() if np.isfinite(limit)}}


def _whole(lowest: int, highest: int) -> Schema:
    return {"type": "integer", "minimum": lowest, "maximum": highest}


def _list(items: Sequence[Schema]) -> Schema:
    return {"type": "array", "prefixItems": list(items), "minItems": len(items), "maxItems": len(items)}


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(space: spaces.Text) -> Schema:
    lengths = {"minLength": space.min_length, "maxLength": space.max_length}
    allowed = "".join(re.sub(r"([\\\]\[^-])", r"\\\1", character) for character in space.character_list)
    # Forbidding any other character, because dialects disagree on what `$` matches before a newline.
    others = {"not": {"pattern": f"[^{allowed}]"}} if allowed else {"maxLength": 0}
    return {"type": "string", **lengths, **others}


def _graph(space: spaces.Graph) -> Schema:
    link = _list([{"type": "integer", "minimum": 0}] * 2)
    absent: Schema = {"type": "null"}
    nodes: Schema = {"type": "array", "items": _schema(space.node_space)}
    if space.edge_space is None:
        return _object({"nodes": nodes, "edges": absent, "edge_links": absent})
    edges: Schema = {"type": "array", "items": _schema(space.edge_space)}
    links: Schema = {"type": "array", "items": link}
    return _object(
        {"nodes": nodes, "edges": {"anyOf": [edges, absent]}, "edge_links": {"anyOf": [links, absent]}}
    )
