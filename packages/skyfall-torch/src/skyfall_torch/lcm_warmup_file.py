"""The file of a warmed-up context encoder: written whole, read with care, taken over as far as it fits."""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from skyfall_core.errors import CheckpointError
from skyfall_torch.lcm_encoder import EncoderConfig, RegimeContextEncoder

__all__ = ["WarmupReport", "load_encoder_weights", "read_warmup", "save_warmup"]

WARMUP_KEY = "skyfall_lcm"


_DAMAGE = (
    SafetensorError,
    OSError,
    RuntimeError,
    EOFError,
    ValueError,
    LookupError,
    RecursionError,
    struct.error,
)


@dataclass(frozen=True, slots=True)
class WarmupReport:
    """What `load_warmup` did.

    Attributes:
        loaded: Names of the tensors taken over.
        dropped: Name and reason of every tensor of the file that was not.
        missing: Names of the encoder's tensors that the file lacks.
    """

    loaded: tuple[str, ...]
    dropped: Mapping[str, str]
    missing: tuple[str, ...]


def save_warmup(encoder: RegimeContextEncoder, path: str | PathLike[str]) -> None:
    """Write weights and shape as safetensors, the form `read_warmup` reads.

    Args:
        encoder: What was trained.
        path: The file.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.state_dict().items()}
    save_file(tensors, path, metadata={WARMUP_KEY: json.dumps(asdict(encoder.config))})


def read_warmup(path: str | PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors of a warm-up file and what it says about its encoder.

    Args:
        path: A `.safetensors` file, or a `.pt` file of a plain state dictionary (which says nothing).

    Returns:
        The tensors by name, and the recorded shape, empty for a file without one.

    Raises:
        CheckpointError: If the file is missing, damaged or would run code.
    """
    file = Path(path)
    if not file.is_file():
        raise CheckpointError(f"{file}: no such warm-up file; `skyfall lcm-warmup` writes one")
    tensors, recorded = _parts(file)
    if not (isinstance(tensors, dict) and all(isinstance(value, Tensor) for value in tensors.values())):
        raise CheckpointError(f"{file}: expected a state dictionary of tensors")
    if not isinstance(recorded, dict) or not isinstance(recorded.get("regimes", []), list):
        raise CheckpointError(f"{file}: what it says about its encoder is damaged: {recorded!r}")
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"{file}: {name} holds what is no weight ({tensor.dtype}, or not finite)")
    return tensors, recorded


def _parts(file: Path) -> tuple[Any, Any]:
    """What the file holds, and what it says about itself, as yet unchecked."""
    try:
        if file.suffix == ".safetensors":
            with safe_open(file, framework="pt") as opened:
                recorded = json.loads((opened.metadata() or {}).get(WARMUP_KEY, "{}"))
                return {name: opened.get_tensor(name) for name in opened.keys()}, recorded  # noqa: SIM118
        return torch.load(file, map_location="cpu", weights_only=True), {}
    except UnpicklingError as error:
        raise CheckpointError(f"{file}: holds more than weights and is not loaded: {error}") from None
    except _DAMAGE as error:
        raise CheckpointError(f"{file}: not a readable warm-up file: {error}") from None


def load_encoder_weights(
    encoder: RegimeContextEncoder, tensors: Mapping[str, Tensor], recorded: Mapping[str, Any], source: str
) -> WarmupReport:
    """Take over every tensor that still fits; a classifier of other configurations does not.

    Args:
        encoder: Changed in place.
        tensors: What the file holds.
        recorded: The shape the file records, or nothing.
        source: The file, for messages.

    Returns:
        What was loaded, dropped and missing.

    Raises:
        CheckpointError: If the file was made with another K or hash, or nothing fits.
    """
    _check_basis(encoder.config, recorded, source)
    other_regimes = "regimes" in recorded and tuple(recorded["regimes"]) != encoder.config.regimes
    own = encoder.state_dict()
    taken: dict[str, Tensor] = {}
    dropped: dict[str, str] = {}
    for name, tensor in tensors.items():
        if name not in own:
            dropped[name] = "the encoder has no such tensor"
        elif tensor.shape != own[name].shape:
            dropped[name] = f"shape {tuple(tensor.shape)}, the encoder's is {tuple(own[name].shape)}"
        elif other_regimes and name.startswith("regime_head."):
            dropped[name] = (
                f"trained for {recorded['regimes']}, the encoder knows {list(encoder.config.regimes)}"
            )
        else:
            taken[name] = tensor
    if not taken:
        raise CheckpointError(f"{source}: no tensor fits this encoder: {dropped or 'the file is empty'}")
    encoder.load_state_dict(taken, strict=False)
    return WarmupReport(tuple(taken), dropped, tuple(name for name in own if name not in taken))


def _check_basis(config: EncoderConfig, recorded: Mapping[str, Any], source: str) -> None:
    """Refuse a file whose windows or features mean something else."""
    for field, ours in (("context_steps", config.context_steps), ("hash_mode", config.hash_mode.value)):
        theirs = recorded.get(field, ours)
        if theirs != ours:
            raise CheckpointError(
                f"{source}: {field} is {theirs!r} in the file and {ours!r} here; the two must agree, "
                "set one to the other or warm up again"
            )
