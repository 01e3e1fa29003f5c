"""What the harness may ask of an environment beyond Gymnasium's own interface, all of it optional.

Every capability is probed and its absence is fine: an environment that offers none still runs, is
recorded and is scored. The probe looks through wrappers with Gymnasium's own attribute lookup and
never through `.unwrapped`, which would jump over a capability that a middle wrapper added. Objects
that are no `gymnasium.Env` are asked directly.

Per step, two keys of `info` are a convention: `info["regime"]` (`{"id", "boundary", "origin"}`, or
the bare label) and `info["trace"]` (the environment's own record of the step).

What a policy may offer so that it can be exported and restored stands here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Protocol, runtime_checkable

from gymnasium.vector import VectorWrapper

__all__ = [
    "DEFAULT_REGIME_ID",
    "SAVED",
    "BindsRegime",
    "DescribesRuns",
    "RestorablePolicy",
    "RestoredByKwargs",
    "ResumesWorlds",
    "SavesState",
    "capability",
    "describe_run",
    "record_from_info",
    "regime_from_info",
    "regime_origin_from_info",
]

DEFAULT_REGIME_ID = "baseline"
"""Label of a run whose environment reports no configuration and that has no provider."""

SAVED = "SAVED"
"""The string that stands for the place of a policy's saved weights in the keywords that restore it."""


@runtime_checkable
class DescribesRuns(Protocol):
    """An environment that says what a run was configured with; the keys are its own business."""

    def describe_run(self) -> Mapping[str, Any]:
        """Provenance, recorded verbatim and interpreted by nobody."""


@runtime_checkable
class BindsRegime(Protocol):
    """An environment that can apply configurations and reports the active one itself."""

    def bind_regime(self, provider: Any) -> None:
        """Take the provider that decides which configuration is active at each step."""


@runtime_checkable
class ResumesWorlds(Protocol):
    """An environment whose world outlives the process, so that a resumed run is attached to it again."""

    def resume_token(self) -> Mapping[str, Any]:
        """Where the world stands, as plain JSON values."""

    def resume(self, token: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """Go on from a token instead of a first reset; returns what `reset` returns."""


@runtime_checkable
class SavesState(Protocol):
    """An environment or a wrapper in this process that can go on exactly where another one stood.

    Each layer speaks for itself alone: a wrapper does not include what it wraps.
    """

    def save_state(self) -> Mapping[str, Any]:
        """Everything that decides what follows: numbers, texts, arrays, tuples, lists and mappings."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `save_state` returned; called on a newly built layer instead of a reset."""


@runtime_checkable
class RestorablePolicy(Protocol):
    """A policy that writes its weights down and reads them back, so that it can be exported.

    Neither file may hold a pickle: a bundle refuses whatever runs code when it is read.
    """

    def save(self, path: str | PathLike[str]) -> None:
        """Write the weights to `path`, as a file or as a folder that is made."""

    def load(self, path: str | PathLike[str]) -> None:
        """Fill this policy, built from the document's keywords, with what `save` wrote."""


@runtime_checkable
class RestoredByKwargs(Protocol):
    """A policy whose factory reads the weights by itself, so that nothing need be built before."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the weights to `path`, as a file or as a folder that is made."""

    def kwargs_to_restore(self, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The keywords with which the factory makes this policy from what `save` wrote.

        Args:
            kwargs: Those the document gives the factory.

        Returns:
            JSON-like values; the string `SAVED` stands for the place of the weights.
        """


def capability(env: Any, name: str) -> Any | None:
    """The attribute `name` of `env` or of any wrapper inside it; None when nobody has it."""
    while isinstance(env, VectorWrapper) and not hasattr(env, name):
        env = env.env  # Gymnasium has no attribute lookup for vector wrappers
    has_attribute = getattr(env, "has_wrapper_attr", None)
    if callable(has_attribute):
        return env.get_wrapper_attr(name) if has_attribute(name) else None
    return getattr(env, name, None)


def describe_run(env: Any) -> Mapping[str, Any]:
    """What `env` reports about the run, or an empty mapping when it reports nothing."""
    describe = capability(env, "describe_run")
    return dict(describe()) if callable(describe) else {}


def regime_from_info(info: Mapping[str, Any]) -> tuple[str, bool]:
    """The configuration label of a step, and whether the step begins a new configuration.

    Args:
        info: The step's `info`. `info["regime"]` may be a mapping, a bare label or absent.

    Returns:
        Label and boundary flag; `DEFAULT_REGIME_ID` and False for whatever is missing.

    Raises:
        ValueError: If the flag is neither true nor false, as an array of several is.
    """
    regime = info.get("regime")
    if isinstance(regime, Mapping):
        label = regime.get("id")
        boundary = regime.get("boundary", False)
        try:
            flagged = bool(boundary)
        except (TypeError, ValueError) as error:
            problem = f"info['regime']['boundary'] is {boundary!r}, which is not true or false"
            raise ValueError(f"{problem}; report True or False, each world its own") from error
        return (DEFAULT_REGIME_ID if label is None else str(label)), flagged
    return (DEFAULT_REGIME_ID if regime is None else str(regime)), False


def regime_origin_from_info(info: Mapping[str, Any]) -> str | None:
    """The configuration that the active one repeats under another label, when it repeats one."""
    regime = info.get("regime")
    origin = regime.get("origin") if isinstance(regime, Mapping) else None
    return None if origin is None else str(origin)


def record_from_info(info: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The environment's own record of the step, or None when the collector has to build one."""
    record = info.get("trace")
    return record if isinstance(record, Mapping) else None
