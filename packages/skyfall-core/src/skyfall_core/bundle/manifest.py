"""A bundle's list of contents, which vouches for every file and for itself.

`manifest.json` is read in exactly one form: the one `encoded` writes. A changed byte anywhere in it,
even between two values, is therefore a manifest that does not match its own digest. The digest guards
against damage, not against an author: whoever makes a bundle can write any manifest for it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import msgspec

from skyfall_core.bundle.contents import FileRecord
from skyfall_core.errors import BundleError

__all__ = [
    "BUNDLE_VERSION",
    "MANIFEST_FILE",
    "Manifest",
    "PolicyRecord",
    "WeightsRecord",
    "encoded",
    "read_manifest",
    "sealed",
]

BUNDLE_VERSION = 1
"""Version of the format that this release writes, and the highest that it reads."""

MANIFEST_FILE = "manifest.json"


class PolicyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the policy is made again.

    Attributes:
        restored_by: `policy`: the document's policy factory makes it and `load` fills it. `kwargs`: the
            factory makes and fills it from `kwargs`. `algorithm`: the document's algorithm is built and
            filled from its checkpoint, and its policy acts.
        class_name: `package.module:Class` of the policy that was exported; for readers.
        kwargs: The factory's keywords where they differ from the document's; `SAVED` stands for the
            place of the weights.
    """

    restored_by: Literal["policy", "kwargs", "algorithm"]
    class_name: str
    kwargs: dict[str, Any] | None = None


class WeightsRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the weights are.

    Attributes:
        path: Relative to the bundle's folder, or absolute.
        external: Whether they lie outside the bundle; `files` then describes them.
        files: Files at `path` by name, where they are external.
    """

    path: str
    external: bool = False
    files: dict[str, FileRecord] = {}


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of a bundle.

    Attributes:
        bundle_version: Of the format.
        run_id: Of the run the policy comes from.
        algorithm_id: The family it belongs to.
        steps: How many steps the policy had learned from; None where that was not said.
        policy: How the policy is made again.
        weights: Where its weights are.
        files: Every other file of the bundle by name.
        manifest_sha256: Digest of this manifest with this field empty.
    """

    bundle_version: int
    run_id: str
    algorithm_id: str
    steps: int | None
    policy: PolicyRecord
    weights: WeightsRecord
    files: dict[str, FileRecord]
    manifest_sha256: str = ""


def encoded(manifest: Manifest) -> bytes:
    """The one form in which a manifest is written."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def sealed(manifest: Manifest) -> Manifest:
    """`manifest` with its own digest filled in."""
    blank = msgspec.structs.replace(manifest, manifest_sha256="")
    return msgspec.structs.replace(blank, manifest_sha256=hashlib.sha256(encoded(blank)).hexdigest())


def read_manifest(folder: Path) -> Manifest:
    """The manifest in a bundle's folder.

    Raises:
        BundleError: If there is none, it was changed, or it is of a version this release does not know.
    """
    path = folder / MANIFEST_FILE
    if path.is_symlink() or not path.is_file():
        raise BundleError(f"{path}: no such file; give the folder that `skyfall export` wrote")
    try:
        content = path.read_bytes()
        version = msgspec.json.decode(content, type=_Version).bundle_version
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise BundleError(f"{path}: damaged ({error}); export again") from error
    if version > BUNDLE_VERSION:
        problem = f"bundle_version is {version}, this release reads up to {BUNDLE_VERSION}"
        raise BundleError(f"{path}: {problem}; upgrade skyfall-core")
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: damaged ({error}); export again") from error
    if manifest.bundle_version != BUNDLE_VERSION or encoded(sealed(manifest)) != content:
        raise BundleError(f"{path}: changed since it was exported (its digest differs); export again")
    return manifest


class _Version(msgspec.Struct, frozen=True):
    """The part of any version's manifest that says which version it is."""

    bundle_version: int
