"""Every error this package raises on purpose, and the exit status each one means.

    SkyfallError
    ├── InputError                      the document, file or option was wrong: exit 2
    │   ├── ConfigError                 a document, with file, dotted path, value and remedy
    │   │   └── ScheduleError           a regime schedule
    │   ├── SpaceError                  an environment's spaces do not suit what was asked of them
    │   ├── CheckpointError             a checkpoint that is damaged or belongs to something else
    │   ├── BundleError                 an export bundle that is damaged, unsafe or cannot be made
    │   ├── TraceExistsError            the run's directory already holds a trace
    │   └── PluginError                 a name that cannot be resolved
    │       ├── UnknownPluginError      nobody registered it; the nearest names are given
    │       ├── PluginConflictError     two distributions claim it
    │       ├── PluginLoadError         it exists and fails to import
    │       └── MissingExtraError       it ships with an extra that is not installed
    └── RunError                        the run itself failed: exit 1
        ├── EnvironmentFailedError      the environment raised; step and environment named
        ├── NonFiniteRewardError        a reward that is NaN, infinite or no number
        ├── RewardSpecError             a reward spec that can read nothing here
        └── TraceError                  the trace could not be written

A message names the place, the value and the remedy, in that order.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "BundleError",
    "CheckpointError",
    "ConfigError",
    "EnvironmentFailedError",
    "InputError",
    "MissingExtraError",
    "NonFiniteRewardError",
    "PluginConflictError",
    "PluginError",
    "PluginLoadError",
    "RewardSpecError",
    "RunError",
    "ScheduleError",
    "SkyfallError",
    "SpaceError",
    "TraceError",
    "TraceExistsError",
    "UnknownPluginError",
    "suggestion",
]


class SkyfallError(Exception):
    """Base of every deliberate error; `exit_status` is what the command line exits with."""

    exit_status = 1


class InputError(SkyfallError):
    """The caller's input is wrong; nothing was run."""

    exit_status = 2


class ConfigError(InputError):
    """A document that cannot be used as written.

    Attributes:
        place: Dotted path of what is wrong, if the message begins with it; whoever knows the path adds it
            where it is None.
    """

    place: str | None = None

    @classmethod
    def at(cls, place: str, problem: object) -> ConfigError:
        """The error whose message is `place: problem`."""
        error = ConfigError(f"{place}: {problem}")
        error.place = place
        return error


class ScheduleError(ConfigError):
    """A regime schedule with an entry that cannot hold.

    Args:
        where: The entry and field at fault, as a path inside the schedule (`regimes[2].duration_steps`).
        problem: What is wrong with it, and the remedy.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)
        self.where = where
        self.problem = problem


class SpaceError(InputError):
    """Observation or action spaces that the chosen part cannot work with."""


class CheckpointError(InputError):
    """A checkpoint that is damaged, incomplete or made for something else."""


class BundleError(InputError):
    """An export bundle that is damaged, unsafe to read, in the way, or impossible to make."""


class TraceExistsError(InputError):
    """A run would have overwritten an existing trace."""


class PluginError(InputError):
    """A plugin name that does not lead to a usable object."""


class UnknownPluginError(PluginError):
    """A name that no distribution registered."""


class PluginConflictError(PluginError):
    """A name that two distributions registered in one group."""


class PluginLoadError(PluginError):
    """A registered object that fails to import; the cause is chained."""


class MissingExtraError(PluginError):
    """A shipped name whose package is not installed."""


class RunError(SkyfallError):
    """A run that started and could not go on."""


class EnvironmentFailedError(RunError):
    """The environment raised in `reset` or `step`; the cause is chained."""


class NonFiniteRewardError(RunError):
    """A reward that is NaN, infinite or not a number."""


class RewardSpecError(RunError):
    """A reward specification that can read none of its fields from the environment."""


class TraceError(RunError):
    """A trace row that could not be encoded or written."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The half-sentence that helps after an unknown name.

    Args:
        name: What was asked for.
        known: Every name that would have worked.

    Returns:
        `did you mean 'x'? known: 'x', 'y'`, the first part only when something is near.
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=1)
    listing = "known: " + ", ".join(map(repr, names)) if names else "none is known"
    return f"did you mean {nearest[0]!r}? {listing}" if nearest else listing
