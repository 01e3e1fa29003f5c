"""A NumPy generator's state as plain JSON values."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["generator_of", "generator_state"]


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """Where a PCG64 generator stands; its 128-bit numbers as text, which every JSON reader keeps whole."""
    state = generator.bit_generator.state
    return {
        "state": str(state["state"]["state"]),
        "inc": str(state["state"]["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def generator_of(state: dict[str, Any]) -> np.random.Generator:
    """The generator that stands where `generator_state` said."""
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(state["state"]), "inc": int(state["inc"])},
        "has_uint32": state["has_uint32"],
        "uinteger": state["uinteger"],
    }
    return np.random.Generator(bits)
