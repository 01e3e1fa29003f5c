"""Random numbers of a world: each kind of draw has a stream of its own, keyed by seed and purpose."""

from __future__ import annotations

import base64
import struct
from random import Random

__all__ = ["packed", "stream", "unpacked"]

_VERSION = 3  # of the generator's state, as Python numbers it
_WORDS = struct.Struct("<625I")


def stream(seed: int, *keys: object) -> Random:
    """Random numbers that depend on the seed and the keys alone."""
    return Random("/".join(map(str, (seed, *keys))))  # noqa: S311  # a simulation, no secret


def packed(draws: Random) -> str:
    """Where a stream stands, as text."""
    return base64.b64encode(_WORDS.pack(*draws.getstate()[1])).decode("ascii")


def unpacked(text: str) -> Random:
    """The stream that stands where `packed` said.

    Raises:
        ValueError: The text was not made by `packed`.
    """
    try:
        words = _WORDS.unpack(base64.b64decode(text, validate=True))
    except struct.error as failure:
        raise ValueError(f"a stream's state: {failure}") from None
    draws = Random(0)  # noqa: S311  # a simulation, no secret
    draws.setstate((_VERSION, words, None))
    return draws
