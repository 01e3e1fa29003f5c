"""Calls of the API below its endpoints: waiting, repeating what is safe to repeat, pages, errors."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from skyfall_morpheus.errors import ProtocolError, ResponseError, TransportError, WorldUnreachableError
from skyfall_morpheus.transport import open_transport
from skyfall_morpheus.wire import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from skyfall_morpheus.local.model import Rules
    from skyfall_morpheus.transport import Answer, Transport

__all__ = ["RETRIED", "Caller", "ClientOptions", "path_of", "typed"]

Result = TypeVar("Result")
RETRIED = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How a client waits and repeats.

    Attributes:
        connect_seconds: How long to wait for a connection.
        read_seconds: How long to wait for each part of an answer.
        attempts: How often a safe request is tried in all.
        pause_seconds: Pause before the second try; doubled each time, then shortened at random by up to half.
        longest_pause_seconds: Upper limit of a pause, a server's Retry-After included.
        headers: Sent with every request; never shown.
    """

    connect_seconds: float = 5.0
    read_seconds: float = 150.0
    attempts: int = 4
    pause_seconds: float = 0.2
    longest_pause_seconds: float = 10.0
    headers: Mapping[str, str] | None = None

    def __repr__(self) -> str:
        names = sorted(self.headers or ())
        return f"ClientOptions(attempts={self.attempts}, headers={names})"


class Caller:
    """What every call of one server has in common.

    Args:
        base_url: `http(s)://host:port`, `local:` or `local:NAME`.
        options: How to wait and repeat.
        transport: Used instead of opening one for `base_url`.
        rules: The numbers of local worlds, for `local:`.
        sleep: Pauses between tries.
    """

    def __init__(
        self,
        base_url: str = "http://localhost:8282",
        options: ClientOptions | None = None,
        *,
        transport: Transport | None = None,
        rules: Rules | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.options = options or ClientOptions()
        self._transport = transport or open_transport(
            base_url,
            connect_seconds=self.options.connect_seconds,
            read_seconds=self.options.read_seconds,
            headers=self.options.headers,
            rules=rules,
        )
        self._sleep = sleep
        self._jitter = Random(0)  # noqa: S311  # pauses only
        self._extensions: frozenset[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give every connection back."""
        self._transport.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        repeat: bool | None = None,
    ) -> Any:
        """The decoded body of a successful answer.

        Args:
            method: HTTP method.
            path: Path below the base URL, segments already quoted (`path_of` does it).
            query: Query parameters; None values are left out.
            body: JSON body, None for none.
            repeat: Whether repeating is safe; by default only for GET.

        Raises:
            ResponseError: The status is outside 2xx.
            TransportError: No usable answer.
            ProtocolError: A 2xx answer that is not JSON.
        """
        answer = self.answer(method, path, query=query, body=body, repeat=repeat)
        if not 200 <= answer.status < 300:
            raise ResponseError(method, path, answer.status, _message(answer), answer.body)
        if not answer.decoded:
            raise ProtocolError(f"{method} {path}: HTTP {answer.status} with a body that is no JSON")
        return answer.body

    def answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        repeat: bool | None = None,
    ) -> Answer:
        """The answer, whatever its status, after the repeats that are safe.

        Raises:
            TransportError: No usable answer.
        """
        words = {key: _word(value) for key, value in (query or {}).items() if value is not None}
        safe = method == "GET" if repeat is None else repeat
        for attempt in range(1, self.options.attempts + 1):
            last = attempt == self.options.attempts
            asked = None
            try:
                answer = self._transport.send(method, path, words, body)
            except TransportError as failure:
                # What never left this machine may always be repeated, writes included.
                if last or (failure.sent and not safe):
                    raise
            else:
                if last or not safe or (answer.decoded and answer.status not in RETRIED):
                    return answer
                asked = answer.retry_after
            self._sleep(self._pause(attempt, asked))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _pause(self, attempt: int, asked: float | None) -> float:
        pause: float = self.options.pause_seconds * 2.0 ** (attempt - 1) * (0.5 + 0.5 * self._jitter.random())
        return min(max(pause, asked or 0.0), self.options.longest_pause_seconds)

    def check_reachable(self) -> None:
        """Make sure somebody answers at the base URL; any status will do.

        Raises:
            WorldUnreachableError: Nobody does.
        """
        try:
            self.answer("GET", "/docs")
        except TransportError as failure:
            raise WorldUnreachableError(
                f"no MORPHEUS server answers: {failure}; check base_url, or use base_url 'local:'"
            ) from None

    def extensions(self) -> frozenset[str]:
        """What the server says it offers beyond the documented API; empty for most."""
        if self._extensions is None:
            answer = self.answer("GET", "/docs")
            names = answer.body.get("extensions") if isinstance(answer.body, dict) else None
            self._extensions = frozenset(map(str, names)) if isinstance(names, list) else frozenset()
        return self._extensions

    def items(self, path: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """Every record of a list, whichever of the two cursor layouts it has."""
        cursor = filters.pop("cursor", None)
        while True:
            page = self.page(path, cursor=cursor, **filters)
            yield from page.items
            if page.cursor is None or page.cursor == cursor or not page.items:
                return
            cursor = page.cursor

    def page(self, path: str, **query: Any) -> Page:
        """One page of a list: `data.items` or `data` with `pagination` beside it."""
        body = self.request("GET", path, query=query)
        data = body.get("data") if isinstance(body, dict) else None
        items: Any
        facts: Any
        if isinstance(data, list):
            items, facts = data, body.get("pagination")
        elif isinstance(data, dict):
            items, facts = data.get("items"), data
        else:
            items, facts = None, None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ProtocolError(f"GET {path}: no list of records in the answer")
        facts = facts if isinstance(facts, dict) else {}
        total = facts.get("totalCount")
        following = facts.get("nextCursor") if facts.get("hasMore", True) else None
        return Page(items, total if isinstance(total, int) else None, following or None)

    def _mapping(self, path: str) -> dict[str, Any]:
        data = self._data("GET", path)
        if not isinstance(data, dict):
            raise ProtocolError(f"GET {path}: data is no object")
        return data

    def _data(self, method: str, path: str, **options: Any) -> Any:
        body = self.request(method, path, **options)
        if not isinstance(body, dict) or "data" not in body:
            raise ProtocolError(f"{method} {path}: the answer has no 'data'")
        return body["data"]


def path_of(*segments: str) -> str:
    """A path of quoted segments; `.`, `..` and empty ones are no segments.

    Raises:
        ValueError: A segment that would lead elsewhere.
    """
    for segment in segments:
        if segment in {"", ".", ".."}:
            raise ValueError(f"path segment {segment!r} leads elsewhere; an id is needed")
    return "/" + "/".join(quote(segment, safe="") for segment in segments)


def _word(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _message(answer: Answer) -> str:
    """The server's explanation, from whichever key holds it."""
    if not answer.decoded:
        return "the body is no JSON"
    if isinstance(answer.body, dict):
        found = answer.body.get("error") or answer.body.get("message") or ""
        return found[:300] if isinstance(found, str) else ""
    return ""


def typed(record: Any, kind: type[Result], where: str) -> Result:
    """A record as its type.

    Raises:
        ProtocolError: It does not have what the type needs.
    """
    try:
        return msgspec.convert(record, kind, strict=False)
    except msgspec.ValidationError as failure:
        raise ProtocolError(f"{where}: {failure}") from None
