"""Which device a name means here."""

import torch

from skyfall_core.errors import ConfigError

__all__ = ["resolve_device"]


def resolve_device(name: str) -> torch.device:
    """The torch device that `name` means; `auto` prefers CUDA, then MPS, then the CPU.

    Raises:
        ConfigError: If there is no such device here.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device {name!r}: not usable here ({error}); use 'auto' or 'cpu'") from None
    return torch.device(name)
