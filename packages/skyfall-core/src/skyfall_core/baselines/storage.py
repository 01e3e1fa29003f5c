"""How the baselines write themselves down: one `.npz` without pickles, in the checkpoint's folder.

The file holds plain arrays and one JSON text (`meta`) for whatever is no array: the kind of
algorithm, its settings, the state of its random generators. It is replaced in one step, so a killed
process leaves the old checkpoint or the new one, and equal states give equal bytes.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Space

from skyfall_core.atomic import whole_file
from skyfall_core.errors import CheckpointError

__all__ = ["FILE_NAME", "Stored", "generators_of", "read_checkpoint", "write_checkpoint"]

FILE_NAME = "baseline.npz"
"""The file inside a checkpoint's folder."""

_VERSION = 1


class Stored(NamedTuple):
    """What a checkpoint holds.

    Attributes:
        meta: Everything that is no array; plain JSON values.
        arrays: Arrays by name, none of them of objects.
    """

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]


def write_checkpoint(
    path: str | PathLike[str],
    kind: str,
    meta: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray[Any, Any]] | None = None,
) -> None:
    """Write `meta` and `arrays` into the folder `path`, which is made when it is missing.

    Args:
        path: The checkpoint's folder.
        kind: Which algorithm wrote it.
        meta: Plain JSON values.
        arrays: Numeric arrays by name; `meta` is taken.

    Raises:
        CheckpointError: If the folder cannot be written.
    """
    text = json.dumps({"version": _VERSION, "kind": kind, **meta}, sort_keys=True)
    folder = Path(path)
    target = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as file:
            np.savez(file, allow_pickle=False, meta=np.array(text), **(arrays or {}))
    except OSError as error:
        raise CheckpointError(f"{target}: the checkpoint could not be written: {error}") from error


def read_checkpoint(path: str | PathLike[str], kind: str) -> Stored:
    """Read what `write_checkpoint` wrote.

    Args:
        path: The checkpoint's folder.
        kind: Which algorithm must have written it.

    Returns:
        The stored values and arrays, read whole.

    Raises:
        CheckpointError: If it is missing, damaged, of another version or another algorithm's.
    """
    file = Path(path) / FILE_NAME
    try:
        # NumPy leaves a damaged file open unless it is handed one that somebody else closes.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = json.loads(str(arrays.pop("meta")[()]))
    except FileNotFoundError as error:
        raise CheckpointError(f"{file}: no checkpoint here; give the folder it was saved to") from error
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{file}: the checkpoint is damaged ({error}); use another one") from error
    if not isinstance(meta, dict) or meta.get("version") != _VERSION:
        raise CheckpointError(
            f"{file}: not a checkpoint of version {_VERSION}; load it with the release that wrote it"
        )
    if meta.get("kind") != kind:
        raise CheckpointError(
            f"{file}: written by algorithm {meta.get('kind')!r}, wanted {kind!r}; "
            "name the algorithm that wrote it, or give another folder"
        )
    return Stored(meta, arrays)


def generators_of(space: Space[Any]) -> Iterator[np.random.Generator]:
    """Every random generator that sampling from `space` uses, its own first, parts in a fixed order."""
    yield space.np_random
    for value in vars(space).values():
        if isinstance(value, Space):
            yield from generators_of(value)
        elif isinstance(value, Mapping | tuple | list):
            parts = value.values() if isinstance(value, Mapping) else value
            for part in parts:
                if isinstance(part, Space):
                    yield from generators_of(part)
