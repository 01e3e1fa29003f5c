"""What may lie in a bundle's folder, and what is known about each file.

Files are known by name, size and SHA-256. Names are relative, with `/` between their parts; nothing
leads out of the folder, nothing is a link, and nothing holds a pickle, which would run code when it
is read. Whatever is wrong is said with the file's name.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from skyfall_core.errors import BundleError

__all__ = ["FileRecord", "checked_name", "describe_files", "refuse_pickles", "verify_files"]

PICKLED = frozenset({".bin", ".ckpt", ".dill", ".joblib", ".pickle", ".pkl", ".pt", ".pth"})
"""Endings of files that are read by running what they say."""

SINGLE = "weights"
"""What a single file is called where a folder's files have names, so that it may be renamed."""

_PICKLE_START = re.compile(rb"\x80[\x02-\x06]")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class FileRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a manifest knows about a file.

    Attributes:
        sha256: Of its content, in hexadecimal.
        size: In bytes.
    """

    sha256: str
    size: int


def describe_files(root: Path, leaving_out: frozenset[str] = frozenset()) -> dict[str, FileRecord]:
    """Every file under `root` by name, in alphabetical order.

    Args:
        root: A folder, or a single file, which is then called `SINGLE`.
        leaving_out: Names that are not looked at.

    Raises:
        BundleError: If there is a link or something that is no file, or one cannot be read.
    """
    return {name: _record(root, name) for name in sorted(set(_names(root)) - leaving_out)}


def verify_files(
    root: Path, known: Mapping[str, FileRecord], leaving_out: frozenset[str] = frozenset()
) -> None:
    """Check that exactly the known files are under `root`, each as it was.

    Raises:
        BundleError: Naming the first file that is missing, unknown, changed or no plain file.
    """
    for name in known:
        checked_name(name)
    found = set(_names(root)) - leaving_out
    for name in sorted(known.keys() - found):
        raise BundleError(f"{_inside(root, name)}: missing; export again, or copy the bundle whole")
    for name in sorted(found - known.keys()):
        raise BundleError(f"{_inside(root, name)}: is in no manifest; remove it, or export again")
    for name, record in known.items():
        if _record(root, name) != record:
            problem = "changed since it was exported: its size or SHA-256 differs"
            raise BundleError(f"{_inside(root, name)}: {problem}; export again")


def checked_name(name: str) -> str:
    """`name`, if it leads to a place inside its folder.

    Raises:
        BundleError: If it is absolute, climbs out, or is written in another way than this one.
    """
    parts = name.split("/")
    if not name or {"", ".", ".."} & set(parts) or re.search(r"[\\:\x00-\x1f]", name):
        problem = "a manifest's names are relative, with '/' between parts, and never lead out of the folder"
        raise BundleError(f"{name!r}: {problem}; do not use this bundle")
    return name


def refuse_pickles(root: Path, names: Mapping[str, FileRecord]) -> None:
    """Check that no file under `root` would run code when it is read.

    Raises:
        BundleError: Naming the file.
    """
    for name in names:
        path = _inside(root, name)
        try:
            problem = _pickle_in(path)
        except (
            OSError,
            ValueError,
            EOFError,
            zipfile.BadZipFile,
            RuntimeError,
            NotImplementedError,
        ) as error:
            problem = f"cannot be looked into ({type(error).__name__}: {error})"
        if problem is not None:
            remedy = "save weights as safetensors, or as NumPy arrays of numbers"
            raise BundleError(f"{path}: {problem}, and a bundle holds nothing that runs code; {remedy}")


def _pickle_in(path: Path) -> str | None:
    """What makes a file one that runs code, or None."""
    if path.suffix.lower() in PICKLED:
        return f"the ending {path.suffix!r} stands for a pickle"
    with path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        if start.startswith(b"\x93NUMPY"):
            return "holds an array of objects" if _holds_objects(file) else None
        if start.startswith(b"PK\x03\x04"):
            return _pickle_in_archive(file)
    # A safetensors file begins with a length, which may be any number, and its reader runs nothing.
    if path.suffix != ".safetensors" and _PICKLE_START.match(start):
        return "begins like a pickle"
    return None


def _pickle_in_archive(file: IO[bytes]) -> str | None:
    with zipfile.ZipFile(file) as archive:
        for member in archive.namelist():
            if Path(member).suffix.lower() in PICKLED:
                return f"holds the pickle {member!r}"
            if member.endswith(".npy"):
                with archive.open(member) as inner:
                    if _holds_objects(inner):
                        return f"holds {member!r}, an array of objects"
    return None


def _holds_objects(file: IO[bytes]) -> bool:
    """Whether a `.npy` file's array holds Python objects; its header says so."""
    version = np.lib.format.read_magic(file)
    read: Any = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    _, _, dtype = read(file)
    return bool(dtype.hasobject)


def _names(root: Path) -> Iterator[str]:
    """Names of everything under `root` that is no folder; links are refused, to folders too."""
    if not root.is_dir():
        yield SINGLE
        return
    for folder, below, files in os.walk(root, onerror=_raise):
        links = [name for name in below if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118
        for name in (*links, *files):
            yield (Path(folder) / name).relative_to(root).as_posix()


def _raise(error: OSError) -> None:
    raise BundleError(f"{error.filename}: cannot be read: {error.strerror}") from error


def _inside(root: Path, name: str) -> Path:
    return root / name if root.is_dir() else root


def _record(root: Path, name: str) -> FileRecord:
    path = _inside(root, name)
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            kind = "a link, which may lead anywhere" if path.is_symlink() else "no file"
            raise BundleError(f"{path}: is {kind}; put the file itself into its place")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return FileRecord(digest, file.tell())
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from error
