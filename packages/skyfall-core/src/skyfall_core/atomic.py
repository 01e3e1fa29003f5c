"""Files and folders that appear whole or not at all, whatever kills the process or stops the machine.

What is new is written beside its place under another name, forced onto the disk, renamed, and the rename
forced onto the disk too. Whoever reads sees the old content or the new one, never a part of either.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["partial_beside", "put_in_place", "remove", "whole_file", "write_whole"]


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which replaces `path` when the block ends well and is removed when it does not.

    Its name is fixed, so that what a killed process left is overwritten by the next one; two processes
    do not write one file at once.

    Raises:
        OSError: If the system refuses.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_whole(path: Path, content: bytes) -> None:
    """Replace the content of a file in one step.

    Raises:
        OSError: If the system refuses.
    """
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def partial_beside(target: Path) -> Iterator[Path]:
    """A name beside `target` for what is not whole yet; whatever still has it at the end is removed."""
    partial = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
    finally:
        remove(partial)


def put_in_place(partial: Path, target: Path) -> None:
    """Force a file or folder onto the disk and rename it to `target`, in the same folder.

    A folder cannot be replaced in one step: what was there is moved aside, put back if the rename fails,
    and removed if it does not.

    Raises:
        OSError: If the system refuses.
    """
    _sync_tree(partial)
    with partial_beside(target) as old:
        if os.path.lexists(target):
            target.rename(old)
        try:
            partial.rename(target)
        except BaseException:
            if os.path.lexists(old):
                old.rename(target)
            raise
        _sync_folder(target.parent)


def remove(path: Path) -> None:
    """Remove a file or a folder with all it holds, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync_tree(root: Path) -> None:
    for path in (root, *root.rglob("*")) if root.is_dir() else (root,):
        if path.is_dir():
            _sync_folder(path)
        elif path.is_file():
            _sync(path)


def _sync_folder(folder: Path) -> None:
    """Force a folder's entries onto the disk, where a system can open a folder."""
    if sys.platform != "win32":
        _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
