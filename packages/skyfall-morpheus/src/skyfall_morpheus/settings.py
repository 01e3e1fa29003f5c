"""What a document may say about a MORPHEUS environment, checked before anything is built."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from skyfall_core.errors import suggestion
from skyfall_morpheus.client import ClientOptions, MorpheusClient
from skyfall_morpheus.errors import WorldConfigError
from skyfall_morpheus.local.model import Rules

__all__ = ["MorpheusSettings", "Observe", "OnReset", "client_for", "settings_of"]


class Observe(str, Enum):
    """What a policy is shown: `FULL` the state and its text, `TEXT` the text alone, `BRIEF` one line."""

    FULL = "full"
    TEXT = "text"
    BRIEF = "brief"


class OnReset(str, Enum):
    """What a reset does to the world.

    `RESTART` has the server begin it anew under its id, `RECREATE` deletes it and makes another,
    `KEEP` leaves it alone and only begins an episode.
    """

    RESTART = "restart"
    RECREATE = "recreate"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class MorpheusSettings:
    """What a document's `environment.kwargs` may set, next to `base_url`.

    Attributes:
        world_id: A world to attach to; None makes one.
        layout: Template of a world that is made.
        name: Prefix of its name.
        keep_world: Whether a world that was made is left running at the end.
        on_reset: What a reset does to the world; by default `keep` where attached, else `restart`.
        episode_steps: Steps after which an episode is truncated; None for never.
        observe: `full` for the state and its text, `text` for the text alone, `brief` for a line of counts.
        raw_logs: How many of the latest log records come with each observation's `state`.
        axes: Further axes for `bind_regime`, see `skyfall_morpheus.axes`.
        connection: Fields of `ClientOptions`, and `header_variables`: header to the environment variable
            that holds its value, so that no key stands in a document. Not shown.
        rules: Fields of a local world's `Rules`.
    """

    world_id: str | None = None
    layout: str = "process-outbound"
    name: str = "skyfall"
    keep_world: bool = False
    on_reset: OnReset | str | None = None
    episode_steps: int | None = 256
    observe: Observe | str = Observe.FULL
    raw_logs: int = 0
    axes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    rules: Mapping[str, Any] = field(default_factory=dict)


def settings_of(given: Mapping[str, Any]) -> MorpheusSettings:
    """The settings in a document's keywords.

    Raises:
        WorldConfigError: A keyword is unknown, or a value cannot hold.
    """
    known = [one.name for one in fields(MorpheusSettings)]
    for name in given:
        if name not in known:
            raise WorldConfigError(f"{name!r} is no setting; {suggestion(name, [*known, 'base_url'])}")
    settings = MorpheusSettings(**given)
    if settings.on_reset is not None and settings.on_reset not in list(OnReset):
        raise WorldConfigError(f"on_reset: {settings.on_reset!r}: {_names(settings.on_reset, OnReset)}")
    if settings.observe not in list(Observe):
        raise WorldConfigError(f"observe: {settings.observe!r}: {_names(settings.observe, Observe)}")
    if settings.episode_steps is not None and settings.episode_steps < 1:
        raise WorldConfigError(
            f"episode_steps: {settings.episode_steps!r} must be positive, or null for never"
        )
    if not 0 <= settings.raw_logs <= 100:
        raise WorldConfigError(f"raw_logs: {settings.raw_logs!r} is outside 0..100")
    return settings


def _names(given: Any, kind: type[Enum]) -> str:
    return suggestion(str(given), [str(one.value) for one in kind])


def client_for(base_url: str, settings: MorpheusSettings) -> MorpheusClient:
    """A client of the server at `base_url`.

    Raises:
        WorldConfigError: The URL, a `connection` field or a `rules` field cannot be used.
    """
    options = _fields_of(ClientOptions, _with_headers(settings.connection), "connection")
    rules = _fields_of(Rules, settings.rules, "rules")
    return MorpheusClient(base_url, options, rules=rules, sleep=time.sleep)


def _with_headers(connection: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `ClientOptions`, with the headers whose values environment variables hold."""
    given = dict(connection)
    headers = dict(given.pop("headers", None) or {})
    for header, variable in (given.pop("header_variables", None) or {}).items():
        if variable not in os.environ:
            raise WorldConfigError(
                f"connection.header_variables.{header}: the environment variable {variable!r} is not set"
            )
        headers[header] = os.environ[variable]
    return {**given, "headers": headers}


def _fields_of(kind: type[Any], given: Mapping[str, Any], place: str) -> Any:
    known = [one.name for one in fields(kind)]
    for name in given:
        if name not in known:
            raise WorldConfigError(f"{place}.{name}: unknown; {suggestion(name, known)}")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
