"""A measured number, or why there is none."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

__all__ = ["Value", "mean_of", "number", "optional", "plain", "quotient"]

_SMALLEST = 1e-200
"""What is nearer to 0 counts as 0 where it divides: the quotient would leave double precision."""


@dataclass(frozen=True, slots=True)
class Value:
    """One number of a scorecard.

    Attributes:
        value: The number, always finite; None when it does not exist for this run.
        reason: Why it does not exist; None when it does.
    """

    value: float | None
    reason: str | None = None

    @classmethod
    def missing(cls, reason: str) -> Value:
        """A number that does not exist, and why."""
        return cls(None, reason)


def number(value: float | np.floating | None, reason: str) -> Value:
    """`value`, or `reason` where it is None or NaN."""
    return Value.missing(reason) if value is None or math.isnan(value) else Value(float(value))


def mean_of(values: Iterable[float | None], reason: str) -> Value:
    """Mean of the numbers that exist, or `reason` when none does."""
    present = [value for value in values if value is not None]
    return number(math.fsum(present) / len(present) if present else None, reason)


def quotient(numerator: float, denominator: float) -> float | None:
    """One number as a share of another; None where the other is 0 or next to it."""
    return None if abs(denominator) < _SMALLEST else numerator / denominator


def optional(value: float | np.floating) -> float | None:
    """A plain number, None for NaN."""
    return None if math.isnan(value) else float(value)


def plain(document: Any) -> dict[str, Any]:
    """A result as dictionaries, lists, text and numbers, for JSON.

    A file's name may hold bytes that are no text; each becomes a question mark, since JSON cannot hold it.
    """
    try:
        encoded = msgspec.json.encode(document)
    except UnicodeEncodeError:
        encoded = json.dumps(msgspec.to_builtins(document), ensure_ascii=False).encode(errors="replace")
    return msgspec.json.decode(encoded, type=dict[str, Any])
