"""Exporting a run that is over, from what it left in its directory and without its environment."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from skyfall_core.bundle.loading import read_spaces
from skyfall_core.bundle.writing import check_export, export_bundle
from skyfall_core.checkpoints import ALGORITHM, newest_checkpoint
from skyfall_core.config import ExperimentConfig, load_config
from skyfall_core.construction import build_algorithm
from skyfall_core.errors import BundleError
from skyfall_core.run_directory import CONFIG_FILE, SPACES_FILE

__all__ = ["export_run"]


def export_run(
    run_dir: str | PathLike[str],
    directory: str | PathLike[str],
    *,
    external: str | PathLike[str] | None = None,
    overwrite: bool = False,
    config: ExperimentConfig | None = None,
) -> Path:
    """Write an export bundle of a run's newest whole checkpoint.

    A run that is not finished is exported as far as its checkpoint goes; the manifest says how far.

    Args:
        run_dir: The run's directory.
        directory: The bundle's folder.
        external: Where its weights go if not into it.
        overwrite: Whether a bundle that is there is replaced.
        config: The run's document; the one in its directory when None.

    Returns:
        The bundle's folder, absolute.

    Raises:
        BundleError: If the directory is no run's, holds no checkpoint with a policy in it, or the bundle
            cannot be written.
        CheckpointError: If every checkpoint is damaged.
    """
    run = Path(run_dir)
    for name in (CONFIG_FILE, SPACES_FILE):
        if not (run / name).is_file():
            raise BundleError(f"{run / name}: missing; give the directory of a run, such as runs/quickstart")
    check_export(directory, external, overwrite=overwrite)
    config = load_config(run / CONFIG_FILE) if config is None else config
    checkpoint = newest_checkpoint(run, {})
    if checkpoint is None or not checkpoint.learned:
        lacking = "no checkpoint" if checkpoint is None else "no algorithm in its checkpoint"
        remedy = "run it again with run.checkpoint_every above 0, or with skyfall run --export"
        raise BundleError(f"{run}: holds {lacking}, so what it learned is gone; {remedy}")
    spaces = read_spaces(run / SPACES_FILE)
    algorithm = build_algorithm(config.algorithm, spaces)
    algorithm.load_checkpoint(checkpoint.path / ALGORITHM)
    return export_bundle(
        directory,
        config=config,
        env=spaces,
        algorithm=algorithm,
        run_dir=run,
        external=external,
        overwrite=overwrite,
        steps=checkpoint.step,
    )
