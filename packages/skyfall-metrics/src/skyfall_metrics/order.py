"""The order of a trace's rows: what a resumed run lived twice, what is missing, what contradicts itself.

Steps increase within a world. The one thing that may turn them back is a resumed run, which goes on from its
last checkpoint: the rows that it lives again take the place of those that led nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.errors import TraceError
from skyfall_metrics.trace import Note, Trace, counted

__all__ = ["in_lived_order", "label_notes"]


def in_lived_order(trace: Trace, resumed: NDArray[np.bool_] | None, line_of: Callable[[int], int]) -> Trace:
    """The trace with steps that increase within each world.

    Args:
        trace: Rows in file order.
        resumed: `(rows,)` which rows a resumed run marked, if any did.
        line_of: The line that a row stood on.

    Raises:
        TraceError: Steps stand still or go back, and no resumed run explains it.
    """
    marks = None if resumed is None else np.cumsum(resumed)
    kept = np.ones(len(trace), dtype=bool)
    notes: list[Note] = []
    turns = 0
    first_turn = -1
    for code in range(len(trace.worlds)):
        rows = trace.world_rows(code)
        step = trace.step[rows]
        back = np.flatnonzero(np.diff(step) <= 0) + 1
        if not len(back):
            continue
        positions = np.arange(len(trace))[rows]
        _check_turns(trace, positions, back, marks, line_of)
        kept[positions] = _last_lived(step, back)
        turns = max(turns, len(back))
        first_turn = int(positions[back[0]]) if first_turn < 0 else min(first_turn, int(positions[back[0]]))
    if turns:
        again = len(trace) - int(kept.sum())
        where = f"at step {trace.step[first_turn]}, line {line_of(first_turn)}"
        times = "" if turns == 1 else f" {turns} times, first"
        notes.append(
            Note("resumed", f"resumed{times} {where}: {counted(again, 'row')} lived again, left out")
        )
        trace = _only(trace, kept)
    return replace(trace, notes=(*trace.notes, *notes, *_gap_notes(trace)))


def _check_turns(
    trace: Trace,
    positions: NDArray[np.intp],
    back: NDArray[np.intp],
    marks: NDArray[Any] | None,
    line_of: Callable[[int], int],
) -> None:
    """Refuse a step back that no resumed row in between accounts for."""
    here, before = positions[back], positions[back - 1]
    unexplained = np.ones(len(back), dtype=bool) if marks is None else marks[here] == marks[before]
    if not unexplained.any():
        return
    at = int(np.argmax(unexplained))
    raise TraceError(
        f"step {trace.step[here[at]]} follows step {trace.step[before[at]]}: "
        "steps must increase within a world. "
        'A resumed run marks its first row with "resumed": true; '
        "to number rows in file order instead, read without a step key: --step-key ''",
        path=trace.path,
        line=line_of(int(here[at])),
    )


def _last_lived(step: NDArray[np.int64], back: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which rows of one world stand, when each step back takes away what it goes back over."""
    kept = np.ones(len(step), dtype=bool)
    pieces: list[tuple[int, int]] = []
    edges = [0, *map(int, back), len(step)]
    for start, stop in pairwise(edges):
        while pieces:
            earlier, end = pieces.pop()
            cut = earlier + int(np.searchsorted(step[earlier:end], step[start]))
            kept[cut:end] = False
            if cut > earlier:
                pieces.append((earlier, cut))
                break
        pieces.append((start, stop))
    return kept


def _only(trace: Trace, kept: NDArray[np.bool_]) -> Trace:
    def column(values: Any) -> Any:
        return None if values is None else values[kept]

    names = ("step", "reward", "regime", "origin", "boundary", "world", "effective_rank", "upper_bound")
    return replace(trace, **{name: column(getattr(trace, name)) for name in names})


def _gap_notes(trace: Trace) -> list[Note]:
    """What the steps leave out: single gaps, or a log that keeps only every n-th step."""
    gaps = missing = 0
    first = ""
    strides = set()
    for code in range(len(trace.worlds)):
        step = trace.step[trace.world_rows(code)]
        if len(step) < 2 or step[-1] - step[0] == len(step) - 1:
            continue
        apart = np.diff(step)
        stride = int(np.median(apart))
        wide = np.flatnonzero(apart > stride)
        if stride > 1:
            strides.add(stride)
        if len(wide):
            first = first or f"steps {step[wide[0]]} to {step[wide[0] + 1]}"
            gaps += len(wide)
            missing += int((apart[wide] // stride).sum()) - len(wide)
    notes = []
    if strides:
        notes.append(Note("stride", f"rows are {min(strides)} steps apart; windows and times count rows"))
    if gaps:
        rows = counted(missing, "row")
        notes.append(
            Note("step_gaps", f"{counted(gaps, 'gap')} in the steps, {rows} missing (first: {first})")
        )
    return notes


def label_notes(trace: Trace) -> Trace:
    """The trace with a note wherever labels and boundary flags tell different stories."""
    silent: list[int] = []
    needless: list[int] = []
    for code in range(len(trace.worlds)):
        rows = trace.world_rows(code)
        regime, flag, step = trace.regime[rows], trace.boundary[rows][1:], trace.step[rows][1:]
        change = regime[1:] != regime[:-1]
        silent += step[change & ~flag].tolist()
        needless += step[flag & ~change].tolist()
    notes = []
    if silent:
        changes = counted(len(silent), "change")
        notes.append(
            Note(
                "silent_change",
                f"{changes} of label without a boundary flag (first at step {min(silent)}); cut there",
            )
        )
    if needless:
        flags = counted(len(needless), "boundary flag")
        notes.append(
            Note(
                "flag_without_change",
                f"{flags} without a change of label (first at step {min(needless)}); cut there",
            )
        )
    return replace(trace, notes=(*trace.notes, *notes))
