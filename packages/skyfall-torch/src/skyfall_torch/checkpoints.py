"""Reading and writing the state that training needs besides the policy's weights.

One file of tensors and plain values beside the policy's own files. It is written under another name
first, so a killed process leaves the old file or the new one, and it is read without running anything
that may be in it.
"""

import pickle
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from skyfall_core.errors import CheckpointError

__all__ = ["STATE_FILE", "read_state", "write_state"]

STATE_FILE = "training_state.pt"
FORMAT = 1


def write_state(directory: str | PathLike[str], state: Mapping[str, Any]) -> Path:
    """Write a training state atomically.

    Args:
        directory: Created where missing.
        state: Tensors, numbers, strings, None, lists and dicts of these.

    Returns:
        The file written.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{STATE_FILE}.partial"
    torch.save({"format": FORMAT, **state}, partial)
    return partial.replace(folder / STATE_FILE)


def read_state(directory: str | PathLike[str]) -> dict[str, Any]:
    """The training state in a directory.

    Raises:
        CheckpointError: If there is none, it is damaged, holds code, or has another format.
    """
    path = Path(directory) / STATE_FILE
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file; give a directory that `save_checkpoint` wrote")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise CheckpointError(f"{path}: damaged, or more than tensors and plain values ({error})") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise CheckpointError(f"{path}: training state of format {found!r}; this version reads {FORMAT}")
    return state
