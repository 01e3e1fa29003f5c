"""The scorecard as a plugin of the group `skyfall.scorers`: whoever ran a life asks for it by name."""

from __future__ import annotations

from os import PathLike
from typing import Any

from skyfall_metrics.reader import read_trace
from skyfall_metrics.scoring import score

__all__ = ["scorecard_of"]


def scorecard_of(trace: str | PathLike[str]) -> dict[str, Any]:
    """The six metrics of one trace with default parameters, as `scorecard.json` holds them.

    Raises:
        MetricsError: If the trace cannot be read or scored.
    """
    return score(read_trace(trace)).to_dict()
