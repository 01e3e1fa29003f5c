"""An export that a run was asked for: refused before the run if it cannot be, written at its end."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from skyfall_core.bundle.finished import export_run
from skyfall_core.bundle.restoring import how_to_restore
from skyfall_core.bundle.writing import check_export, export_bundle
from skyfall_core.config import ExperimentConfig
from skyfall_core.errors import RunError, SkyfallError

__all__ = ["PlannedExport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedExport:
    """What a run was asked to export; nothing where `directory` is None.

    Attributes:
        directory: The bundle's folder.
        external: Where its weights go if not into it.
        config: The run's resolved document.
        run_dir: The run's directory, if it has one.
        overwrite: Whether a bundle that is there is replaced.
    """

    directory: str | PathLike[str] | None
    external: str | PathLike[str] | None
    config: ExperimentConfig
    run_dir: Path | None
    overwrite: bool

    def check_place(self) -> None:
        """Say what is in the way.

        Raises:
            InputError: If there is something, or the document cannot be written down.
        """
        if self.directory is not None:
            self.config.to_yaml()
            check_export(self.directory, self.external, overwrite=self.overwrite)

    def check_policy(self, algorithm: Any) -> None:
        """Say what keeps the policy from being exported.

        Raises:
            InputError: If it cannot be saved or restored.
        """
        if self.directory is not None:
            how_to_restore(algorithm, self.config.algorithm)

    def write(self, env: Any, algorithm: Any, steps: int) -> Path | None:
        """Write the bundle; its folder, or None where none was asked for.

        Raises:
            RunError: If it cannot be written.
        """
        if self.directory is None:
            return None
        try:
            return export_bundle(
                self.directory,
                config=self.config,
                env=env,
                algorithm=algorithm,
                run_dir=self.run_dir,
                external=self.external,
                overwrite=self.overwrite,
                steps=steps,
            )
        except SkyfallError as error:
            raise RunError(f"the run is done and recorded, but its export failed: {error}") from error

    def write_finished(self) -> Path | None:
        """Write the bundle of a run that is finished already; its folder, or None where none was asked for.

        Raises:
            InputError: As `export_run`.
        """
        if self.directory is None or self.run_dir is None:
            return None
        return export_run(
            self.run_dir, self.directory, external=self.external, overwrite=self.overwrite, config=self.config
        )
