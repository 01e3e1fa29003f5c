"""A measured number, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

__all__ = ["Value", "mean_of", "number", "optional"]


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


def optional(value: float | np.floating) -> float | None:
    """A plain number, None for NaN."""
    return None if math.isnan(value) else float(value)
