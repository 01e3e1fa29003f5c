"""What an agent may touch: an allow-list, so that what nobody thought of is denied.

A policy must not write the numbers its reward is computed from, nor see or change the hidden
configuration, nor reach another world. Paths are taken literally: placeholders are filled in here,
and what then is not made of plain segments, under the agent's own world and on the list is refused
without a request being sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ALLOWED", "Call", "DeniedError", "Route", "admit"]


class DeniedError(Exception):
    """An action that may not be carried out; the text says why."""


@dataclass(frozen=True, slots=True)
class Route:
    """One thing an agent may do.

    Attributes:
        method: HTTP method.
        pattern: Segments below the world; `*` stands for an id.
        body: Fields the body may have; None for no body.
        values: Fields that only some values are allowed for.
        query: Query parameters that may be given.
        required: Query parameters that must be, with the values they may have.
    """

    method: str
    pattern: tuple[str, ...]
    body: frozenset[str] | None = None
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    query: frozenset[str] = frozenset()
    required: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """An admitted action, its path complete.

    Attributes:
        route: What it is an instance of.
        path: Path with the world's id.
        ids: What stood for the pattern's `*`.
        query: Checked query parameters.
        body: Checked body, or None.
    """

    route: Route
    path: str
    ids: tuple[str, ...]
    query: dict[str, Any]
    body: dict[str, Any] | None

    @property
    def request(self) -> dict[str, Any]:
        """The body of the act call."""
        request: dict[str, Any] = {"path": self.path, "method": self.route.method}
        if self.query:
            request["query"] = self.query
        if self.body is not None:
            request["body"] = self.body
        return request


def _read(path: str, *query: str, **required: str) -> Route:
    needed = {name: frozenset(values.split()) for name, values in required.items()}
    return Route("GET", tuple(path.split("/")), query=frozenset((*query, *needed)), required=needed)


def _write(route: str, body: str | None = None, **values: str) -> Route:
    method, path = route.split(" ")
    fields = None if body is None else frozenset(body.split())
    allowed = {name: frozenset(known.split()) for name, known in values.items()}
    return Route(method, tuple(path.split("/")), fields, allowed)


_PAGING = ("status", "limit", "cursor")
_DATES = ("dateStart", "dateEnd")

ALLOWED: tuple[Route, ...] = (
    _read("od/schedules/status"),
    _read("edi", *_PAGING, *_DATES, "partnerId", "docType", "direction"),
    _read("edi/*"),
    _read("edi/statistics/invoice", *_DATES),
    _read("wms/operations-dashboard"),
    _read("wms/inventory", "status", "limit", "offset", "search"),
    _read("wms/outbound-orders/metrics", *_DATES),
    _read("wms/outbound-orders/status", *_PAGING, "priority", "customerId"),
    _read("wms/outbound-orders/*"),
    _read("erp/companies", *_PAGING, "search"),
    _read("erp/products", *_PAGING, "searchText"),
    _read("erp/invoices", *_PAGING, *_DATES, "customerId"),
    _read("erp/invoices/*"),
    _read("erp/payments", *_PAGING, *_DATES, "customerId"),
    _read("erp/payments/*"),
    _read("ledger"),
    _read("finance/summary", *_DATES),
    _read("finance/transactions", *_PAGING, *_DATES, "type"),
    _read("tickets", *_PAGING, "priority", "assignedTo"),
    _read("tickets/*"),
    # Logs and audits of the world itself could tell the configuration, so the service must be named.
    _read(
        "logs",
        "level",
        "searchText",
        "limit",
        "cursor",
        *_DATES,
        serviceType="edi erp wms tms tickets finance",
    ),
    _read(
        "audit-logs",
        "documentId",
        *_DATES,
        model="EdiTransaction ERPShipment FinanceTransaction InboundOrder WorldItsmTicket",
    ),
    _write("PATCH edi/*", "payload"),
    _write("POST edi/*/requeue"),
    _write("PATCH edi/*/status", "status errorReason", status="ARCHIVED"),
    _write("PUT wms/outbound-orders/*/lines/*/allocate", "allocatedQuantity allocationDetails"),
    _write("PUT wms/outbound-orders/*/priority", "priority"),
    _write("PUT wms/outbound-orders/*/status", "status statusDate", status="RELEASED SHIPPED CANCELLED"),
    _write("PUT erp/invoices/*", "allowances"),
    _write("PUT erp/invoices/*/status", "status", status="SENT"),
    _write("PUT erp/payments/*/allocations", "allocations"),
    _write("PUT tickets/*", "priority assignedTo resolutionNotes"),
    _write("PATCH tickets/*/status", "status"),
    _write("PATCH tickets/*/work-notes", "workNotes"),
    _write("POST verification/verify-ticket", "ticketId"),
    _write("POST verification/verify-entity", "odId entityId entityType"),
)
"""Everything an agent may do by default. Finance, ledger, chaos, world and schedule writes are absent."""

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}", re.ASCII)
_KEYS = frozenset({"path", "method", "params", "query", "body"})
_SETTLED = frozenset({"resolved", "closed"})
_UNSETTLED = frozenset({"open", "in_progress", "on_hold"})


def admit(
    action: Mapping[str, Any],
    world_id: str,
    verified: frozenset[str] | set[str],
    routes: tuple[Route, ...] = ALLOWED,
) -> Call:
    """The call an action stands for.

    Args:
        action: `path`, `method` (GET), `params`, `query`, `body`.
        world_id: The agent's own world; `:worldId` in a path means it.
        verified: Tickets whose verification has passed; only these may be resolved or closed.
        routes: What is allowed.

    Raises:
        DeniedError: The action is malformed or not allowed.
    """
    unknown = [str(key)[:40] for key in action if key not in _KEYS]
    if unknown:
        raise DeniedError(f"unknown keys: {', '.join(sorted(unknown)[:5])}")
    segments = _segments(action.get("path"), action.get("params") or {}, world_id)
    if segments[0] != world_id:
        raise DeniedError("only paths below the own world are allowed")
    method = action.get("method", "GET")
    route, ids = _match(method, tuple(segments[1:]), routes)
    query = _checked_query(route, action.get("query"))
    body = _checked_body(route, action.get("body"))
    call = Call(route, "/" + "/".join(segments), ids, query, body)
    _check_ticket(call, verified)
    return call


def _segments(path: Any, params: Any, world_id: str) -> list[str]:
    """The path's plain segments, placeholders filled."""
    if not isinstance(path, str) or not path.startswith("/") or len(path) > 512:
        raise DeniedError("path: a path from the root is needed, such as /:worldId/edi")
    if not isinstance(params, Mapping):
        raise DeniedError("params: an object is needed")
    segments = []
    for raw in path[1:].split("/"):
        segment: Any = raw
        if raw.startswith(":"):
            segment = params.get(raw[1:], world_id if raw == ":worldId" else None)
        if not isinstance(segment, str) or not _SEGMENT.fullmatch(segment) or ".." in segment:
            raise DeniedError("path: segments are letters, digits, '_', '-' and '.', and none is empty")
        segments.append(segment)
    return segments


def _match(method: Any, rest: tuple[str, ...], routes: tuple[Route, ...]) -> tuple[Route, tuple[str, ...]]:
    for route in routes:  # literal patterns stand before those with an id in the same place
        if route.method != method or len(route.pattern) != len(rest):
            continue
        if all(part in {"*", given} for part, given in zip(route.pattern, rest, strict=True)):
            pairs = zip(route.pattern, rest, strict=True)
            return route, tuple(given for part, given in pairs if part == "*")
    raise DeniedError("this method and path are not allowed")


def _checked_query(route: Route, query: Any) -> dict[str, Any]:
    if query is None:
        query = {}
    if not isinstance(query, Mapping):
        raise DeniedError("query: an object is needed")
    for key, value in query.items():
        if key not in route.query:
            raise DeniedError(f"query: {str(key)[:40]!r} is not allowed here")
        if isinstance(value, bool) or not isinstance(value, str | int) or len(str(value)) > 200:
            raise DeniedError(f"query: {str(key)[:40]!r} must be a short string or a whole number")
    for key, values in route.required.items():
        if query.get(key) not in values:
            raise DeniedError(f"query: {key!r} must be one of {', '.join(sorted(values))}")
    return dict(query)


def _checked_body(route: Route, body: Any) -> dict[str, Any] | None:
    if route.body is None:
        if body not in (None, {}):
            raise DeniedError("body: none is allowed here")
        return None
    if not isinstance(body, Mapping):
        raise DeniedError(f"body: an object with {', '.join(sorted(route.body))} is needed")
    for key, value in body.items():
        if key not in route.body:
            raise DeniedError(f"body: {str(key)[:40]!r} is not allowed here")
        known = route.values.get(key)
        if known is not None and (not isinstance(value, str) or value not in known):
            raise DeniedError(f"body: {key!r} must be one of {', '.join(sorted(known))}")
    return dict(body)


def _check_ticket(call: Call, verified: frozenset[str] | set[str]) -> None:
    """A ticket may be settled only after its verification has passed."""
    if call.route.pattern != ("tickets", "*", "status"):
        return
    status = (call.body or {}).get("status")
    if isinstance(status, str) and status in _UNSETTLED:
        return
    if not isinstance(status, str) or status not in _SETTLED:
        raise DeniedError(f"body: 'status' must be one of {', '.join(sorted(_SETTLED | _UNSETTLED))}")
    if call.ids[0] not in verified:
        raise DeniedError(f"ticket {call.ids[0]} must pass verification before it is {status}")
