"""Checkpoints of a run: written whole or not at all, checked byte by byte, the last few kept.

A checkpoint is a folder `checkpoints/step-…` with the algorithm's own files, `state.json` for everything
else, and `manifest.json`, which holds the digest of each file and its own. It is put together under
another name, forced onto the disk and renamed, so that whoever sees it sees all of it. Nothing here
reads or writes a pickle.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skyfall_core.atomic import put_in_place, remove
from skyfall_core.encoding import decode, encode
from skyfall_core.errors import CheckpointError

__all__ = [
    "ALGORITHM",
    "CHECKPOINTS",
    "Checkpoint",
    "differing_keys",
    "newest_checkpoint",
    "write_checkpoint",
]

ALGORITHM = "algorithm"
"""What the algorithm wrote inside a checkpoint: a file or a folder, as it likes."""

CHECKPOINTS = "checkpoints"
"""Folder of a run's directory that holds its checkpoints."""

FREE_KEYS = frozenset(
    {"rollout.total_steps", "run.checkpoint_every", "run.checkpoints_kept", "run.output_dir"}
)
"""Keys of the document that may differ between the run that wrote a checkpoint and one that reads it.

What follows a run (`trackers`) changes nothing in it, so it may differ too.
"""

_MANIFEST, _STATE, _VERSION = "manifest.json", "state.json", 1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that was read and found whole.

    Attributes:
        path: Its folder.
        step: Steps taken before it.
        state: What the run wrote besides the algorithm's own files.
        learned: Whether the algorithm wrote itself down.
    """

    path: Path
    step: int
    state: Mapping[str, Any]
    learned: bool


def write_checkpoint(
    run_directory: Path,
    step: int,
    state: Mapping[str, Any],
    save_algorithm: Callable[[Path], None] | None,
    keep: int,
) -> Path:
    """Write one checkpoint and remove those that are older than the last `keep`.

    Args:
        run_directory: The run's directory.
        step: Steps taken so far.
        state: Values that `encode` takes.
        save_algorithm: Called with the path to write the algorithm to, or None.
        keep: How many checkpoints stay.

    Raises:
        OSError: If the system refuses a file.
        TypeError: If the state holds what cannot be written.
    """
    folder = run_directory / CHECKPOINTS
    folder.mkdir(exist_ok=True)
    final, partial = folder / f"step-{step:012d}", folder / f"partial-{step:012d}"
    for stale in [path for path in folder.iterdir() if not path.name.startswith("step-")]:
        remove(stale)  # left by a process that was killed while it wrote one
    partial.mkdir()
    try:
        if save_algorithm is not None:
            save_algorithm(partial / ALGORITHM)
        (partial / _STATE).write_bytes(encode(state))
        files = {name: _digest(partial / name) for name in _files(partial)}
        body = json.dumps({"version": _VERSION, "step": step, "files": files}, sort_keys=True)
        (partial / _MANIFEST).write_text(f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}\n")
        put_in_place(partial, final)
    except BaseException:
        remove(partial)
        raise
    for old in _found(run_directory)[keep:]:
        remove(old)
    return final


def newest_checkpoint(run_directory: Path, lengths: Mapping[str, int]) -> Checkpoint | None:
    """The newest checkpoint that is whole, or None where there is none at all.

    One that is damaged is passed over, and said so.

    Args:
        run_directory: The run's directory.
        lengths: Present length in bytes of each record that a checkpoint cuts back to; one that
            reaches behind the record's end cannot be gone on from.

    Raises:
        CheckpointError: If there are checkpoints and every one is damaged; each is named.
    """
    problems = []
    for path in _found(run_directory):
        try:
            checkpoint = _read(path)
            for name, length in lengths.items():
                needed = int(checkpoint.state["lengths"].get(name, 0))
                if length < needed:
                    raise ValueError(f"{name} has {length} bytes, {needed} were recorded")  # noqa: TRY301 - one kind of problem like the others
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{path}: {error}")
            continue
        if problems:
            older = f"going on from the one before, step {checkpoint.step}"
            _log.warning("a checkpoint is damaged (%s); %s", "; ".join(problems), older)
        return checkpoint
    if problems:
        remedy = "begin again with --overwrite"
        raise CheckpointError("\n".join([f"no checkpoint here is whole; {remedy}", *problems]))
    return None


def differing_keys(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two documents, as `dotted.path: then → now`, free keys apart."""
    before, after = dict(_leaves(then)), dict(_leaves(now))
    keys = [
        key
        for key in sorted({*before, *after})
        if key not in FREE_KEYS and key.partition("[")[0] != "trackers"
    ]
    return [
        f"{key}: {_shown(before, key)} in the checkpoint, {_shown(after, key)} now"
        for key in keys
        if (key in before) != (key in after) or before.get(key) != after.get(key)
    ]


def _shown(leaves: Mapping[str, Any], key: str) -> str:
    return repr(leaves[key]) if key in leaves else "not set"


def _leaves(content: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(content, Mapping) and content:
        for key, value in content.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(content, list) and content:
        for index, value in enumerate(content):
            yield from _leaves(value, f"{path}[{index}]")
    else:
        yield path, content


def _found(run_directory: Path) -> list[Path]:
    """Checkpoints by name, newest first."""
    folder = run_directory / CHECKPOINTS
    return sorted(folder.glob("step-*"), reverse=True) if folder.is_dir() else []


def _read(path: Path) -> Checkpoint:
    text, _, rest = (path / _MANIFEST).read_bytes().partition(b"\n")
    body = rest.removesuffix(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != text:
        raise ValueError(f"{_MANIFEST} is damaged")
    manifest = json.loads(body)
    if manifest["version"] != _VERSION:
        raise ValueError(f"version {manifest['version']!r}; {_VERSION} is known here")
    present = {name for name in _files(path) if name != _MANIFEST}
    if present != set(manifest["files"]):
        odd = sorted(present ^ set(manifest["files"]))
        raise ValueError(f"files are missing or were added: {', '.join(odd)}")
    for name, digest in manifest["files"].items():
        if _digest(path / name) != digest:
            raise ValueError(f"{name} is damaged")
    state = decode((path / _STATE).read_bytes())
    return Checkpoint(path, int(manifest["step"]), state, (path / ALGORITHM).exists())


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
