"""How a request reaches a server: over HTTP, or straight into a local world in this process.

Both give a status, headers that matter and a body, or raise `TransportError`; what statuses mean is
the client's business.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import msgspec

from skyfall_morpheus.errors import TransportError, WorldConfigError
from skyfall_morpheus.local.api import LocalApi

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from skyfall_morpheus.local.model import Rules

__all__ = ["Answer", "HttpTransport", "LocalTransport", "Transport", "local_server", "open_transport"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: HTTP status.
        body: Decoded JSON, or None when there is none.
        retry_after: Seconds the server asked to wait, if it said so.
        decoded: Whether a body that had to be JSON was.
    """

    status: int
    body: Any
    retry_after: float | None = None
    decoded: bool = True


class Transport(Protocol):
    """One way to a server."""

    def send(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        """One request, one answer.

        Raises:
            TransportError: No usable answer arrived.
        """

    def close(self) -> None:
        """Give connections back."""


class HttpTransport:
    """Requests over the network.

    Args:
        base_url: `http://host:port` or https.
        connect_seconds: How long to wait for a connection.
        read_seconds: How long to wait for each part of an answer.
        headers: Sent with every request; never logged and never part of an error.
    """

    def __init__(
        self,
        base_url: str,
        *,
        connect_seconds: float = 5.0,
        read_seconds: float = 150.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        import httpx  # noqa: PLC0415  # a local world needs no HTTP library

        self._errors = (httpx.TransportError, httpx.InvalidURL)
        self._unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL)
        self._client = httpx.Client(
            base_url=base_url,
            headers={"Accept": "application/json", **(headers or {})},
            timeout=httpx.Timeout(read_seconds, connect=connect_seconds),
            limits=httpx.Limits(max_connections=4, max_keepalive_connections=4),
            follow_redirects=False,
        )

    def send(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        """One request over HTTP."""
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            response = self._client.request(
                method, path, params=dict(query) or None, content=content, headers=headers
            )
        except self._errors as failure:
            sent = not isinstance(failure, self._unsent)
            raise TransportError(method, path, type(failure).__name__, sent=sent) from None
        return _answer(response)

    def close(self) -> None:
        """Close the connection pool."""
        self._client.close()


class LocalTransport:
    """Requests into a `LocalApi` in this process, bodies passed through JSON so that nothing is shared.

    Args:
        api: The worlds to talk to.
    """

    def __init__(self, api: LocalApi) -> None:
        self.api = api

    def send(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        """One call."""
        try:
            sent = None if body is None else msgspec.json.decode(msgspec.json.encode(body))
        except (TypeError, msgspec.MsgspecError, RecursionError) as failure:
            raise TransportError(
                method, path, f"body is no JSON: {type(failure).__name__}", sent=False
            ) from None
        reply = self.api.dispatch(method, path, query, sent)
        return Answer(reply.status, msgspec.json.decode(msgspec.json.encode(reply.body)))

    def close(self) -> None:
        """Nothing to give back."""


_shared: dict[str, LocalApi] = {}
_shared_lock = threading.Lock()


def local_server(name: str, rules: Rules | None = None) -> LocalApi:
    """The in-process server of that name, made on first use; an empty name gives a private one."""
    if not name:
        return LocalApi(rules)
    with _shared_lock:
        return _shared.setdefault(name, LocalApi(rules))


def open_transport(
    base_url: str,
    *,
    connect_seconds: float = 5.0,
    read_seconds: float = 150.0,
    headers: Mapping[str, str] | None = None,
    rules: Rules | None = None,
) -> Transport:
    """The transport a base URL asks for.

    Args:
        base_url: `http(s)://…`, `local:` for a private world in this process, or `local:NAME` for one
            that everybody in this process using the name shares.
        connect_seconds: How long to wait for a connection.
        read_seconds: How long to wait for each part of an answer.
        headers: Sent with every HTTP request.
        rules: The numbers of local worlds.

    Raises:
        WorldConfigError: The URL has another form.
    """
    if base_url.startswith("local:"):
        return LocalTransport(local_server(base_url.removeprefix("local:"), rules))
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise WorldConfigError(
            f"base_url: {_without_secrets(base_url)!r} is no http(s) URL; "
            "use http://host:port, or local: for a world in this process"
        )
    return HttpTransport(
        base_url, connect_seconds=connect_seconds, read_seconds=read_seconds, headers=headers
    )


def _without_secrets(url: str) -> str:
    """A URL without user, password and query."""
    return url.split("?", maxsplit=1)[0].rpartition("@")[2][:200]


def _answer(response: httpx.Response) -> Answer:
    raw = response.content
    try:
        body, decoded = (msgspec.json.decode(raw) if raw.strip() else None), True
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body, decoded = None, False
    asked = response.headers.get("retry-after", "")
    seconds = float(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else None
    return Answer(response.status_code, body, seconds, decoded)
