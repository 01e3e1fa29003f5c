"""Writing the record of a run: one JSON object a line, safe before the next step is taken.

Every row reaches the operating system in one write call, so a killed process loses at most the row
it was writing. A row that cannot be written whole is taken back, so that a full disk leaves whole
rows only. NaN and infinities become null. An existing trace is never overwritten unasked, and
appending first cuts off a torn last line.

The format is version 1: see the documentation's page on the trace.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np

from skyfall_core.errors import TraceError, TraceExistsError

__all__ = ["TRACE_FILE", "TRACE_VERSION", "TraceMode", "TraceWriter", "plain", "repair_torn_line"]

TRACE_VERSION = 1
"""Version of the format that `TraceWriter` writes, told in every row."""

TRACE_FILE = "traces.jsonl"
"""Name of the trace inside a run's directory."""

_BLOCK = 1 << 16
_NO_JSON_FORM = (TypeError, ValueError, OverflowError, RecursionError)


class TraceMode(str, Enum):
    """What to do about a trace that is already there."""

    CREATE = "create"
    OVERWRITE = "overwrite"
    APPEND = "append"
    RESUME = "resume"


class TraceWriter:
    """Writes rows to a trace file.

    Args:
        path: The file; its directory is made.
        meta: Run metadata that every row repeats.
        mode: `create` refuses an existing file, `overwrite` replaces it, `append` repairs a torn last
            line and goes on behind it. `resume` is `append` behind what the caller has cut back.

    Attributes:
        repaired_bytes: Length of the torn line that `append` cut off; 0 otherwise.

    Raises:
        TraceExistsError: In mode `create`, if the file exists.
        TraceError: If the file cannot be opened or the metadata cannot be encoded.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        meta: Mapping[str, Any] | None = None,
        mode: TraceMode | str = TraceMode.CREATE,
    ) -> None:
        self.path = Path(path)
        self._encoder = msgspec.json.Encoder(enc_hook=plain)
        version = {"trace_version": TRACE_VERSION}
        self._meta = version | dict(meta or {}) | version
        self._prefix = self._encode(self._meta)[:-1] + b","
        self.repaired_bytes = 0
        self._descriptor: int | None = self._open(TraceMode(mode))

    @staticmethod
    def check(path: str | os.PathLike[str], mode: TraceMode | str = TraceMode.CREATE) -> None:
        """Say before a run is built what would keep its trace from being written. Changes nothing.

        Raises:
            TraceExistsError: In mode `create`, if the file exists.
            TraceError: If the file or its directory cannot be written.
        """
        path = Path(path)
        try:
            existing = next(place for place in (path, *path.absolute().parents) if _is_there(place))
        except (OSError, ValueError) as error:
            raise _unwritable(path, error) from error
        if existing == path and TraceMode(mode) is TraceMode.CREATE:
            raise _exists(path)
        if existing != path and not existing.is_dir():
            raise TraceError(f"{path}: {existing} is not a directory; choose another output_dir")
        if not os.access(existing, os.W_OK):
            raise TraceError(f"{path}: {existing} is not writable; choose another output_dir")

    def write(self, row: Mapping[str, Any], record: Mapping[str, Any] | None = None) -> None:
        """Append one row.

        Args:
            row: The harness's keys of one step.
            record: The environment's own record of it; the harness's keys stand above it.

        Raises:
            TraceError: If a value cannot be encoded or the operating system refuses the row; the
                file then ends with the row before.
        """
        if self._descriptor is None:
            raise TraceError(f"{self.path}: the trace is closed")
        if record:
            told = {key: self._in_order(value) for key, value in record.items() if key not in self._meta}
            row = told | dict(row)
        try:
            line = self._prefix + self._encoder.encode(row)[1:] + b"\n"
        except _NO_JSON_FORM:
            line = self._prefix + self._encode(row)[1:] + b"\n"
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            raise self._refused(row, error) from error
        if written != len(line):
            self._finish(row, line, written)

    def mark_resumed(self) -> None:
        """Let the next row say `"resumed": true`: what it tells does not follow from the row before."""
        plain_write = self.write

        def marked(row: Mapping[str, Any], record: Mapping[str, Any] | None = None) -> None:
            del self.__dict__["write"]  # from the second row on nothing is asked
            plain_write({**row, "resumed": True}, record)

        self.__dict__["write"] = marked

    def safe_length(self) -> int:
        """Bytes written so far, after the system was made to put them on the disk.

        Raises:
            TraceError: If the system refuses.
        """
        if self._descriptor is None:
            raise TraceError(f"{self.path}: the trace is closed")
        try:
            os.fsync(self._descriptor)
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise TraceError(f"{self.path}: cannot be put on the disk: {error.strerror}") from error

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, mode: TraceMode) -> int:
        going_on = mode in {TraceMode.APPEND, TraceMode.RESUME}
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if going_on else os.O_EXCL)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise _unwritable(self.path, error) from error
        try:
            if mode is TraceMode.OVERWRITE:
                self.path.unlink(missing_ok=True)
            if going_on and self.path.exists():
                self.repaired_bytes = repair_torn_line(self.path)
            return os.open(self.path, flags, 0o666)
        except FileExistsError:
            raise _exists(self.path) from None
        except (OSError, ValueError) as error:
            raise _unwritable(self.path, error) from error

    def _finish(self, row: Mapping[str, Any], line: bytes, written: int) -> None:
        """Write the rest of a row that was cut short, or take back what was written of it."""
        descriptor = self._descriptor
        assert descriptor is not None  # noqa: S101 - write() has checked it
        total = written
        try:
            while total < len(line):
                total += os.write(descriptor, line[total:])
        except BaseException as error:  # an interruption leaves whole rows too
            try:
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - total)
            except OSError:
                self.close()  # the piece stays, and no later row may be glued to it
            if isinstance(error, OSError):
                raise self._refused(row, error) from error
            raise

    def _refused(self, row: Mapping[str, Any], error: OSError) -> TraceError:
        problem = f"step {row.get('step')!r} could not be written: {error.strerror}"
        return TraceError(f"{self.path}: {problem}; every row before it is in the file")

    def _in_order(self, value: Any) -> Any:
        """`value` with its sets as lists in an order that does not depend on this process's hashes."""
        try:
            if isinstance(value, set | frozenset):
                return sorted(map(self._in_order, value), key=self._encoder.encode)
            if isinstance(value, Mapping):
                return {key: self._in_order(item) for key, item in value.items()}
            if type(value) in {list, tuple}:
                return list(map(self._in_order, value))
        except _NO_JSON_FORM:
            pass  # refused with its key when the row is encoded
        return value

    def _encode(self, values: Mapping[str, Any]) -> bytes:
        """Encode key by key, so that a value without a JSON form is named."""
        parts = []
        for key, value in values.items():
            try:
                parts.append(self._encoder.encode({key: value})[1:-1])
            except _NO_JSON_FORM as error:
                step = f"step {values['step']!r}: " if "step" in values else ""
                raise TraceError(f"{self.path}: {step}{key!r} has no JSON form: {error}") from error
        return b"{" + b",".join(parts) + b"}"


def _exists(path: Path) -> TraceExistsError:
    remedy = "choose another run.name or output_dir, or replace it with --overwrite"
    return TraceExistsError(f"{path} already holds a trace; {remedy}")


def _unwritable(path: Path, error: OSError | ValueError) -> TraceError:
    reason = getattr(error, "strerror", None) or error
    return TraceError(f"{str(path)!r} cannot be written: {reason}; choose another output_dir")


def _is_there(path: Path) -> bool:
    """`Path.exists`, which calls a path with a NUL missing, and a link that leads nowhere too."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def repair_torn_line(path: str | os.PathLike[str]) -> int:
    """Cut a last line that lacks its line end off a trace.

    Returns:
        How many bytes were cut off; 0 for a file that ends with a whole line, or is empty.
    """
    with Path(path).open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(end - _BLOCK, 0)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end != size:
            file.truncate(end)
    return size - end


def plain(value: Any) -> Any:
    """JSON-like data for the NumPy values that spaces are full of.

    Raises:
        TypeError: For anything else that has no JSON form of its own.
    """
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.longdouble):  # its item() is itself
        return float(value)
    if isinstance(value, np.generic) and not isinstance(value, np.clongdouble):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"a {type(value).__name__} cannot be written; make it numbers, strings, lists or mappings"
    )
