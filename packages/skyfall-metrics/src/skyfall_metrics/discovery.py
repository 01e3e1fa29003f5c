"""Which files under a path are traces.

A run's directory holds one `traces.jsonl` (or a compressed copy of it), so pointing at the directory
that a sweep wrote finds every run in it. Other `.jsonl` files are somebody else's unless they are named
or matched by a pattern of the caller's.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path

from skyfall_metrics.errors import TraceError

__all__ = ["TRACE_PATTERN", "find_all_traces", "find_traces"]

TRACE_PATTERN = "traces.jsonl"
"""Name of a trace inside a run's directory; `.gz` and `.zst` copies of it are found as well."""

_COMPRESSED = (".gz", ".zst")


def find_traces(path: str | os.PathLike[str], pattern: str = TRACE_PATTERN) -> list[Path]:
    """The traces at or under `path`, sorted.

    Args:
        path: A trace, whatever its name, or a directory, searched with everything below it; symbolic
            links to directories are not followed.
        pattern: What a trace is called inside a directory, as a shell pattern (`*.jsonl`). A name with
            `.gz` or `.zst` appended matches too.

    Returns:
        At least one path.

    Raises:
        TraceError: Nothing is there, nothing matches, a directory cannot be listed, or one run lies
            there twice (plain and compressed).
    """
    root = Path(path)
    if not root.is_dir():
        if not os.path.lexists(root):
            raise TraceError("no such file or directory", path=root)
        return [root]
    files = _files_under(root)
    found = sorted(file for file in files if _matches(file.name, pattern))
    if not found:
        raise TraceError(_nothing_found(root, pattern, files), path=root)
    _refuse_twins(found)
    return found


def find_all_traces(paths: Iterable[str | os.PathLike[str]], pattern: str = TRACE_PATTERN) -> list[Path]:
    """The traces at or under several paths, sorted, each file once however often it was reached."""
    found = {os.path.realpath(file): file for path in paths for file in find_traces(path, pattern)}
    return sorted(found.values())


def _files_under(root: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise TraceError(f"cannot list the directory: {error.strerror}", path=error.filename)

    return [Path(folder, name) for folder, _, names in os.walk(root, onerror=refuse) for name in names]


def _matches(name: str, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern + suffix) for suffix in ("", *_COMPRESSED))


def _nothing_found(root: Path, pattern: str, files: list[Path]) -> str:
    others = sorted(file for file in files if ".jsonl" in file.suffixes)
    if not others:
        return f"no {pattern!r} in this directory or below it"
    example = others[0].relative_to(root)
    return (
        f"no {pattern!r} in this directory or below it, but {len(others)} other .jsonl "
        f"(first {str(example)!r}): name the files, or pass a pattern such as '*.jsonl'"
    )


def _refuse_twins(found: list[Path]) -> None:
    plain = set(found)
    for file in found:
        if file.suffix in _COMPRESSED and (twin := file.with_suffix("")) in plain:
            raise TraceError(f"the same run lies here twice; remove it or {twin.name!r}", path=file)
