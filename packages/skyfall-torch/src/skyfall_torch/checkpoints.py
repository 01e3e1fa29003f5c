"""Reading and writing the state that training needs besides the policy's weights.

One safetensors file beside the policy's own files: its tensors as they are, and in its header the rest
of the state as JSON that refers to them. It is written under another name first, so a killed process
leaves the old file or the new one, and nothing in it can run. Format 1, a file of `torch.save`, is
still read, as tensors and plain values only.
"""

import json
import pickle
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from skyfall_core.atomic import partial_beside, put_in_place
from skyfall_core.errors import CheckpointError

__all__ = ["STATE_FILE", "read_state", "write_state"]

STATE_FILE = "training_state.safetensors"
FORMAT = 2
_FIRST_FILE, _FIRST_FORMAT = "training_state.pt", 1
_TENSOR, _TUPLE, _PAIRS = "tensor", "tuple", "pairs"


def write_state(directory: str | PathLike[str], state: Mapping[str, Any]) -> Path:
    """Write a training state atomically, in place of an older one of either format.

    Args:
        directory: Created where missing.
        state: Tensors, numbers, strings, None, lists, tuples and dicts of these.

    Returns:
        The file written.

    Raises:
        TypeError: If it holds anything else.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, Tensor] = {}
    described = json.dumps(_described(dict(state), tensors))
    written = folder / STATE_FILE
    with partial_beside(written) as partial:
        save_file(tensors, partial, metadata={"format": str(FORMAT), "state": described})
        put_in_place(partial, written)
    (folder / _FIRST_FILE).unlink(missing_ok=True)
    return written


def read_state(directory: str | PathLike[str]) -> dict[str, Any]:
    """The training state in a directory.

    Raises:
        CheckpointError: If there is none, it is damaged, holds code, or has another format.
    """
    path, first = Path(directory) / STATE_FILE, Path(directory) / _FIRST_FILE
    if path.is_file():
        return _read(path)
    if first.is_file():
        return _read_first(first)
    raise CheckpointError(f"{path}: no such file; give a directory that `save_checkpoint` wrote")


def _read(path: Path) -> dict[str, Any]:
    try:
        with safe_open(path, framework="pt", device="cpu") as stored:
            header = stored.metadata() or {}
            if header.get("format") != str(FORMAT):
                raise _foreign(path, header.get("format"))
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - no mapping
        state = _restored(json.loads(header["state"]), tensors)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: damaged ({type(error).__name__}: {error})") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{path}: damaged (a {type(state).__name__} instead of a state)")
    return state


def _read_first(path: Path) -> dict[str, Any]:
    """A state of the first format."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise CheckpointError(f"{path}: damaged, or more than tensors and plain values ({error})") from error
    if not isinstance(state, dict) or state.get("format") != _FIRST_FORMAT:
        raise _foreign(path, state.get("format") if isinstance(state, dict) else type(state).__name__)
    return state


def _foreign(path: Path, found: object) -> CheckpointError:
    return CheckpointError(
        f"{path}: training state of format {found!r}; this version reads {_FIRST_FORMAT} and {FORMAT}"
    )


def _described(value: Any, tensors: dict[str, Tensor]) -> Any:
    """`value` as JSON in which a mapping with one key stands for what JSON lacks; fills `tensors`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        name = str(len(tensors))
        # A copy, because safetensors refuses tensors that share their memory.
        tensors[name] = value.detach().to("cpu", copy=True).contiguous()
        return {_TENSOR: name}
    if isinstance(value, list):
        return [_described(each, tensors) for each in value]
    if isinstance(value, tuple):
        return {_TUPLE: [_described(each, tensors) for each in value]}
    if isinstance(value, Mapping):
        # Pairs, because keys need not be strings: an optimizer numbers its parameters.
        return {_PAIRS: [[key, _described(each, tensors)] for key, each in value.items()]}
    raise TypeError(f"a training state cannot hold a {type(value).__name__}: {value!r}")


def _restored(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_restored(each, tensors) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == _TENSOR:
        return tensors[content]
    if kind == _TUPLE:
        return tuple(_restored(each, tensors) for each in content)
    if kind == _PAIRS:
        return {key: _restored(each, tensors) for key, each in content}
    raise ValueError(f"unknown kind of value {kind!r}")
