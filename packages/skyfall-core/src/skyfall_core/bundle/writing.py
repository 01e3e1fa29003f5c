"""Writing an export bundle: everything needed to act as a run ended, in one folder.

A bundle appears whole or not at all: it is written beside its place under another name, checked as a
reader would check it, and renamed. Weights that stay outside are written the same way, and first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from skyfall_core.atomic import partial_beside, put_in_place
from skyfall_core.bundle.contents import describe_files, refuse_pickles
from skyfall_core.bundle.manifest import (
    BUNDLE_VERSION,
    MANIFEST_FILE,
    Manifest,
    PolicyRecord,
    WeightsRecord,
    encoded,
    read_manifest,
    sealed,
)
from skyfall_core.bundle.restoring import save_policy
from skyfall_core.bundle.schemas import space_schema
from skyfall_core.bundle.spaces import space_to_json
from skyfall_core.config import ExperimentConfig
from skyfall_core.construction import Spaces, spaces_of
from skyfall_core.errors import BundleError
from skyfall_core.provenance import ENVIRONMENT_FILE, environment_json
from skyfall_core.run_directory import CONFIG_FILE, SCORECARD_FILE, SPACES_FILE

__all__ = [
    "check_export",
    "export_bundle",
    "spaces_document",
]

WEIGHTS = "weights"
"""Where weights lie in a bundle that holds its own."""


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a bundle goes.

    Attributes:
        folder: The bundle, absolute.
        weights: Where the weights go if not into it, absolute.
        told: The same as the manifest says it.
    """

    folder: Path
    weights: Path | None
    told: str | None


def check_export(
    directory: str | os.PathLike[str],
    external: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Say before a run what would keep its bundle from being written. Changes nothing.

    Raises:
        BundleError: As `export_bundle` would for these three arguments.
    """
    _target(directory, external, overwrite=overwrite)


def export_bundle(
    directory: str | os.PathLike[str],
    *,
    config: ExperimentConfig,
    env: Any,
    algorithm: Any,
    run_dir: str | os.PathLike[str] | None = None,
    external: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    steps: int | None = None,
) -> Path:
    """Write a policy, and what is needed to use it elsewhere, into a folder.

    Args:
        directory: The folder; made with its parents.
        config: The run's resolved document.
        env: The environment, for its spaces; anything with `observation_space` and `action_space` will do.
        algorithm: The algorithm whose policy is exported.
        run_dir: The run's directory, whose provenance and scorecard are taken over where there are any;
            without provenance there, that of this process is recorded.
        external: Where the weights go if not into the bundle. A relative path starts at the working
            directory and is told relative to the bundle, so that both can be moved together; an
            absolute one stays as it is.
        overwrite: Whether a bundle that is already there is replaced. Nothing else ever is.
        steps: How many steps the policy has learned from.

    Returns:
        The folder, absolute.

    Raises:
        BundleError: If something is in the way, the policy cannot be saved or restored, it saves
            pickles, or the folder cannot be written.
        ConfigError: If the document holds an object that cannot be written down.
    """
    target = _target(directory, external, overwrite=overwrite)
    document = config.to_yaml()
    try:
        target.folder.parent.mkdir(parents=True, exist_ok=True)
        with partial_beside(target.folder) as folder:
            folder.mkdir()
            (folder / CONFIG_FILE).write_text(document, encoding="utf-8")
            (folder / SPACES_FILE).write_bytes(spaces_document(spaces_of(env)))
            _take_over(run_dir, folder)
            if not (folder / ENVIRONMENT_FILE).exists():
                (folder / ENVIRONMENT_FILE).write_bytes(environment_json(config))
            with _weights_of(target, folder) as place:
                record = save_policy(algorithm, config.algorithm, place)
                weights = _weights_record(target, folder, place)
                manifest = _manifest(config, folder, record, weights, steps)
                (folder / MANIFEST_FILE).write_bytes(encoded(manifest))
                if target.weights is not None:
                    put_in_place(place, target.weights)
            put_in_place(folder, target.folder)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise BundleError(f"{error.filename or target.folder}: {problem}; choose another folder") from error
    return target.folder


def spaces_document(spaces: Spaces) -> bytes:
    """What `spaces.json` holds: each space in Gymnasium's form and as a schema, null where there is none."""
    told = {
        name: None if space is None else {"gymnasium": space_to_json(space), "schema": space_schema(space)}
        for name, space in spaces._asdict().items()
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n"


def _target(directory: Any, external: Any, *, overwrite: bool) -> _Target:
    folder = Path(directory).absolute()
    replaced = _replaced(folder, overwrite=overwrite)
    if external is None:
        return _Target(folder, None, None)
    weights = Path(external).absolute()
    if weights.resolve().is_relative_to(folder.resolve()) or folder.resolve().is_relative_to(
        weights.resolve()
    ):
        raise BundleError(f"{weights}: external weights lie beside the bundle {folder}, not in or around it")
    if _there(weights):
        old = None if replaced is None or not replaced.weights.external else replaced.weights.path
        if old is None or (folder / old).resolve() != weights.resolve():
            remedy = "choose another path, or remove it yourself"
            raise BundleError(f"{weights}: is already there and not part of a bundle to replace; {remedy}")
    absolute = Path(external).is_absolute()
    return _Target(folder, weights, str(weights) if absolute else os.path.relpath(weights, folder))


def _replaced(folder: Path, *, overwrite: bool) -> Manifest | None:
    """The manifest of the bundle that is at `folder` and may be replaced."""
    if not _there(folder):
        return None
    if folder.is_symlink() or not folder.is_dir():
        raise BundleError(f"{folder}: is there and no folder; choose another")
    try:
        empty = not any(folder.iterdir())
    except OSError as error:
        raise BundleError(f"{folder}: cannot be read: {error.strerror}; choose another") from error
    if empty:
        return None
    if not (folder / MANIFEST_FILE).is_file():
        raise BundleError(f"{folder}: holds something that is no bundle and is left alone; choose another")
    if not overwrite:
        raise BundleError(f"{folder}: already holds a bundle; choose another, or replace it with --overwrite")
    try:
        return read_manifest(folder)
    except BundleError:  # a damaged bundle may be replaced; what it says of other places is not believed
        return None


def _there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise BundleError(f"{str(path)!r}: {error}; choose another") from error
    return True


def _take_over(run_dir: Any, folder: Path) -> None:
    """Copy the run's provenance and scorecard."""
    for name in (ENVIRONMENT_FILE, SCORECARD_FILE):
        source = None if run_dir is None else Path(run_dir) / name
        if source is not None and source.is_file():
            shutil.copyfile(source, folder / name)


@contextmanager
def _weights_of(target: _Target, folder: Path) -> Iterator[Path]:
    """Where the weights are saved to; gone afterwards if they were not moved on."""
    if target.weights is None:
        yield folder / WEIGHTS
        return
    target.weights.parent.mkdir(parents=True, exist_ok=True)
    with partial_beside(target.weights) as place:
        yield place


def _weights_record(target: _Target, folder: Path, place: Path) -> WeightsRecord:
    if target.told is None:
        return WeightsRecord(place.relative_to(folder).as_posix())
    files = describe_files(place)
    refuse_pickles(place, files)
    return WeightsRecord(target.told, True, files)


def _manifest(
    config: ExperimentConfig, folder: Path, policy: PolicyRecord, weights: WeightsRecord, steps: int | None
) -> Manifest:
    files = describe_files(folder)
    refuse_pickles(folder, files)
    run_id, family = str(config.run.name), str(config.run.algorithm_id)
    return sealed(Manifest(BUNDLE_VERSION, run_id, family, steps, policy, weights, files))
