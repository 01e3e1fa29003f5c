"""Bytes of a trace, plain or compressed, in blocks of whole lines.

Nothing here knows JSON. A block ends with a newline unless it is the file's last; memory stays at about
one block however long the file is, because a line longer than `MAX_LINE_BYTES` is refused or, on
request, passed over without being held.
"""

from __future__ import annotations

import gzip
import importlib
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from skyfall_metrics.errors import MissingExtraError, TraceError

__all__ = ["BLOCK_BYTES", "MAX_LINE_BYTES", "Block", "read_blocks"]

BLOCK_BYTES = 1 << 18
MAX_LINE_BYTES = 16 << 20
"""Longest line that is read. A row is a few hundred bytes; a line of megabytes is not a trace."""

_NEWLINE = ord("\n")


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive whole lines of a file.

    Attributes:
        data: The bytes; every line ends with a newline, the file's last one perhaps not. They are valid until
            the next block is asked for: the buffer behind them is used again.
        offset: Where `data` starts in the (decompressed) file.
        first_line: Number of its first line, counted from 1.
        lines: How many lines it holds.
        too_long: Whether this stands for one line longer than the limit; `data` is then empty.
    """

    data: memoryview
    offset: int
    first_line: int
    lines: int
    too_long: bool = False

    def last_line(self) -> bytes:
        """The last line, without its newline."""
        size = 1024
        while True:
            tail = bytes(self.data[-size:]).removesuffix(b"\n")
            cut = tail.rfind(b"\n") + 1
            if cut or size >= len(self.data):
                return tail[cut:]
            size *= 8


def read_blocks(path: Path, *, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """The lines of a trace, about `block_bytes` at a time.

    Args:
        path: A plain, `.gz` or `.zst` file.
        block_bytes: How much is read at once.

    Yields:
        Blocks in file order. A line beyond `MAX_LINE_BYTES` comes as a block of its own, marked `too_long`.

    Raises:
        TraceError: The file cannot be opened, read or decompressed.
        MissingExtraError: A `.zst` file, and nothing here can read it.
    """
    with _opened(path) as file:
        yield from _Blocks(file, block_bytes)


class _File(Protocol):
    """What can be read into a buffer: plain files and decompressors."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill `buffer` from its start; how much came, 0 at the end."""


class _Blocks:
    """Cuts what is read into whole lines, in one buffer: only the started line at its end is ever copied."""

    def __init__(self, file: _File, block_bytes: int) -> None:
        self._file = file
        self._block_bytes = block_bytes
        self._buffer = bytearray(2 * block_bytes)
        self._filled = 0
        self._offset = 0
        self._line = 1

    def __iter__(self) -> Iterator[Block]:
        while count := self._fill():
            cut = self._buffer.rfind(b"\n", self._filled - count, self._filled) + 1
            if cut:
                block = self._block(cut)
                yield block
                self._go_on_behind(cut, block.lines)
            elif self._filled > MAX_LINE_BYTES:
                yield Block(memoryview(b""), self._offset, self._line, 1, too_long=True)
                self._pass_over_line()
        if self._filled:
            yield self._block(self._filled)

    def _fill(self) -> int:
        """Read behind what is there; how much came."""
        if len(self._buffer) - self._filled < self._block_bytes:
            self._buffer = self._buffer[: self._filled] + bytearray(self._filled + self._block_bytes)
        with memoryview(self._buffer) as room:
            count = self._file.readinto(room[self._filled : self._filled + self._block_bytes]) or 0
        self._filled += count
        return count

    def _block(self, size: int) -> Block:
        data = memoryview(self._buffer)[:size]
        newlines = int(np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE))
        return Block(data, self._offset, self._line, newlines + (data[-1] != _NEWLINE))

    def _go_on_behind(self, cut: int, lines: int) -> None:
        """Move what follows the first `cut` bytes to the front."""
        rest = self._buffer[cut : self._filled]
        self._buffer[: len(rest)] = rest
        self._filled = len(rest)
        self._offset += cut
        self._line += lines

    def _pass_over_line(self) -> None:
        """Drop what is there and everything up to the next newline."""
        while True:
            self._offset += self._filled
            self._filled = 0
            if not self._fill():
                return
            cut = self._buffer.find(b"\n", 0, self._filled) + 1
            if cut:
                self._go_on_behind(cut, 1)
                return


@contextmanager
def _opened(path: Path) -> Iterator[_File]:
    """The file's decompressed bytes; whatever goes wrong while reading names the file."""
    try:
        with _open(path) as file:
            yield file
    except EOFError:
        raise TraceError(
            "the compressed file ends in the middle: it was cut short, and how many rows are missing "
            "cannot be known; copy it again, or decompress what is left and score that",
            path=path,
        ) from None
    except _damage_errors(path) as error:
        raise TraceError(f"cannot decompress: {error}", path=path) from None
    except OSError as error:
        raise TraceError(f"cannot read: {error.strerror or error}", path=path) from None


def _open(path: Path) -> Any:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".zst":
        return _zstd(path).ZstdFile(path, "rb")
    return path.open("rb", buffering=0)


def _damage_errors(path: Path) -> tuple[type[Exception], ...]:
    """What a decompressor raises for bytes that are not what the file's name says."""
    if path.suffix == ".zst":
        return (_zstd(path).ZstdError,)
    return (zlib.error, gzip.BadGzipFile)


def _zstd(path: Path) -> Any:
    """The standard library's zstd module (Python 3.14), or its backport."""
    try:
        return importlib.import_module(
            "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        )
    except ImportError:
        raise MissingExtraError(f"{path}: reading .zst needs: pip install 'skyfall-metrics[zstd]'") from None
