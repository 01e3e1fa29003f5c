"""The `executor` section of a sweep document, and building what it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from skyfall_core import plugins
from skyfall_core.config import Keywords, known_name
from skyfall_core.errors import ConfigError
from skyfall_core.executors.base import Executor, Resources
from skyfall_core.factories import call_factory
from skyfall_core.plugins import Group
from skyfall_core.validation import Section

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ExecutorConfig", "ResourcesConfig"]


class ResourcesConfig(Section):
    """What one cell takes."""

    cpus: int | None = Field(
        default=None,
        ge=1,
        description="Cores, and threads for its linear algebra; none leaves it to the executor.",
    )
    gpus: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="Accelerators, or a share of one."
    )
    memory_mb: int | None = Field(default=None, ge=1, description="Main memory in MiB.")


class ExecutorConfig(Section):
    """What runs the cells; `--executor` and `--jobs` have the last word."""

    name: Annotated[str, AfterValidator(known_name(Group.EXECUTORS))] = Field(
        default="local", description="A plugin of `skyfall.executors`."
    )
    jobs: int | None = Field(
        default=None, ge=1, description="Cells at a time; none leaves it to the executor."
    )
    resources: ResourcesConfig = Field(default=ResourcesConfig())
    params: Keywords = Field(default_factory=dict)

    def chosen(self, name: str | None = None, jobs: int | None = None) -> ExecutorConfig:
        """This section with what the command line chose; `params` are those of the executor they name.

        Raises:
            UnknownPluginError: If no executor has that name.
        """
        if name is not None and name != self.name:
            plugins.find(Group.EXECUTORS, name)
            self = self.model_copy(update={"name": name, "params": {}})  # noqa: PLW0642 - a copy
        return self if jobs is None else self.model_copy(update={"jobs": jobs})

    def build(self, output_dir: Path) -> Executor:
        """The executor, ready to run cells.

        Args:
            output_dir: The sweep's, for an executor that keeps files of its own.

        Raises:
            MissingExtraError: If it needs an extra that is not installed.
            ConfigError: If it refuses `params`, or what it gives back runs no cells.
        """
        factory = plugins.load(plugins.find(Group.EXECUTORS, self.name))
        resources = Resources(self.resources.cpus, self.resources.gpus, self.resources.memory_mb)
        offered: dict[str, Any] = {"jobs": self.jobs, "resources": resources, "output_dir": output_dir}
        built: Any = call_factory(factory, self.params, "executor.params", **offered)
        if not callable(getattr(built, "run", None)):
            raise ConfigError(f"executor.name: {self.name!r} gave {built!r}, which cannot run cells")
        executor: Executor = built
        return executor
