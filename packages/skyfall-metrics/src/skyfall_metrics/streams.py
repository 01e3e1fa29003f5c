"""Bytes of a trace, plain or compressed, in blocks of whole lines.

Nothing here knows JSON. A block ends with a newline unless it is the file's last; memory stays at about
one block however long the file is, because a line longer than `MAX_LINE_BYTES` is refused or, on request,
passed over without being held.
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
from typing import Any, BinaryIO, cast

from skyfall_metrics.errors import MissingExtraError, TraceError

__all__ = ["BLOCK_BYTES", "MAX_LINE_BYTES", "Block", "read_blocks"]

BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 16 << 20
"""Longest line that is read. A row is a few hundred bytes; a line of megabytes is not a trace."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive whole lines of a file.

    Attributes:
        data: The bytes; every line ends with a newline, the file's last one perhaps not.
        offset: Where `data` starts in the (decompressed) file.
        first_line: Number of its first line, counted from 1.
        lines: How many lines it holds.
        too_long: Whether this stands for one line longer than the limit; `data` then holds its head only.
    """

    data: bytes
    offset: int
    first_line: int
    lines: int
    too_long: bool = False


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
        yield from _blocks(file, block_bytes)


def _blocks(file: BinaryIO, block_bytes: int) -> Iterator[Block]:
    offset, line, rest = 0, 1, b""
    while chunk := file.read(block_bytes):
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            rest += chunk
            if len(rest) <= MAX_LINE_BYTES:
                continue
            yield Block(rest[:80], offset, line, 1, too_long=True)
            skipped, rest = _pass_over_line(file, block_bytes, len(rest))
            offset, line = offset + skipped, line + 1
            chunk, cut = rest, rest.rfind(b"\n") + 1
            rest = b""
        data = rest + chunk[:cut]
        rest = chunk[cut:]
        if data:
            lines = data.count(b"\n")
            yield Block(data, offset, line, lines)
            offset, line = offset + len(data), line + lines
    if rest:
        yield Block(rest, offset, line, 1)


def _pass_over_line(file: BinaryIO, block_bytes: int, length: int) -> tuple[int, bytes]:
    """Length of the line being read, newline included, and what was read behind it."""
    while chunk := file.read(block_bytes):
        cut = chunk.find(b"\n") + 1
        if cut:
            return length + cut, chunk[cut:]
        length += len(chunk)
    return length, b""


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
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


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix == ".zst":
        return cast(BinaryIO, _zstd(path).ZstdFile(path, "rb"))
    return path.open("rb", buffering=0)


def _damage_errors(path: Path) -> tuple[type[Exception], ...]:
    """What a decompressor raises for bytes that are not what the file's name says."""
    if path.suffix == ".zst":
        return (cast(type[Exception], _zstd(path).ZstdError),)
    return (zlib.error, gzip.BadGzipFile)


def _zstd(path: Path) -> Any:
    """The standard library's zstd module (Python 3.14), or its backport."""
    try:
        return importlib.import_module(
            "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        )
    except ImportError:
        raise MissingExtraError(f"{path}: reading .zst needs: pip install 'skyfall-metrics[zstd]'") from None
