"""How much memory there is for a further process, as the system tells it; no dependency needed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

__all__ = ["available_mb", "peak_mb"]

MIB = 1024 * 1024


def available_mb(root: Path = Path("/")) -> int | None:
    """Memory that new processes can take without swapping, in MiB; None where nobody says.

    Linux's own estimate, or what a container's limit leaves if that is less. Elsewhere the free pages.

    Args:
        root: Where `proc` and `sys` are.
    """
    told = [size for size in (_of_machine(root), _of_container(root)) if size is not None]
    if told:
        return min(told) // MIB
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB
    except (ValueError, OSError):
        return None


def peak_mb(ru_maxrss: int) -> int:
    """A peak resident size as `getrusage` reports it, in MiB."""
    return ru_maxrss // (MIB if sys.platform == "darwin" else 1024)


def _of_machine(root: Path) -> int | None:
    found = re.search(r"^MemAvailable: +(\d+) kB$", _text(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _of_container(root: Path) -> int | None:
    """What the control group's limit leaves; the file cache it could drop counts as free."""
    folder = root / "sys/fs/cgroup"
    limit, current = _text(folder / "memory.max").strip(), _text(folder / "memory.current").strip()
    if not limit.isdigit() or not current.isdigit():
        return None
    cache = re.search(r"^inactive_file (\d+)$", _text(folder / "memory.stat"), re.MULTILINE)
    return max(int(limit) - int(current) + (int(cache[1]) if cache else 0), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
