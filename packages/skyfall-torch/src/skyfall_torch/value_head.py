"""The critic on top of a language model: one linear layer over the last hidden state.

TRL's head is used where the installed TRL has one (up to 1.12), ours otherwise. They compute the
same and store the same keys; only the initial weights differ, so a critic moves freely between them.
On disk four file names are accepted, because training stages never agreed on one.
"""

import importlib.util
import pickle
import warnings
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import SimpleNamespace

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from skyfall_core.errors import CheckpointError

__all__ = [
    "VALUE_HEAD_FILES",
    "ValueHead",
    "build_value_head",
    "find_value_head",
    "read_value_head",
    "write_value_head",
]

VALUE_HEAD_FILES = ("v_head.safetensors", "v_head.pt", "value_head.safetensors", "value_head.pt")
"""Names under which a checkpoint may hold its critic; the first is the one written."""

_TRL_MODULES = ("trl.experimental.ppo.modeling_value_head", "trl.models.modeling_value_head")


class ValueHead(nn.Module):
    """A scalar estimate from a hidden state: (…, hidden) to (…, 1). Starts at zero everywhere.

    Args:
        hidden_size: Width of the language model's last hidden state.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.summary = nn.Linear(hidden_size, 1)
        nn.init.zeros_(self.summary.weight)
        nn.init.zeros_(self.summary.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Values in the head's own precision, which stays full under a half-precision model."""
        estimate: Tensor = self.summary(hidden.to(self.summary.weight.dtype))
        return estimate


def build_value_head(hidden_size: int, dtype: torch.dtype = torch.float32) -> nn.Module:
    """A fresh critic: TRL's class if the installed TRL has it, ours otherwise.

    Args:
        hidden_size: Width of the language model's last hidden state.
        dtype: The model's precision; the head is kept in float32 under a half-precision model.
    """
    trl_class = _trl_value_head()
    if trl_class is None:
        head: nn.Module = ValueHead(hidden_size)
    else:
        # TRL's default adds dropout to the critic; the estimate is to be the plain linear one.
        head = trl_class(SimpleNamespace(hidden_size=hidden_size, summary_dropout_prob=0.0))
    return head.to(torch.float64 if dtype == torch.float64 else torch.float32)


def _trl_value_head() -> type[nn.Module] | None:
    """TRL's value head class, or None where TRL is absent or has dropped it."""
    if importlib.util.find_spec("trl") is None:
        return None
    for name in _TRL_MODULES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # TRL announces that the module is experimental
                found: type[nn.Module] = import_module(name).ValueHead
        except (ImportError, AttributeError):
            continue
        return found
    return None


def find_value_head(directory: str | PathLike[str]) -> Path | None:
    """The file that holds a checkpoint's critic, or None.

    Raises:
        CheckpointError: If several files do, since nothing says which one is meant.
    """
    found = [Path(directory) / name for name in VALUE_HEAD_FILES if (Path(directory) / name).is_file()]
    if len(found) > 1:
        names = ", ".join(repr(path.name) for path in found)
        raise CheckpointError(f"{directory}: several value heads ({names}); keep the one that is meant")
    return found[0] if found else None


def read_value_head(path: str | PathLike[str], head: nn.Module) -> None:
    """Fill `head` from a file, with or without the prefixes `v_head.` and `summary.` on its keys.

    Args:
        path: A `.pt` or `.safetensors` file.
        head: The critic to fill, in place.

    Raises:
        CheckpointError: If the file is damaged, holds code, or does not fit the head exactly.
    """
    stored = {
        key.removeprefix("v_head.").removeprefix("summary."): value
        for key, value in _tensors(Path(path)).items()
    }
    expected = dict(head.named_parameters())
    wanted = {name.removeprefix("summary."): parameter for name, parameter in expected.items()}
    missing, extra = sorted(wanted.keys() - stored.keys()), sorted(stored.keys() - wanted.keys())
    if missing or extra:
        raise CheckpointError(f"{path}: value head with missing keys {missing} and unknown keys {extra}")
    for name, parameter in wanted.items():
        if stored[name].shape != parameter.shape:
            raise CheckpointError(
                f"{path}: value head {name!r} has shape {tuple(stored[name].shape)}, this model needs "
                f"{tuple(parameter.shape)}; it was trained on a model of another hidden size"
            )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(stored[name])


def write_value_head(
    directory: str | PathLike[str], head: nn.Module, name: str = VALUE_HEAD_FILES[0]
) -> Path:
    """Write the critic under `name` and remove every other file that would be taken for it.

    Returns:
        The file written.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {key: value.detach().cpu().contiguous() for key, value in head.state_dict().items()}
    path = folder / name
    if path.suffix == ".pt":
        torch.save(tensors, path)
    else:
        safetensors.torch.save_file(tensors, path)
    for other in VALUE_HEAD_FILES:
        if other != name:
            (folder / other).unlink(missing_ok=True)
    return path


def _tensors(path: Path) -> dict[str, Tensor]:
    """The tensors in a file, read without running anything in it."""
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise CheckpointError(f"{path}: not a readable file of tensors ({error})") from error
    if not isinstance(stored, dict) or not all(isinstance(value, Tensor) for value in stored.values()):
        raise CheckpointError(
            f"{path}: expected a mapping of names to tensors, found {type(stored).__name__}"
        )
    return stored
