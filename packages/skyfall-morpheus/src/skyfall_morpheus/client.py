"""A typed client of the MORPHEUS API that says what happened.

Every 2xx is a success; anything else raises with the real status and body. Reads are repeated after
lost answers, 429 and 5xx, with growing, jittered pauses, because repeating them is safe. Writes are
not, with one exception: creating a world under a fresh name, where a look-up by that name first tells
whether the lost answer had been a yes. Importing this module does no work; closing returns every
connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.calls import RETRIED, Caller, ClientOptions, path_of, typed
from skyfall_morpheus.errors import ProtocolError, ResponseError, TransportError
from skyfall_morpheus.wire import (
    ActResult,
    FinanceSummary,
    LedgerBalance,
    LogRecord,
    TicketRecord,
    Verification,
    WorldRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


__all__ = ["ClientOptions", "MorpheusClient", "path_of"]


class MorpheusClient(Caller):
    """Calls of one server.

    Args:
        base_url: `http(s)://host:port`, `local:` or `local:NAME`.
        options: How to wait and repeat.
        transport: Used instead of opening one for `base_url`.
        rules: The numbers of local worlds, for `local:`.
        sleep: Pauses between tries.
    """

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
                return typed(record, WorldRecord, "POST /world")
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
                yield typed(record, WorldRecord, "GET /world")
            following = data.get("nextCursor")
            if not following or following == cursor or not listed:
                return
            cursor = following

    def get_world(self, world_id: str) -> WorldRecord:
        """One world."""
        return typed(self._data("GET", path_of("world", world_id)), WorldRecord, "GET /world/{w}")

    def update_world(self, world_id: str, **changes: Any) -> WorldRecord:
        """Change a world's settings; repeating is safe, values are absolute."""
        data = self._data("PATCH", path_of("world", world_id), body=changes, repeat=True)
        return typed(data, WorldRecord, "PATCH /world/{w}")

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
        return (typed(item, LogRecord, "GET /{w}/logs") for item in self.items(path, **filters))

    def audit_logs(self, world_id: str, **filters: Any) -> list[dict[str, Any]]:
        """Audit logs; the server has no limit for them, so give `dateStart`."""
        data = self._data("GET", path_of(world_id, "audit-logs"), query=filters)
        if not isinstance(data, list):
            raise ProtocolError("GET /{w}/audit-logs: data is no list")
        return data

    def tickets(self, world_id: str, **filters: Any) -> Iterator[TicketRecord]:
        """Tickets, page by page."""
        path = path_of(world_id, "tickets")
        return (typed(item, TicketRecord, "GET /{w}/tickets") for item in self.items(path, **filters))

    def verify_ticket(self, world_id: str, ticket_id: str) -> Verification:
        """Check a ticket's failure against the world as it is now."""
        path = path_of(world_id, "verification", "verify-ticket")
        found = self.request("POST", path, body={"ticketId": ticket_id}, repeat=True)
        return typed(found, Verification, "POST verify-ticket")

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
        return None if data is None else typed(data, LedgerBalance, "GET /{w}/ledger")

    def increment_ledger(self, world_id: str, **deltas: float) -> None:
        """Add to balances (`cashDelta`, `receivablesDelta`, `payablesDelta`); never repeated."""
        self.request("PATCH", path_of(world_id, "ledger", "increment"), body=deltas)

    def finance_summary(self, world_id: str) -> FinanceSummary:
        """Cash in and out."""
        data = self._data("GET", path_of(world_id, "finance", "summary"))
        return typed(data, FinanceSummary, "GET /{w}/finance/summary")

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
        return typed(data, WorldRecord, "POST /world/restore")
