"""Gymnasium spaces as JSON and back, and their values in JSON form.

Gymnasium defines no JSON form of a space. The form here is the one that the field's data sets use
(Farama's Minari): `type`, and the arguments that make the space again, parts under `subspaces`. It is
extended to the spaces that form leaves out (`Sequence`, `Graph`, `OneOf`), and it is strict JSON: an
infinite bound is the text `Infinity` or `-Infinity`, which NumPy reads as the number.

A space that is none of Gymnasium's own cannot be made again without its package. It becomes a
`ForeignSpace`, which knows what the original said of itself and contains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector.utils import iterate

from skyfall_core.errors import BundleError

__all__ = ["ForeignSpace", "space_from_json", "space_to_json", "value_to_json"]

FOREIGN = "Foreign"
"""`type` of a space that only its own package can make."""


class ForeignSpace(Space[Any]):
    """Stands for a space whose package may be absent.

    Attributes:
        original: `package.module:Class` of the space.
        text: How the space described itself.
    """

    def __init__(self, original: str, text: str) -> None:
        super().__init__(None, None)
        self.original = original
        self.text = text

    @property
    def is_np_flattenable(self) -> bool:
        """False: nothing is known of its values."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> Any:  # noqa: ARG002 - Gymnasium's signature
        """Never returns.

        Raises:
            BundleError: Always: only the original space can be sampled.
        """
        raise BundleError(f"{self.text}: only {self.original!r} itself can be sampled; build the environment")

    def contains(self, x: Any) -> bool:  # noqa: ARG002 - Gymnasium's signature
        """False: what the original contains is not known."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ForeignSpace) and (self.original, self.text) == (other.original, other.text)

    __hash__ = None  # type: ignore[assignment]  # spaces compare by value

    def __repr__(self) -> str:
        return f"ForeignSpace({self.text})"


def space_to_json(space: Space[Any]) -> dict[str, Any]:  # noqa: C901, PLR0911 - one case a kind of space
    """`space` as JSON values that `space_from_json` makes an equal space of."""
    match space:
        case spaces.Box():
            bounds = {"low": _numbers(space.low), "high": _numbers(space.high)}
            return {"type": "Box", "dtype": str(space.dtype), "shape": list(space.shape), **bounds}
        case spaces.Discrete():
            start, n = int(space.start), int(space.n)
            return {"type": "Discrete", "dtype": str(space.dtype), "start": start, "n": n}
        case spaces.MultiDiscrete():
            limits = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
            return {"type": "MultiDiscrete", "dtype": str(space.dtype), **limits}
        case spaces.MultiBinary():
            return {"type": "MultiBinary", "n": space.n if isinstance(space.n, int) else list(space.n)}
        case spaces.Text():
            lengths = {"max_length": space.max_length, "min_length": space.min_length}
            return {"type": "Text", **lengths, "charset": "".join(space.character_list)}
        case spaces.Dict():
            parts = {str(key): space_to_json(part) for key, part in space.spaces.items()}
            return {"type": "Dict", "subspaces": parts}
        case spaces.Tuple() | spaces.OneOf():
            return {"type": type(space).__name__, "subspaces": [space_to_json(part) for part in space.spaces]}
        case spaces.Sequence():
            return {"type": "Sequence", "subspace": space_to_json(space.feature_space), "stack": space.stack}
        case spaces.Graph():
            edges = None if space.edge_space is None else space_to_json(space.edge_space)
            return {"type": "Graph", "node_space": space_to_json(space.node_space), "edge_space": edges}
        case ForeignSpace():
            return {"type": FOREIGN, "class": space.original, "repr": space.text}
    kind = type(space)
    return {"type": FOREIGN, "class": f"{kind.__module__}:{kind.__qualname__}", "repr": repr(space)}


def space_from_json(described: Any) -> Space[Any]:
    """The space that `space_to_json` described.

    Raises:
        BundleError: If the description names an unknown kind or holds impossible values.
    """
    kind = described.get("type") if isinstance(described, Mapping) else None
    make = _MAKERS.get(kind) if isinstance(kind, str) else None
    if make is None:
        known = ", ".join(sorted(_MAKERS))
        raise BundleError(f"space of type {kind!r}: expected one of {known}")
    try:
        return make(described)
    except (KeyError, TypeError, ValueError, OverflowError, AssertionError, AttributeError) as error:
        raise BundleError(f"space of type {kind!r}: {type(error).__name__}: {error}") from error


def _box(described: Mapping[str, Any]) -> Space[Any]:
    dtype = np.dtype(described["dtype"])
    shape = tuple(described["shape"])
    low, high = (np.array(described[name], dtype=dtype).reshape(shape) for name in ("low", "high"))
    return spaces.Box(low, high, shape, dtype)


def _multi_discrete(described: Mapping[str, Any]) -> Space[Any]:
    dtype = np.dtype(described["dtype"])
    return spaces.MultiDiscrete(np.array(described["nvec"]), dtype, start=np.array(described["start"]))


def _text(described: Mapping[str, Any]) -> Space[Any]:
    return spaces.Text(
        described["max_length"], min_length=described["min_length"], charset=described["charset"]
    )


def _graph(described: Mapping[str, Any]) -> Space[Any]:
    edges = described["edge_space"]
    return spaces.Graph(
        space_from_json(described["node_space"]), None if edges is None else space_from_json(edges)
    )


_MAKERS: Mapping[str, Callable[[Mapping[str, Any]], Space[Any]]] = {
    "Box": _box,
    "Discrete": lambda it: spaces.Discrete(it["n"], start=it["start"], dtype=np.dtype(it["dtype"])),
    "MultiDiscrete": _multi_discrete,
    "MultiBinary": lambda it: spaces.MultiBinary(it["n"]),
    "Text": _text,
    "Dict": lambda it: spaces.Dict({key: space_from_json(part) for key, part in it["subspaces"].items()}),
    "Tuple": lambda it: spaces.Tuple([space_from_json(part) for part in it["subspaces"]]),
    "OneOf": lambda it: spaces.OneOf([space_from_json(part) for part in it["subspaces"]]),
    "Sequence": lambda it: spaces.Sequence(space_from_json(it["subspace"]), stack=it["stack"]),
    "Graph": _graph,
    FOREIGN: lambda it: ForeignSpace(it["class"], it["repr"]),
}


def value_to_json(space: Space[Any], value: Any) -> Any:
    """A value of `space` in the JSON form that the space's schema describes.

    Arrays become nested lists, a graph its `nodes`, `edges` and `edge_links`, and every other value what
    it looks like. A value of a foreign space stays as it is.
    """
    match space:
        case spaces.Dict():
            return {str(key): value_to_json(part, value[key]) for key, part in space.spaces.items()}
        case spaces.Tuple():
            return [value_to_json(part, item) for part, item in zip(space.spaces, value, strict=True)]
        case spaces.OneOf():
            chosen = int(value[0])
            return [chosen, value_to_json(space.spaces[chosen], value[1])]
        case spaces.Sequence():
            items = iterate(space.stacked_feature_space, value) if space.stack else value
            return [value_to_json(space.feature_space, item) for item in items]
        case spaces.Graph():
            return {name: _plain(getattr(value, name)) for name in ("nodes", "edges", "edge_links")}
    return _plain(value)


def _plain(value: Any) -> Any:
    """Arrays and NumPy scalars as Python's own, inside tuples and mappings too."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _numbers(array: np.ndarray[Any, Any]) -> Any:
    """An array as nested lists, infinities as text."""
    return _finite(array.tolist())


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
