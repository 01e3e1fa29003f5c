"""What a policy sees: a compact, size-bounded view of a world, as a mapping and as text.

`gather` reads the world through the documented routes, or through the overview extension where the
server offers it; both give the same mapping. `compact` turns it into the observation's `state`, whose
keys are always the same and whose lists are short; `render` into a few lines of text.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from skyfall_morpheus.client import path_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from skyfall_morpheus.client import MorpheusClient

__all__ = ["ERRORS_SHOWN", "ITEMS_SHOWN", "TEXT_LIMIT", "compact", "gather", "render"]

ITEMS_SHOWN = 8
"""Entries of a list in the observation, the oldest."""

ERRORS_SHOWN = 3
"""Error messages in the observation, the latest."""

TEXT_LIMIT = 400
"""Characters a text observation has at most, all of them ASCII: a byte-level tokenizer's token each."""

_LISTS = (
    ("edi", "ERRORED", ("edi",)),
    ("orders", "PENDING", ("wms", "outbound-orders", "status")),
    ("orders", "ALLOCATED", ("wms", "outbound-orders", "status")),
    ("orders", "PACKED", ("wms", "outbound-orders", "status")),
    ("invoices", "DRAFT", ("erp", "invoices")),
    ("invoices", "SENT", ("erp", "invoices")),
    ("payments", "UNMATCHED", ("erp", "payments")),
    ("tickets", "new", ("tickets",)),
    ("tickets", "open", ("tickets",)),
    ("tickets", "in_progress", ("tickets",)),
    ("tickets", "closed", ("tickets",)),
)


def gather(client: MorpheusClient, world_id: str) -> dict[str, Any]:
    """Everything `compact` needs, in one call where the server offers it, else in about sixteen.

    Raises:
        MorpheusError: The server did not answer as the API promises.
    """
    if "overview" in client.extensions():
        return client.overview(world_id)
    ledger = client.request("GET", path_of(world_id, "ledger"))["data"]
    metrics = client.request("GET", path_of(world_id, "wms", "outbound-orders", "metrics"))["data"]
    found: dict[str, Any] = {
        "time": client.get_world(world_id).updated_at,
        "ledger": ledger,
        "metrics": metrics,
        "fulfillment": client.dashboard(world_id).get("fulfillment") or {},
    }
    for part, status, route in _LISTS:
        limit = 1 if status == "closed" else ITEMS_SHOWN
        page = client.page(path_of(world_id, *route), status=status, limit=limit)
        items = [] if status == "closed" else page.items
        total = len(page.items) if page.total is None else page.total
        found.setdefault(part, {})[status] = {"items": items, "totalCount": total}
    errors = client.page(path_of(world_id, "logs"), level="error", limit=ERRORS_SHOWN)
    found["errors"] = errors.items
    return found


def compact(
    overview: Mapping[str, Any], last: Mapping[str, Any], verified: Collection[str] = ()
) -> dict[str, Any]:
    """The observation's `state`.

    Args:
        overview: What `gather` returned.
        last: What became of the latest action.
        verified: Tickets that have passed verification.

    Returns:
        Plain JSON values under fixed keys; lists of at most `ITEMS_SHOWN` entries.
    """
    ledger = overview.get("ledger") or {}
    fulfillment = overview.get("fulfillment") or {}
    now = _minutes(overview.get("time"))
    errored = overview["edi"]["ERRORED"]
    orders, invoices, tickets = overview["orders"], overview["invoices"], overview["tickets"]
    unfinished = [item for status in ("new", "open", "in_progress") for item in tickets[status]["items"]]
    return {
        "time": overview.get("time") or "",
        "ledger": {
            "cash": _amount(ledger.get("cash")),
            "receivables": _amount(ledger.get("totalReceivables")),
            "payables": _amount(ledger.get("totalPayables")),
            "net": _amount(ledger.get("netPosition")),
        },
        "edi": {
            "errored": errored["totalCount"],
            "items": [_document(item, now) for item in errored["items"]],
        },
        "orders": {
            "pending": orders["PENDING"]["totalCount"],
            "allocated": orders["ALLOCATED"]["totalCount"],
            "working": int(fulfillment.get("picking") or 0) + int(fulfillment.get("picked") or 0),
            "packed": orders["PACKED"]["totalCount"],
            "shipped": int(fulfillment.get("shipped") or 0),
            "to_allocate": [_order(item, now) for item in orders["PENDING"]["items"]],
            "to_pick": [_order(item, now) for item in orders["ALLOCATED"]["items"]],
            "to_ship": [_order(item, now) for item in orders["PACKED"]["items"]],
        },
        "invoices": {
            "draft": invoices["DRAFT"]["totalCount"],
            "sent": invoices["SENT"]["totalCount"],
            "to_send": [_invoice(item) for item in invoices["DRAFT"]["items"]],
            "to_collect": [
                _invoice(item) for item in invoices["SENT"]["items"] if not item.get("allowances")
            ],
        },
        "payments": {
            "unmatched": overview["payments"]["UNMATCHED"]["totalCount"],
            "items": [_payment(item) for item in overview["payments"]["UNMATCHED"]["items"]],
        },
        "tickets": {
            "open": sum(tickets[status]["totalCount"] for status in ("new", "open", "in_progress")),
            "closed": tickets["closed"]["totalCount"],
            "items": [_ticket(item, verified) for item in unfinished[:ITEMS_SHOWN]],
        },
        "errors": [str(item.get("msg", ""))[:120] for item in overview["errors"][:ERRORS_SHOWN]],
        "last": dict(last),
    }


def render(state: Mapping[str, Any]) -> str:
    """The state in nine short ASCII lines, of each list the first two, at most `TEXT_LIMIT` characters."""
    ledger, orders, invoices = state["ledger"], state["orders"], state["invoices"]
    last, payments = state["last"], state["payments"]
    stuck = (f"{one['id']} {one['failure']}{_readiness(one)}" for one in state["edi"]["items"])
    drafts = (one["id"] for one in invoices["to_send"])
    tickets = (
        f"{one['id']} {'verified' if one['verified'] else one['document']}"
        for one in state["tickets"]["items"]
    )
    lines = (
        f"cash {_short_amount(ledger['cash'])} net {_short_amount(ledger['net'])}",
        f"stuck {state['edi']['errored']} {_few(stuck)}",
        f"allocate {orders['pending']} {_few(map(_short, orders['to_allocate']))}",
        f"queued {orders['allocated']} working {orders['working']}",
        f"ship {orders['packed']} {_few(map(_short, orders['to_ship']))}",
        f"invoice {invoices['draft']} {_few(drafts)}",
        f"unpaid {invoices['sent']} unmatched {payments['unmatched']}",
        f"tickets {state['tickets']['open']} {_few(tickets)}",
        f"last {last['tool']} {last['status']} {last['error'][:60]}".rstrip(),
    )
    text = "\n".join(lines).encode("ascii", "replace").decode()
    return text[:TEXT_LIMIT]


def _document(item: Mapping[str, Any], now: float) -> dict[str, Any]:
    details = item.get("errorDetails") or {}
    retry = details.get("retryAfter")
    return {
        "id": str(item.get("_id", "")),
        "failure": str(item.get("errorReason") or "unknown"),
        "value": _amount(item.get("totalAmount")),
        "corrected": details.get("corrected") is True,
        "wait": max(0, round(_minutes(retry) - now)) if retry else 0,
        "ticket": str(details.get("ticketId") or ""),
    }


def _order(item: Mapping[str, Any], now: float) -> dict[str, Any]:
    due = (item.get("dates") or {}).get("requiredShipDate")
    line = (item.get("lines") or [{}])[0]
    ordered, allocated = line.get("orderedQuantity") or 0, line.get("allocatedQuantity") or 0
    return {
        "id": str(item.get("orderId") or item.get("_id", "")),
        "value": _amount(item.get("totalAmount")),
        "due": round(_minutes(due) - now) if due else 0,
        "quantity": int(ordered) - int(allocated),
        "priority": str(item.get("orderPriority") or "NORMAL"),
        "source": str(item.get("sourceTransactionId") or ""),
    }


def _invoice(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": str(item.get("invoiceId") or item.get("_id", "")),
        "value": _amount(item.get("totalAmount")),
    }


def _payment(item: Mapping[str, Any]) -> dict[str, Any]:
    references = item.get("referenceNumbers") or [""]
    return {
        "id": str(item.get("paymentId") or item.get("_id", "")),
        "value": _amount(item.get("totalAmount")),
        "invoice": str(references[0]),
    }


def _ticket(item: Mapping[str, Any], verified: Collection[str]) -> dict[str, Any]:
    metadata = item.get("metadata") or {}
    snapshots = metadata.get("contextSnapshots") or [{}]
    return {
        "id": str(item.get("_id", "")),
        "status": str(item.get("status", "")),
        "failure": str(metadata.get("failureType") or ""),
        "document": str((snapshots[0] or {}).get("transactionId") or ""),
        "assigned": item.get("assignedTo") is not None,
        "verified": str(item.get("_id", "")) in verified,
    }


def _readiness(one: Mapping[str, Any]) -> str:
    if one["corrected"]:
        return " fixed"
    return f" {one['wait']}m" if one["wait"] else ""


def _short(one: Mapping[str, Any]) -> str:
    return f"{one['id']} ${one['value']:.0f} {one['due'] // 60}h"


def _short_amount(value: float) -> str:
    return f"{value / 1000:.1f}k"


def _few(texts: Iterable[str], most: int = 2) -> str:
    return ", ".join(islice(texts, most)) or "-"


def _amount(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


@lru_cache(maxsize=4096)
def _minutes(stamp: str | None) -> float:
    """An ISO-8601 instant in minutes; 0 for none or one that cannot be read."""
    try:
        return datetime.fromisoformat(stamp or "").timestamp() / 60.0
    except ValueError:
        return 0.0
