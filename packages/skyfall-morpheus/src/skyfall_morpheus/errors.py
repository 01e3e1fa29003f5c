"""Every error this package raises on purpose.

    skyfall_core.errors.SkyfallError
    ├── InputError
    │   ├── WorldUnreachableError   nobody answers at the base URL: exit 2
    │   └── WorldConfigError        an option that cannot hold, named with its remedy
    └── RunError
        ├── WorldsFailedError       one or more of several worlds raised; indices and causes inside
        └── MorpheusError           a request to the server did not give what was asked
            ├── TransportError      no usable answer: refused, reset, timed out, cut off
            ├── ResponseError       an answer with a status outside 2xx, status and body kept
            └── ProtocolError       a 2xx answer whose body is not what the API promises

Messages hold method, path template and status. They never hold headers, keys or whole bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_core.errors import InputError, RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "MorpheusError",
    "ProtocolError",
    "ResponseError",
    "TransportError",
    "WorldConfigError",
    "WorldUnreachableError",
    "WorldsFailedError",
]


class WorldConfigError(InputError):
    """An option of a world, a server or an adapter that cannot be used as given."""


class WorldUnreachableError(InputError):
    """No server answers at the configured base URL; nothing was run."""


class WorldsFailedError(RunError):
    """Some of several worlds raised; every other world had finished before this was raised.

    Args:
        doing: What the worlds were asked to do (`step`, `reset`, `close`).
        failures: World index to the exception it raised.
        results: What the call would have returned, with the failed worlds marked, so that the work
            of the others is not lost. None where there is nothing to return.
    """

    def __init__(self, doing: str, failures: Mapping[int, Exception], results: Any = None) -> None:
        listing = "; ".join(
            f"world {index}: {type(error).__name__}: {error}" for index, error in sorted(failures.items())
        )
        super().__init__(f"{doing} failed in {len(failures)} world(s): {listing}")
        self.doing = doing
        self.failures = dict(failures)
        self.results = results


class MorpheusError(RunError):
    """A request to a MORPHEUS server that did not give what was asked."""


class TransportError(MorpheusError):
    """No usable answer arrived; whether the server acted on the request is unknown.

    Args:
        method: HTTP method.
        path: Path below the base URL.
        reason: What went wrong, without headers or payload.
        sent: Whether the request may have reached the server.
    """

    def __init__(self, method: str, path: str, reason: str, *, sent: bool = True) -> None:
        super().__init__(f"{method} {path}: no answer ({reason})")
        self.method = method
        self.path = path
        self.sent = sent


class ResponseError(MorpheusError):
    """The server answered with a status outside 2xx.

    Args:
        method: HTTP method.
        path: Path below the base URL.
        status: The real HTTP status.
        message: The server's own explanation, shortened.
        body: The decoded body, or None when it was not JSON.
    """

    def __init__(self, method: str, path: str, status: int, message: str, body: Any = None) -> None:
        super().__init__(f"{method} {path}: HTTP {status}" + (f": {message}" if message else ""))
        self.method = method
        self.path = path
        self.status = status
        self.body = body


class ProtocolError(MorpheusError):
    """A successful answer whose body does not hold what the API promises."""
