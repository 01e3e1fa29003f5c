"""Putting several worlds' observations and infos together where Gymnasium's own way would lose something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces

__all__ = ["as_objects", "batching_copies", "blank", "needs_objects", "pick"]

_COPIED_BY_BATCHING = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete, spaces.Text)


def blank(space: Space[Any]) -> Any:
    """The all-zero observation a world shows that failed before it ever showed one; None if unknown."""
    if isinstance(space, spaces.Dict):
        return {key: blank(part) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(map(blank, space.spaces))
    if isinstance(space, spaces.Text):
        return ""
    if isinstance(space, _COPIED_BY_BATCHING):
        zeros = np.zeros(space.shape or (), dtype=space.dtype)
        return zeros if space.shape else zeros[()]
    return None


def needs_objects(array: Any, value: Any) -> bool:
    """Whether putting `value` into the merged entry `array` would raise or change the value."""
    if isinstance(array, dict) or isinstance(value, dict):
        return not (isinstance(array, dict) and isinstance(value, dict))
    if array.dtype == object:
        return False
    if isinstance(value, np.ndarray):
        return bool(array.shape[1:] != value.shape or array.dtype != value.dtype)
    if array.ndim > 1:
        return True
    return not (np.isscalar(value) and np.asarray(value).dtype == array.dtype)


def as_objects(array: Any, mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The merged entry as an array of objects, None where no world has the key."""
    objects = np.full(len(mask), fill_value=None, dtype=object)
    for index in np.flatnonzero(mask):
        objects[index] = pick(array, int(index)) if isinstance(array, dict) else array[index]
    return objects


def pick(merged: Mapping[str, Any], index: int) -> dict[str, Any]:
    """One world's mapping out of a merged one."""
    return {
        key: pick(value, index) if isinstance(value, dict) else value[index]
        for key, value in merged.items()
        if not key.startswith("_") and merged[f"_{key}"][index]
    }


def batching_copies(space: Space[Any]) -> bool:
    """Whether concatenating samples of `space` already gives memory of its own."""
    if isinstance(space, spaces.Dict):
        return all(map(batching_copies, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return all(map(batching_copies, space.spaces))
    return isinstance(space, _COPIED_BY_BATCHING)
