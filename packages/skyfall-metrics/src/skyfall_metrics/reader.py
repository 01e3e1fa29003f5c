"""Reading a trace: from bytes to a `Trace`, or to an error that says where and why.

Blocks of whole lines go through a decoder that names only the wanted keys. Whatever that strict decoder
refuses is looked at again: first the block with every column open (a column that begins late), then
line by line (damage, bare NaN). What is wrong is never averaged away: it is an error with line and byte,
or on request left out and counted, and whatever was left out stands in `Trace.notes`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.columns import ColumnBuilder
from skyfall_metrics.errors import TraceError, suggestion
from skyfall_metrics.order import in_lived_order, label_notes
from skyfall_metrics.rows import (
    COLUMNS,
    TRACE_VERSION,
    Keys,
    describe_failure,
    open_type,
    parse_leniently,
    strict_type,
)
from skyfall_metrics.streams import MAX_LINE_BYTES, Block, read_blocks
from skyfall_metrics.trace import (
    DEFAULT_REGIME,
    NO_ORIGIN,
    Note,
    Trace,
    counted,
    oversized,
    oversized_problem,
)

__all__ = ["DamagedLines", "read_trace"]

_OF_EACH_STEP = frozenset(
    {"terminated", "truncated", "action", "observation", "reward_components", "logprob", "value"}
)
"""Keys of the trace format that describe a step and are not read; never metadata, even when they stay
equal."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class DamagedLines(str, Enum):
    """What to do about a line in the middle of a trace that cannot be read.

    `STOP` raises at the first one. `SKIP` leaves such lines out, counts them and says so.
    """

    STOP = "stop"
    SKIP = "skip"


def read_trace(
    path: str | os.PathLike[str],
    *,
    keys: Keys | None = None,
    damaged_lines: DamagedLines = DamagedLines.STOP,
) -> Trace:
    """The run recorded in one file.

    A last line without its newline that cannot be read is what a killed process leaves behind: it is left
    out and noted. Rows that a resumed run lived again replace those they repeat. Bare `NaN` and `Infinity`
    count as missing rewards. Memory stays near the size of the columns.

    Args:
        path: A `.jsonl`, `.jsonl.gz` or `.jsonl.zst` file.
        keys: What the rows call things, for logs of other tools.
        damaged_lines: Whether damage in the middle stops the reading or is left out and counted.

    Raises:
        TraceError: The file is no record of one run; the message has line and byte offset.
    """
    file = Path(path)
    reader = _Reader(file, keys or Keys(), damaged_lines)
    for block in read_blocks(file):
        reader.take(block)
    return reader.finish()


class _Reader:
    """The state of one reading."""

    def __init__(self, path: Path, keys: Keys, damaged_lines: DamagedLines) -> None:
        self._path = path
        self._keys = keys
        self._damaged_lines = damaged_lines
        self._header: dict[str, Any] | None = None
        self._last_line = b""
        self._bytes = 0
        self._damaged: list[int] = []
        self._odd_numbers = 0
        self._torn: int | None = None
        self._present: set[str] = set()
        self._strict: msgspec.json.Decoder[Any]
        self._open: msgspec.json.Decoder[Any]
        self._columns: ColumnBuilder

    def take(self, block: Block) -> None:
        """Read one block into the columns."""
        self._bytes = block.offset + len(block.data)
        if block.too_long:
            limit = MAX_LINE_BYTES >> 20
            self._refuse(
                f"longer than {limit} MiB; a trace has one row a line", block.first_line, block.offset
            )
        elif self._header is None or not self._take_whole(block, self._strict):
            self._take_lines(block)

    def _take_whole(self, block: Block, decoder: msgspec.json.Decoder[Any]) -> bool:
        """Decode a block in one go; False when only a look at its lines can tell what is wrong."""
        is_open = decoder is self._open
        try:
            str(block.data, "utf-8")  # what the decoder skips, it does not look at
            rows = decoder.decode_lines(block.data)
        except _UNREADABLE:
            return not is_open and self._take_whole(block, self._open)
        if len(rows) != block.lines:  # blank lines, or two rows glued into one
            return False
        if is_open:
            if not all(map(self._belongs, rows)):
                return False
            self._learn(rows)
        self._columns.append(rows, self._present, block.first_line)
        self._last_line = block.last_line()
        return True

    def _take_lines(self, block: Block) -> None:
        """Decode a block line by line, passing over what is blank or may be left out."""
        offset, number = block.offset, block.first_line
        batch: list[Any] = []
        for line in bytes(block.data).split(b"\n"):
            row = (
                self._row(line, number, offset, last=offset + len(line) == self._bytes)
                if line.strip()
                else None
            )
            if row is not None:
                batch.append(row)
            elif batch:
                self._append(batch, number - len(batch))
                batch = []
            offset, number = offset + len(line) + 1, number + 1
        self._append(batch, number - len(batch))

    def _row(self, line: bytes, number: int, offset: int, *, last: bool) -> Any:
        """One row; None when the line is left out."""
        try:
            str(line, "utf-8")
            if self._header is None:
                self._begin(line, number, offset)
            row = self._open.decode(line)
        except _UNREADABLE as error:
            row = self._odd_row(line)
            if row is None:
                if last and not isinstance(error, msgspec.ValidationError):
                    self._torn = number
                else:
                    self._refuse(describe_failure(line, error, self._keys), number, offset)
                return None
        if not self._belongs(row):
            raise self._error(self._why_foreign(row), number, offset)
        self._last_line = line
        return row

    def _begin(self, line: bytes, number: int, offset: int) -> None:
        """Take the keys of the first row as those of the trace."""
        header = _whole_row(line)
        self._check_header(header, number, offset)
        self._header = header
        self._open = msgspec.json.Decoder(open_type(self._keys, header))
        self._strict = msgspec.json.Decoder(strict_type(self._keys, header, self._present))
        self._columns = ColumnBuilder(
            with_steps=self._keys.step is not None, with_regime=header.get(self._keys.regime) is not None
        )

    def _check_header(self, header: Mapping[str, Any], number: int, offset: int) -> None:
        for option, key in (("step", self._keys.step), ("reward", self._keys.reward)):
            if key is not None and key not in header:
                known = suggestion(key, header)
                raise self._error(
                    f"no {key!r} in the first row ({known}); name yours with --{option}-key", number, offset
                )
        for name, key in self._keys.identity().items():
            if key != name and key not in header:  # one that was asked for by name
                option = name.removesuffix("_id")
                raise self._error(
                    f"no {key!r} in the first row ({suggestion(key, header)}); "
                    f"correct --{option}-key or leave it out",
                    number,
                    offset,
                )
        version = header.get("trace_version")
        if version is not None and version != TRACE_VERSION:
            raise self._error(
                f"trace_version {version!r}: this release reads version {TRACE_VERSION}; "
                "upgrade skyfall-metrics",
                number,
                offset,
            )
        run_id = header.get(self._keys.run_id)
        if run_id is not None and not isinstance(run_id, (str, int)):
            raise self._error(f"{self._keys.run_id} is {run_id!r}, expected a string", number, offset)

    def _odd_row(self, line: bytes) -> Any:
        """A row whose only fault is a number that JSON has no word for; None for any other fault."""
        values = parse_leniently(line)
        if values is None or self._header is None:
            return None
        try:
            row = msgspec.convert(values, self._open.type)
        except msgspec.ValidationError:
            return None
        self._odd_numbers += 1
        return row

    def _belongs(self, row: Any) -> bool:
        """Whether a row is of the same run, version and shape as the first."""
        header, keys = self._header or {}, self._keys
        return (
            row.run_id in (None, header.get(keys.run_id))
            and row.trace_version in (None, header.get("trace_version"))
            and (row.regime is None or header.get(keys.regime) is not None)
        )

    def _why_foreign(self, row: Any) -> str:
        header, keys = self._header or {}, self._keys
        for name, key in (("run_id", keys.run_id), ("trace_version", "trace_version")):
            first, here = header.get(key), getattr(row, name)
            if here not in (None, first):
                one = "run" if name == "run_id" else "version"
                differs = f"{key} is {here!r} here and {first!r} in the first row"
                return f"{differs}: a trace holds one {one}; split the file"
        return (
            f"{keys.regime} is {row.regime!r} here and missing in the first row: every row needs one, or none"
        )

    def _append(self, rows: list[Any], first_line: int) -> None:
        """Take in rows that were decoded one by one."""
        if rows:
            self._learn(rows)
            self._columns.append(rows, self._present, first_line)

    def _learn(self, rows: list[Any]) -> None:
        """Let the strict type accept what turned up in these rows."""
        late = {
            name
            for name in COLUMNS.keys() - self._present
            if any(getattr(row, name) is not None for row in rows)
        }
        if late and self._header is not None:
            self._present |= late
            self._strict = msgspec.json.Decoder(strict_type(self._keys, self._header, self._present))

    def _refuse(self, problem: str, line: int, offset: int) -> None:
        """Stop at a damaged line, or count it where that was asked for."""
        if self._damaged_lines is DamagedLines.STOP:
            raise self._error(problem, line, offset)
        self._damaged.append(line)

    def _error(self, problem: str, line: int, offset: int) -> TraceError:
        return TraceError(problem, path=self._path, line=line, offset=offset)

    def finish(self) -> Trace:
        """The trace, once every block was taken."""
        if self._header is None or not self._columns.rows:
            raise TraceError(self._why_empty(), path=self._path)
        columns = self._columns
        rows = columns.rows
        regime, labels = columns.finished_labels()
        step, origin, world = (columns.column(name) for name in ("step", "origin", "world"))
        boundary, resumed = columns.column("boundary"), columns.column("resumed")
        trace = Trace(
            step=np.arange(rows) if step is None else step,
            reward=self._measured("reward"),  # type: ignore[arg-type]  # never None: every row has one
            regime=regime,
            origin=np.full(rows, NO_ORIGIN, np.int32) if origin is None else origin,
            boundary=np.zeros(rows, np.bool_) if boundary is None else boundary,
            world=np.zeros(rows, np.int32) if world is None else world,
            labels=labels,
            worlds=tuple(columns.worlds.names) or (None,),
            effective_rank=self._measured("effective_rank"),
            upper_bound=self._measured("upper_bound"),
            metadata=self._metadata(),
            path=str(self._path),
            notes=self._notes(),
        )
        trace = in_lived_order(trace, resumed, columns.line_of)
        return label_notes(trace) if boundary is not None else trace

    def _why_empty(self) -> str:
        if not self._bytes:
            return "empty file"
        if self._torn is not None:
            return "no whole row: the only line was cut off while it was being written"
        if self._damaged:
            return f"no whole row: {counted(len(self._damaged), 'damaged line')} left out"
        return "no row: the file holds blank lines only"

    def _measured(self, name: str) -> NDArray[np.float64] | None:
        values: NDArray[np.float64] | None = self._columns.column(name)
        row = None if values is None else oversized(values)
        if values is not None and row is not None:
            key = self._keys.columns()[name]
            raise TraceError(
                oversized_problem(key, values[row]), path=self._path, line=self._columns.line_of(row)
            )
        return values

    def _metadata(self) -> dict[str, Any]:
        """What the rows say about the run: keys that the first and last row share."""
        header, keys = self._header or {}, self._keys
        try:
            last = _whole_row(self._last_line)
        except _UNREADABLE:  # an escape in a field that is not read
            last = header
        header, last = _without_nan(header), _without_nan(last)
        of_rows = (set(keys.columns().values()) | _OF_EACH_STEP) - {keys.run_id, "trace_version"}
        shared = {
            key: value for key, value in header.items() if key not in of_rows and last.get(key) == value
        }
        for name, key in keys.identity().items():
            if key in header and key not in of_rows:
                if last.get(key) != header[key]:
                    raise TraceError(
                        f"{key} is {header[key]!r} in the first row and {last.get(key)!r} in the last: "
                        "a trace holds one run; split the file",
                        path=self._path,
                    )
                shared[name] = header[key]
        return shared

    def _notes(self) -> tuple[Note, ...]:
        notes = []
        if self._torn is not None:
            notes.append(
                Note("torn_line", f"line {self._torn} was cut off while it was being written; left out")
            )
        if self._damaged:
            lines = counted(len(self._damaged), "damaged line")
            notes.append(Note("damaged_lines", f"{lines} left out, the first is line {self._damaged[0]}"))
        if self._odd_numbers:
            rows = counted(self._odd_numbers, "row")
            notes.append(Note("odd_numbers", f"{rows} with a bare NaN or Infinity, read as missing"))
        if self._header is not None and self._header.get(self._keys.regime) is None:
            notes.append(
                Note(
                    "no_regime",
                    f"no row has {self._keys.regime!r}: "
                    f"the run counts as one configuration, {DEFAULT_REGIME!r}",
                )
            )
        return tuple(notes)


def _without_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without values that are NaN, which count as missing."""
    return {key: value for key, value in row.items() if value == value}  # noqa: PLR0124 - NaN alone differs


def _whole_row(line: bytes) -> dict[str, Any]:
    """Every key of a row, odd numbers as NaN."""
    try:
        row: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
    except _UNREADABLE:
        lenient = parse_leniently(line)
        if lenient is None:
            raise
        return lenient
    return row
