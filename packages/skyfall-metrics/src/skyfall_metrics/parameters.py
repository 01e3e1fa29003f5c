"""What the metrics can be tuned by, and the values a run was actually scored with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.errors import ParameterError

__all__ = ["Parameters", "ResolvedParameters"]

_WINDOWS_PER_SEGMENT = 20
_LARGEST_AUTO_WINDOW = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How to score; every default is the documented one.

    Attributes:
        window: Rows of the trailing moving average; None takes a twentieth of the median segment, 1 to 1000.
        settled_fraction: Share of a segment, at its end, that counts as settled, in (0, 1].
        adaptation_level: Share of the rise to the settled level that counts as adapted, in (0, 1].
        recovery_level: Share of the level before a shift that counts as recovered, in (0, 1].
        hold: Rows for which a threshold must be held; None takes a quarter of the window, at least 1.

    Raises:
        ParameterError: A value outside its range.
    """

    window: int | None = None
    settled_fraction: float = 0.25
    adaptation_level: float = 0.9
    recovery_level: float = 0.95
    hold: int | None = None

    def __post_init__(self) -> None:
        for name in ("window", "hold"):
            rows = getattr(self, name)
            if rows is not None and rows < 1:
                raise ParameterError(
                    f"{name} is {rows!r}: expected at least 1 row, or nothing to choose it from the run"
                )
        for name in ("settled_fraction", "adaptation_level", "recovery_level"):
            share = getattr(self, name)
            if not 0 < share <= 1:
                raise ParameterError(f"{name} is {share!r}: expected a share above 0 and at most 1")

    def resolve(self, segment_lengths: NDArray[np.integer]) -> ResolvedParameters:
        """The values for one run.

        Args:
            segment_lengths: `(segments,)` rows of each segment, of all worlds of the run.
        """
        window = self.window
        if window is None:
            twentieth = int(np.median(segment_lengths)) // _WINDOWS_PER_SEGMENT
            window = min(max(1, twentieth), _LARGEST_AUTO_WINDOW)
        return ResolvedParameters(
            window=window,
            window_chosen="auto" if self.window is None else "given",
            settled_fraction=self.settled_fraction,
            adaptation_level=self.adaptation_level,
            recovery_level=self.recovery_level,
            hold=max(1, window // 4) if self.hold is None else self.hold,
            hold_chosen="auto" if self.hold is None else "given",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedParameters:
    """The parameters one run was scored with; `window_chosen` and `hold_chosen` say `auto` or `given`."""

    window: int
    window_chosen: str
    settled_fraction: float
    adaptation_level: float
    recovery_level: float
    hold: int
    hold_chosen: str
