"""Every error this package raises on purpose, and the exit status each one means.

    MetricsError
    ├── InputError                  a file, option or argument was wrong: exit 2
    │   ├── TraceError              a trace that cannot be read as one run
    │   ├── ParameterError          a scoring parameter outside its range
    │   ├── BoundsError             a bounds file that cannot be used
    │   ├── ComparisonError         runs that must not be put side by side
    │   └── MissingExtraError       an optional dependency is not installed
    └── ScoringFailedError          scoring itself broke down: exit 1

A message names the place, the value and the remedy, in that order.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = [
    "BoundsError",
    "ComparisonError",
    "InputError",
    "MetricsError",
    "MissingExtraError",
    "ParameterError",
    "ScoringFailedError",
    "TraceError",
    "shortened",
    "suggestion",
]


class MetricsError(Exception):
    """Base of every deliberate error; `exit_status` is what the command line exits with."""

    exit_status = 1


class InputError(MetricsError):
    """What was handed in is wrong; the remedy is in the message."""

    exit_status = 2


class TraceError(InputError):
    """A trace that cannot be read as the record of one run.

    Args:
        problem: What is wrong, and the remedy.
        path: The file, when there is one.
        line: Line number, counted from 1.
        offset: Byte at which that line starts (for a compressed file: in the decompressed text).
    """

    def __init__(
        self,
        problem: str,
        *,
        path: Path | str | None = None,
        line: int | None = None,
        offset: int | None = None,
    ) -> None:
        place = [] if path is None else [str(path)]
        if line is not None:
            place.append(f"line {line}" if offset is None else f"line {line} (byte {offset})")
        super().__init__(": ".join([*place, problem]))
        self.problem = problem
        self.path = None if path is None else str(path)
        self.line = line
        self.offset = offset

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep place and problem when a worker process hands the error to its parent."""
        return _rebuild_trace_error, (self.problem, self.path, self.line, self.offset)


def _rebuild_trace_error(problem: str, path: str | None, line: int | None, offset: int | None) -> TraceError:
    return TraceError(problem, path=path, line=line, offset=offset)


class ParameterError(InputError):
    """A scoring parameter outside its range."""


class BoundsError(InputError):
    """Upper bounds that cannot be read or do not make sense."""


class ComparisonError(InputError):
    """Runs that must not be compared as they stand."""


class MissingExtraError(InputError):
    """A file needs an optional dependency that is not installed."""


class ScoringFailedError(MetricsError):
    """Scoring broke down for a reason that is not the input's."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The half-sentence that helps after an unknown name: the nearest known one, then all of them."""
    names = sorted(set(known))
    nearest = difflib.get_close_matches(name, names, n=1)
    listing = "known: " + ", ".join(map(repr, names)) if names else "none is known"
    return f"did you mean {nearest[0]!r}? {listing}" if nearest else listing


def shortened(text: str, length: int = 40) -> str:
    """`text` as an error message shows it: its beginning, where it is long."""
    return text if len(text) <= length else text[: length - 1] + "…"
