"""JSON for what a checkpoint needs besides weights, read back exactly and without running anything.

Observations are whatever a Gymnasium space holds, so arrays, NumPy numbers, tuples, bytes and mappings
with other keys than text are tagged. Anything else is refused: what cannot be written exactly is not
written at all.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["decode", "encode"]

_TAG = "__skyfall__"


def encode(value: Any) -> bytes:
    """`value` as JSON text; `decode` gives an equal value of the same types.

    Raises:
        TypeError: If it holds anything but numbers, texts, bytes, arrays, tuples, lists and mappings.
    """
    return json.dumps(_tagged(value), separators=(",", ":")).encode()


def decode(text: bytes) -> Any:
    """What `encode` was given.

    Raises:
        ValueError: If the text is damaged.
    """
    try:
        return _untagged(json.loads(text))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not what was written: {error}") from error


def _tagged(value: Any) -> Any:  # noqa: PLR0911 - one kind of value a line
    kind = type(value)
    if value is None or kind in {bool, int, float, str}:
        return value
    if kind is list:
        return [_tagged(item) for item in value]
    if kind is tuple:
        return {_TAG: "tuple", "items": [_tagged(item) for item in value]}
    if kind is bytes:
        return {_TAG: "bytes", "data": base64.b64encode(value).decode()}
    if kind is np.ndarray or isinstance(value, np.generic):
        if value.dtype.hasobject or value.dtype.names:
            raise TypeError(f"an array of {value.dtype} cannot be written")
        data = base64.b64encode(value.tobytes()).decode()
        shape = list(value.shape) if kind is np.ndarray else None
        return {_TAG: "array", "dtype": value.dtype.str, "shape": shape, "data": data}
    if isinstance(value, Mapping):
        if all(type(key) is str for key in value) and _TAG not in value:
            return {key: _tagged(item) for key, item in value.items()}
        return {_TAG: "mapping", "items": [[_tagged(key), _tagged(item)] for key, item in value.items()]}
    raise TypeError(f"a {kind.__name__} cannot be written")


def _array(parts: dict[str, Any]) -> Any:
    dtype = np.dtype(parts["dtype"])
    flat = np.frombuffer(base64.b64decode(parts["data"], validate=True), dtype)
    return flat[0] if parts["shape"] is None else flat.reshape(parts["shape"]).copy()


_KINDS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "tuple": lambda parts: tuple(_untagged(item) for item in parts["items"]),
    "bytes": lambda parts: base64.b64decode(parts["data"], validate=True),
    "array": _array,
    "mapping": lambda parts: {_untagged(key): _untagged(item) for key, item in parts["items"]},
}


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _TAG in value:
        return _KINDS[value[_TAG]](value)
    return {key: _untagged(item) for key, item in value.items()}
