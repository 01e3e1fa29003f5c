"""Reading an export bundle, and acting with the policy in it.

Everything is checked before anything is used: the manifest against its own digest, every file against
the manifest, and that nothing in it runs code when it is read. The policy is made when it is first
asked for, so that a bundle can be looked at where its packages are not installed. Neither the
environment nor its package is needed.

The names in a bundle's document are imported, as those of any document are: load bundles from
people whose documents you would run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from gymnasium import Space

from skyfall_core.bundle.contents import checked_name, refuse_pickles, verify_files
from skyfall_core.bundle.manifest import MANIFEST_FILE, Manifest, read_manifest
from skyfall_core.bundle.restoring import restore_policy
from skyfall_core.bundle.spaces import space_from_json
from skyfall_core.construction import Spaces
from skyfall_core.documents import Document, read_document
from skyfall_core.errors import BundleError
from skyfall_core.provenance import ENVIRONMENT_FILE
from skyfall_core.run_directory import CONFIG_FILE, SCORECARD_FILE, SPACES_FILE

__all__ = ["Bundle", "load_bundle", "read_spaces"]


class Bundle:
    """A trained policy with everything that was written down about it.

    Attributes:
        path: Its folder.
        manifest: Its list of contents.
        config: The run's resolved document as plain data, so that nothing it names need be installed.
        observation_space: What the policy is given; None where the environment had none.
        action_space: What it may do; None where the environment had none.
        provenance: Versions, platform, git revision and seeds of the run.
        scorecard: The run's scores; None where it had not been scored.
    """

    def __init__(
        self, path: Path, manifest: Manifest, weights: Path, policy_kwargs: Mapping[str, Any] | None = None
    ) -> None:
        """Read the documents of a bundle that has been checked. `load_bundle` does both."""
        self.path = path
        self.manifest = manifest
        self._document: Document = read_document(path / CONFIG_FILE)
        self.config: Mapping[str, Any] = self._document.content
        self._spaces = read_spaces(path / SPACES_FILE)
        self.observation_space: Space[Any] | None = self._spaces.observation_space
        self.action_space: Space[Any] | None = self._spaces.action_space
        self.provenance: Mapping[str, Any] = _read_mapping(path / ENVIRONMENT_FILE) or {}
        self.scorecard: Mapping[str, Any] | None = _read_mapping(path / SCORECARD_FILE)
        self._weights, self._policy_kwargs = weights, policy_kwargs

    @cached_property
    def policy(self) -> Any:
        """The policy, made on first use.

        Raises:
            InputError: If a package it needs is not installed, or the weights do not fit.
        """
        return restore_policy(
            self.manifest.policy, self._document, self._spaces, self._weights, self._policy_kwargs
        )

    def act(self, observation: Any) -> Any:
        """The policy's action for one observation, drawn as it drew while it was trained."""
        return self.policy.act(observation)

    def __repr__(self) -> str:
        return f"Bundle({str(self.path)!r}, run_id={self.manifest.run_id!r})"


def load_bundle(
    path: str | os.PathLike[str],
    *,
    external: str | os.PathLike[str] | None = None,
    policy_kwargs: Mapping[str, Any] | None = None,
) -> Bundle:
    """Check a bundle and open it.

    Args:
        path: The folder that `export_bundle` wrote.
        external: Where its weights are, if they lie outside and were moved since.
        policy_kwargs: Keywords of the policy's factory that stand above the recorded ones, such as
            `{"device": "cpu"}`, or `{"temperature": 0}` for a language model's likeliest action.

    Raises:
        BundleError: If anything is missing, too much, changed, of a newer version, leads out of the
            folder or could run code.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    verify_files(folder, manifest.files, frozenset({MANIFEST_FILE}))
    refuse_pickles(folder, manifest.files)
    for name in (CONFIG_FILE, SPACES_FILE):
        if name not in manifest.files:
            raise BundleError(f"{folder / name}: missing from the manifest; export again")
    weights = _checked_weights(folder, manifest, external)
    return Bundle(folder, manifest, weights, policy_kwargs)


def _checked_weights(folder: Path, manifest: Manifest, external: str | os.PathLike[str] | None) -> Path:
    record = manifest.weights
    if not record.external:
        if external is not None:
            raise BundleError(f"external {str(external)!r}: {folder} holds its own weights; leave it out")
        return folder / checked_name(record.path)
    if "\0" in record.path:
        raise BundleError(f"{folder}: weights at {record.path!r}, which is no path; export again")
    place = folder / record.path if external is None else Path(external)
    if not place.exists():
        remedy = "put them there, or say where they are with `external`"
        raise BundleError(f"{place}: the weights of {folder} are missing; {remedy}")
    verify_files(place, record.files)
    refuse_pickles(place, record.files)
    return place


def read_spaces(path: Path) -> Spaces:
    """The spaces in a `spaces.json`.

    Raises:
        BundleError: If it is damaged.
    """
    told = _read_mapping(path) or {}
    return Spaces(*(_space(path, told, name) for name in Spaces._fields))


def _space(path: Path, told: Mapping[str, Any], name: str) -> Space[Any] | None:
    described = told.get(name)
    if described is None:
        return None
    try:
        return space_from_json(described.get("gymnasium") if isinstance(described, Mapping) else None)
    except BundleError as error:
        raise BundleError(f"{path}: {name}: {error}") from error.__cause__


def _read_mapping(path: Path) -> Mapping[str, Any] | None:
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not a JSON object ({error}); export again") from error
