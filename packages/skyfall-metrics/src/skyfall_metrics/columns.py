"""Growing columns: rows go in block by block, arrays come out once.

Rows as objects live for one block only. Optional columns cost nothing until a value turns up in them; the
rows before it are then filled with what absence means.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.trace import DEFAULT_REGIME, NO_ORIGIN, Codebook

__all__ = ["ColumnBuilder"]

_FILL: dict[str, tuple[type[np.generic], Any]] = {
    "origin": (np.int32, NO_ORIGIN),
    "world": (np.int32, 0),
    "boundary": (np.bool_, False),
    "resumed": (np.bool_, False),
    "effective_rank": (np.float64, np.nan),
    "upper_bound": (np.float64, np.nan),
}


_step, _reward, _regime = attrgetter("step"), attrgetter("reward"), attrgetter("regime")


class ColumnBuilder:
    """Columns of one trace while it is being read.

    Args:
        with_steps: Whether rows carry a step; otherwise they are numbered.
        with_regime: Whether rows carry a label.
    """

    def __init__(self, *, with_steps: bool, with_regime: bool) -> None:
        self.rows = 0
        self.labels = Codebook(as_text=True)
        self.worlds = Codebook(as_text=False)
        self._with_steps = with_steps
        self._with_regime = with_regime
        self._chunks: dict[str, list[NDArray[Any]]] = {}
        self._anchor_rows: list[int] = []
        self._anchor_lines: list[int] = []

    def append(self, rows: Sequence[Any], columns: Iterable[str], first_line: int) -> None:
        """Take in rows that stand on consecutive lines.

        Args:
            rows: Decoded rows.
            columns: The optional columns to take from them; never fewer than the last time.
            first_line: Line of the first of them.
        """
        if not rows:
            return
        self._anchor_rows.append(self.rows)
        self._anchor_lines.append(first_line)
        count = len(rows)
        if self._with_steps:
            self._add("step", np.fromiter(map(_step, rows), np.int64, count))
        self._add("reward", _floats(map(_reward, rows), rows, "reward"))
        if self._with_regime:
            self._add("regime", self._label_codes(rows))
        for name in columns:
            if name not in self._chunks:
                self._chunks[name] = [self._absent(name)]
            self._add(name, self._values(name, rows))
        self.rows += len(rows)

    def _label_codes(self, rows: Sequence[Any]) -> NDArray[np.int32]:
        """Codes of the rows' labels; mostly one label for all, which is found out faster than each."""
        names = set(map(_regime, rows))
        if len(names) == 1:
            return np.full(len(rows), self.labels[names.pop()], np.int32)
        return np.fromiter(map(self.labels.__getitem__, map(_regime, rows)), np.int32, len(rows))

    def line_of(self, row: int) -> int:
        """The line a row stood on."""
        at = bisect_right(self._anchor_rows, row) - 1
        return self._anchor_lines[at] + row - self._anchor_rows[at]

    def column(self, name: str) -> NDArray[Any] | None:
        """A column in full, or None when no row had a value in it; its pieces are let go."""
        chunks = self._chunks.pop(name, None)
        return None if chunks is None else np.concatenate(chunks)

    def finished_labels(self) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        """Regime codes and the names they stand for, one name for all when rows carry none."""
        regime = self.column("regime")
        if regime is None:
            regime = np.full(self.rows, self.labels[DEFAULT_REGIME], dtype=np.int32)
        return regime, tuple(self.labels.names)

    def _add(self, name: str, values: NDArray[Any]) -> None:
        self._chunks.setdefault(name, []).append(values)

    def _absent(self, name: str) -> NDArray[Any]:
        """What the rows so far have in a column that begins only now."""
        dtype, fill = _FILL[name]
        if name == "world" and self.rows:
            fill = self.worlds[None]
        return np.full(self.rows, fill, dtype=dtype)

    def _values(self, name: str, rows: Sequence[Any]) -> NDArray[Any]:
        dtype = _FILL[name][0]
        values: Iterator[Any] = map(attrgetter(name), rows)
        if dtype is np.float64:
            return _floats(values, rows, name)
        if dtype is np.bool_ and not any(map(attrgetter(name), rows)):
            return np.zeros(len(rows), np.bool_)
        if name == "origin":
            labels = self.labels
            values = (NO_ORIGIN if value is None else labels[value] for value in values)
        elif name == "world":
            values = map(self.worlds.__getitem__, values)
        return np.fromiter(values, dtype, len(rows))


def _floats(values: Iterator[Any], rows: Sequence[Any], name: str) -> NDArray[np.float64]:
    """Numbers, NaN for None; the fast way works where there is no None."""
    try:
        return np.fromiter(values, np.float64, len(rows))
    except TypeError:
        return np.array([getattr(row, name) for row in rows], dtype=np.float64)
