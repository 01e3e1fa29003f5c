"""A typed client of the MORPHEUS API that says what happened.

Every 2xx is a success; anything else raises with the real status and body. Reads are repeated after
lost answers, 429 and 5xx, with growing, jittered pauses, because repeating them is safe. Writes are
not, with one exception: creating a world under a fresh name, where a look-up by that name first tells
whether the lost answer had been a yes. Importing this module does no work; closing returns every
connection.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from skyfall_morpheus.errors import ProtocolError, ResponseError, TransportError, WorldUnreachableError
from skyfall_morpheus.transport import open_transport
from skyfall_morpheus.wire import (
    ActResult,
    FinanceSummary,
    LedgerBalance,
    LogRecord,
    Page,
    TicketRecord,
    Verification,
    WorldRecord,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from skyfall_morpheus.local.model import Rules
    from skyfall_morpheus.transport import Answer, Transport

__all__ = ["ClientOptions", "MorpheusClient", "path_of"]

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


class MorpheusClient:
    """Calls of one server.

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

    def create_world(self, name: str, layout: str, **settings: Any) -> WorldRecord:
        """Make a world under a fresh name; a lost answer leaves no second one and no orphan.

        Args:
            name: A name nobody has used; that makes looking it up conclusive.
            layout: Template id.
            settings: Further fields of the create body, None left out.

        Raises:
            ResponseError: The server refused.
            TransportError: No answer, and the world is not there.
        """
        body = {"name": name, "layout": layout}
        body.update({key: value for key, value in settings.items() if value is not None})
        for attempt in range(1, self.options.attempts + 1):
            try:
                answer = self.request("POST", "/world", body=body)
            except (TransportError, ResponseError, ProtocolError) as failure:
                if isinstance(failure, ResponseError) and failure.status not in RETRIED:
                    raise
                # The answer was lost, which says nothing about the world: ask for it by its name.
                found = self.find_world(name)
                if found is not None:
                    return found
                if attempt == self.options.attempts:
                    raise
                self._sleep(self._pause(attempt, None))
            else:
                record = answer.get("world") if isinstance(answer, dict) else None
                return _typed(record, WorldRecord, "POST /world")
        raise AssertionError("unreachable: the last attempt returns or raises")

    def find_world(self, name: str) -> WorldRecord | None:
        """The world of exactly this name, or None."""
        return next((world for world in self.worlds(search=name) if world.name == name), None)

    def worlds(self, search: str | None = None) -> Iterator[WorldRecord]:
        """Every world, page by page."""
        cursor: str | None = None
        while True:
            data = self._data("GET", "/world", query={"search": search, "cursor": cursor, "limit": 20})
            listed = data.get("worlds") if isinstance(data, dict) else None
            if not isinstance(listed, list):
                raise ProtocolError("GET /world: data.worlds is no list")
            for record in listed:
                yield _typed(record, WorldRecord, "GET /world")
            following = data.get("nextCursor")
            if not following or following == cursor or not listed:
                return
            cursor = following

    def get_world(self, world_id: str) -> WorldRecord:
        """One world."""
        return _typed(self._data("GET", path_of("world", world_id)), WorldRecord, "GET /world/{w}")

    def update_world(self, world_id: str, **changes: Any) -> WorldRecord:
        """Change a world's settings; repeating is safe, values are absolute."""
        data = self._data("PATCH", path_of("world", world_id), body=changes, repeat=True)
        return _typed(data, WorldRecord, "PATCH /world/{w}")

    def reset_world(self, world_id: str) -> None:
        """Begin a world anew under its id."""
        self.request("POST", path_of("world", world_id, "reset"))

    def delete_world(self, world_id: str) -> bool:
        """End a world; False when it was gone already. Repeating is safe for the same reason."""
        try:
            self.request("DELETE", path_of("world", world_id), repeat=True)
        except ResponseError as failure:
            if failure.status in {404, 410}:
                return False
            raise
        return True

    def act(self, action: Mapping[str, Any]) -> ActResult:
        """Carry an action out; never repeated, since time passes with it.

        Args:
            action: `path`, `method`, optional `params`, `query`, `body`.

        Returns:
            The inner status and body; a refusal is a result, not an exception.

        Raises:
            TransportError: No usable answer.
            ProtocolError: An answer that is not JSON.
        """
        answer = self.answer("POST", "/world/act", body=dict(action))
        if not answer.decoded:
            raise ProtocolError(f"POST /world/act: HTTP {answer.status} with a body that is no JSON")
        status = answer.status
        if status == 200 and isinstance(answer.body, dict):
            inner = answer.body.get("status")
            if isinstance(inner, int) and not isinstance(inner, bool) and 100 <= inner <= 599:
                status = inner
            elif answer.body.get("success") is False:
                status = 400
        return ActResult(status, answer.body)

    def step(self, world_id: str, action: Mapping[str, Any]) -> tuple[ActResult, dict[str, Any]]:
        """`act` and `overview` in one call, where `extensions` names `step`; never repeated.

        Raises:
            MorpheusError: No usable answer.
        """
        path = path_of(world_id, "step")
        data = self._data("POST", path, body=dict(action))
        found = data if isinstance(data, dict) else {}
        if not isinstance(found.get("status"), int) or not isinstance(found.get("overview"), dict):
            raise ProtocolError(f"POST {path}: data holds no status and overview")
        return ActResult(found["status"], found.get("body")), found["overview"]

    def logs(self, world_id: str, **filters: Any) -> Iterator[LogRecord]:
        """Service logs, page by page."""
        path = path_of(world_id, "logs")
        return (_typed(item, LogRecord, "GET /{w}/logs") for item in self.items(path, **filters))

    def audit_logs(self, world_id: str, **filters: Any) -> list[dict[str, Any]]:
        """Audit logs; the server has no limit for them, so give `dateStart`."""
        data = self._data("GET", path_of(world_id, "audit-logs"), query=filters)
        if not isinstance(data, list):
            raise ProtocolError("GET /{w}/audit-logs: data is no list")
        return data

    def tickets(self, world_id: str, **filters: Any) -> Iterator[TicketRecord]:
        """Tickets, page by page."""
        path = path_of(world_id, "tickets")
        return (_typed(item, TicketRecord, "GET /{w}/tickets") for item in self.items(path, **filters))

    def verify_ticket(self, world_id: str, ticket_id: str) -> Verification:
        """Check a ticket's failure against the world as it is now."""
        path = path_of(world_id, "verification", "verify-ticket")
        found = self.request("POST", path, body={"ticketId": ticket_id}, repeat=True)
        return _typed(found, Verification, "POST verify-ticket")

    def set_chaos(self, world_id: str, policy: Mapping[str, Any]) -> None:
        """Replace a world's chaos policy."""
        self.request("PUT", path_of("world", world_id, "chaos"), body=dict(policy), repeat=True)

    def clear_chaos(self, world_id: str) -> None:
        """Switch chaos off."""
        self.request("DELETE", path_of("world", world_id, "chaos"), repeat=True)

    def ledger(self, world_id: str) -> LedgerBalance | None:
        """The balances, or None before there is a ledger."""
        try:
            data = self._data("GET", path_of(world_id, "ledger"))
        except ResponseError as failure:
            if failure.status == 404:
                return None
            raise
        return None if data is None else _typed(data, LedgerBalance, "GET /{w}/ledger")

    def increment_ledger(self, world_id: str, **deltas: float) -> None:
        """Add to balances (`cashDelta`, `receivablesDelta`, `payablesDelta`); never repeated."""
        self.request("PATCH", path_of(world_id, "ledger", "increment"), body=deltas)

    def finance_summary(self, world_id: str) -> FinanceSummary:
        """Cash in and out."""
        data = self._data("GET", path_of(world_id, "finance", "summary"))
        return _typed(data, FinanceSummary, "GET /{w}/finance/summary")

    def dashboard(self, world_id: str) -> dict[str, Any]:
        """The warehouse's operations dashboard."""
        return self._mapping(path_of(world_id, "wms", "operations-dashboard"))

    def overview(self, world_id: str) -> dict[str, Any]:
        """The overview extension, where `extensions` names it."""
        return self._mapping(path_of(world_id, "overview"))

    def snapshot(self, world_id: str) -> dict[str, Any]:
        """A world's whole state, where `extensions` names `snapshot`."""
        return self._mapping(path_of(world_id, "snapshot"))

    def restore_world(self, snapshot: Mapping[str, Any]) -> WorldRecord:
        """Have a world go on from its snapshot, whether it is still there or not; repeating is safe."""
        data = self._data("POST", path_of("world", "restore"), body=dict(snapshot), repeat=True)
        return _typed(data, WorldRecord, "POST /world/restore")

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


def _typed(record: Any, kind: type[Result], where: str) -> Result:
    try:
        return msgspec.convert(record, kind, strict=False)
    except msgspec.ValidationError as failure:
        raise ProtocolError(f"{where}: {failure}") from None
