"""Draws that nothing else in the process changes, and that change nothing else.

Torch's dropout and Transformers' sampling draw from process-wide generators and take none of their
own. `OwnRandomness` lends them a private state for the length of a `with` block and puts the
process's own state back, which also makes continuing from a checkpoint exact.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["OwnRandomness"]


class OwnRandomness:
    """The private generator states of one component on one device.

    Args:
        seed: Where the draws begin; None takes entropy from the system.
        device: Where the component computes. The CPU's generator is always covered as well.
    """

    def __init__(self, seed: int | None, device: torch.device | str = "cpu") -> None:
        self._device = torch.device(device)
        start = secrets.randbits(62) if seed is None else seed
        self._states = {"cpu": torch.Generator().manual_seed(start).get_state()}
        if self._device.type != "cpu":
            generator = torch.Generator(self._device).manual_seed(start)
            self._states[self._device.type] = generator.get_state()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let every draw inside the block come from here, and keep where it got to."""
        before = self._read()
        self._write(self._states)
        try:
            yield
        finally:
            self._states = self._read()
            self._write(before)

    def state(self) -> dict[str, Tensor]:
        """The states by device type, as byte tensors."""
        return dict(self._states)

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a saved state; a device type that was not saved keeps its own."""
        self._states |= {kind: state[kind].cpu() for kind in self._states if kind in state}

    def _read(self) -> dict[str, Tensor]:
        states = {"cpu": torch.get_rng_state()}
        if self._device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self._device)
        elif self._device.type == "mps":
            states["mps"] = torch.mps.get_rng_state()
        return states

    def _write(self, states: Mapping[str, Tensor]) -> None:
        torch.set_rng_state(states["cpu"])
        if self._device.type == "cuda":
            torch.cuda.set_rng_state(states["cuda"], self._device)
        elif self._device.type == "mps":
            torch.mps.set_rng_state(states["mps"])
