"""Where one configuration ends and the next begins, and which of them had been met before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.trace import NO_ORIGIN, Trace

__all__ = ["Segments", "find_segments"]


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The segments of one world's stream, in order; together they cover every row once.

    Attributes:
        start: `(segments,)` first row of each, counted within the stream.
        stop: `(segments,)` the row behind its last one.
        label: `(segments,)` codes of the labels.
        identity: `(segments,)` codes of the configurations: what a label repeats, else the label itself.
        revisited: `(segments,)` whether the configuration occurred in an earlier segment.
        names: Names by code.
    """

    start: NDArray[np.intp]
    stop: NDArray[np.intp]
    label: NDArray[np.int32]
    identity: NDArray[np.int32]
    revisited: NDArray[np.bool_]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def rows(self) -> NDArray[np.intp]:
        """`(segments,)` how many rows each has."""
        return self.stop - self.start

    def identities(self) -> list[int]:
        """Codes of the configurations, in order of their first segment."""
        return list(dict.fromkeys(self.identity.tolist()))


def find_segments(trace: Trace, rows: NDArray[np.intp] | slice = slice(None)) -> Segments:
    """The segments of a stream: maximal runs of one label, also cut at every boundary flag.

    Args:
        trace: The run.
        rows: Positions of the stream's rows in it, in order; not empty.
    """
    regime, boundary, origin = trace.regime[rows], trace.boundary[rows], trace.origin[rows]
    cut = regime[1:] != regime[:-1]
    cut |= boundary[1:]
    start = np.concatenate(([0], np.flatnonzero(cut) + 1)).astype(np.intp)
    label = regime[start]
    identity = np.where(origin[start] == NO_ORIGIN, label, origin[start])
    first = np.unique(identity, return_index=True)[1]
    revisited = np.ones(len(start), dtype=bool)
    revisited[first] = False
    return Segments(start, np.append(start[1:], len(regime)), label, identity, revisited, trace.labels)
