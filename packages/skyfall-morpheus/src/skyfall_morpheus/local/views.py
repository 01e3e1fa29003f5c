"""A world's things in the shape the API shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local.simulation import COMPANIES, PRODUCTS

if TYPE_CHECKING:
    from skyfall_morpheus.local.journal import AuditEntry, LogEntry
    from skyfall_morpheus.local.ledger import Entry, Ledger
    from skyfall_morpheus.local.model import Document, Invoice, Order, Payment, Ticket
    from skyfall_morpheus.local.simulation import Simulation

__all__ = [
    "EPOCH",
    "audit",
    "brief_document",
    "brief_invoice",
    "brief_order",
    "brief_ticket",
    "company",
    "dashboard",
    "document",
    "fulfillment",
    "invoice",
    "ledger",
    "log",
    "order",
    "payment",
    "product",
    "stamp",
    "ticket",
    "transaction",
]

EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
"""When every local world begins."""


@lru_cache(maxsize=1024)
def _day(days: int) -> str:
    return (EPOCH + timedelta(days=days)).strftime("%Y-%m-%d")


@lru_cache(maxsize=4096)
def stamp(minutes: float) -> str:
    """An instant as ISO-8601 with milliseconds and `Z`."""
    days, rest = divmod(round(minutes * 60_000), 86_400_000)
    seconds, thousandths = divmod(rest, 1000)
    whole_minutes, second = divmod(seconds, 60)
    hour, minute = divmod(whole_minutes, 60)
    return f"{_day(days)}T{hour:02d}:{minute:02d}:{second:02d}.{thousandths:03d}Z"


def document(one: Document) -> dict[str, Any]:
    """An EDI transaction."""
    shown: dict[str, Any] = {
        "_id": f"E{one.number}",
        "transactionId": f"E{one.number}",
        "partnerId": f"P{one.partner + 1}",
        "docType": one.doc_type,
        "direction": "IN" if one.inbound else "OUT",
        "status": one.status,
        "totalAmount": one.value,
        "dueDate": stamp(one.due),
        "createdAt": stamp(one.received),
        "updatedAt": stamp(one.touched),
        "payload": dict(one.payload),
        "orderId": None if one.order is None else f"O{one.order}",
    }
    if one.status == "ERRORED":
        shown["errorReason"] = one.failure
        shown["errorDetails"] = {
            "retryAfter": stamp(one.retry_at) if one.retry_at else None,
            "corrected": one.corrected,
            "attempts": one.attempts,
            "ticketId": None if one.ticket is None else f"T{one.ticket}",
        }
    return shown


def order(one: Order) -> dict[str, Any]:
    """A WMS outbound order."""
    return {
        "_id": f"O{one.number}",
        "orderId": f"O{one.number}",
        "orderNumber": f"SO-{one.number:05d}",
        "warehouseId": "W1",
        "customerId": f"P{one.partner + 1}",
        "customerName": COMPANIES[one.partner],
        "orderStatus": one.status,
        "orderPriority": one.priority,
        "orderType": "STANDARD",
        "totalAmount": one.value,
        "late": one.late,
        "dates": {"orderDate": stamp(one.created), "requiredShipDate": stamp(one.due)},
        "lines": [
            {
                "lineId": "1",
                "lineNumber": 1,
                "sku": PRODUCTS[one.product][0],
                "orderedQuantity": one.quantity,
                "allocatedQuantity": one.allocated,
            }
        ],
        "sourceTransactionId": f"E{one.document}",
        "createdAt": stamp(one.created),
        "updatedAt": stamp(one.touched),
    }


def invoice(one: Invoice) -> dict[str, Any]:
    """An ERP invoice."""
    return {
        "_id": f"I{one.number}",
        "invoiceId": f"I{one.number}",
        "customerId": f"P{one.partner + 1}",
        "orderId": f"O{one.order}",
        "status": one.status,
        "issueDate": stamp(one.issued),
        "totalAmount": one.amount,
        "balanceDue": one.balance,
        "allowances": [{"type": "early-payment"}] if one.discounted else [],
        "createdAt": stamp(one.issued),
        "updatedAt": stamp(one.touched),
    }


def payment(one: Payment) -> dict[str, Any]:
    """An ERP payment."""
    return {
        "_id": f"P{one.number}",
        "paymentId": f"P{one.number}",
        "customerId": f"P{one.partner + 1}",
        "status": one.status,
        "paymentDate": stamp(one.received),
        "totalAmount": one.amount,
        "referenceNumbers": [f"I{one.invoice}"],
        "createdAt": stamp(one.received),
        "updatedAt": stamp(one.touched),
    }


def ticket(world_id: str, one: Ticket) -> dict[str, Any]:
    """An ITSM ticket."""
    shown: dict[str, Any] = {
        "_id": f"T{one.number}",
        "worldRef": {"worldId": world_id},
        "title": one.title,
        "description": one.description,
        "requester": one.requester,
        "status": one.status,
        "priority": one.priority,
        "impact": "medium",
        "urgency": "high" if one.priority in {"high", "critical"} else "medium",
        "type": one.kind,
        "createdAt": stamp(one.created),
        "updatedAt": stamp(one.touched),
        "attachments": [],
        "workNotes": list(one.notes),
        "metadata": {},
    }
    optional = {"assignedTo": one.assigned, "resolutionNotes": one.resolution, "category": one.category}
    shown.update({key: value for key, value in optional.items() if value is not None})
    if one.document is not None:
        shown["metadata"] = {
            "odId": "od-inbound-edi",
            "odName": "Inbound EDI",
            "runId": f"run-E{one.document}",
            "failedStepId": "translate",
            "failureType": one.failure,
            "contextSnapshots": [{"transactionId": f"E{one.document}"}],
        }
    return shown


def brief_document(one: Document) -> dict[str, Any]:
    """The part of `document` that a stuck one's overview shows."""
    return {
        "_id": f"E{one.number}",
        "totalAmount": one.value,
        "errorReason": one.failure,
        "errorDetails": {
            "retryAfter": stamp(one.retry_at) if one.retry_at else None,
            "corrected": one.corrected,
            "ticketId": None if one.ticket is None else f"T{one.ticket}",
        },
    }


def brief_order(one: Order) -> dict[str, Any]:
    """The part of `order` that an overview shows."""
    return {
        "orderId": f"O{one.number}",
        "totalAmount": one.value,
        "orderPriority": one.priority,
        "dates": {"requiredShipDate": stamp(one.due)},
        "lines": [{"orderedQuantity": one.quantity, "allocatedQuantity": one.allocated}],
        "sourceTransactionId": f"E{one.document}",
    }


def brief_invoice(one: Invoice) -> dict[str, Any]:
    """The part of `invoice` that an overview shows."""
    shown: dict[str, Any] = {"invoiceId": f"I{one.number}", "totalAmount": one.amount}
    if one.discounted:
        shown["allowances"] = [{"type": "early-payment"}]
    return shown


def brief_ticket(one: Ticket) -> dict[str, Any]:
    """The part of `ticket` that an overview shows."""
    shown: dict[str, Any] = {"_id": f"T{one.number}", "status": one.status}
    if one.assigned is not None:
        shown["assignedTo"] = one.assigned
    if one.document is not None:
        snapshots = [{"transactionId": f"E{one.document}"}]
        shown["metadata"] = {"failureType": one.failure, "contextSnapshots": snapshots}
    return shown


def log(world_id: str, one: LogEntry) -> dict[str, Any]:
    """A world log record."""
    shown: dict[str, Any] = {
        "_id": f"L{one.number}",
        "worldRef": {"worldId": world_id},
        "logId": f"L{one.number}",
        "timestamp": stamp(one.time),
        "serviceType": one.service,
        "level": one.level,
        "msg": one.message,
    }
    if one.metadata:
        shown["metadata"] = dict(one.metadata)
    return shown


def audit(one: AuditEntry) -> dict[str, Any]:
    """An audit log record."""
    shown: dict[str, Any] = {
        "_id": f"A{one.number}",
        "model": one.model,
        "documentId": one.document_id,
        "before": one.before,
        "after": one.after,
        "createdAt": stamp(one.time),
        "updatedAt": stamp(one.time),
    }
    if one.reason:
        shown["reason"] = one.reason
    return shown


def ledger(world_id: str, books: Ledger) -> dict[str, Any]:
    """The company's ledger, rounded to cents."""
    return {
        "_id": f"ledger-{world_id}",
        "worldRef": {"worldId": world_id},
        "cash": round(books.cash, 2),
        "totalReceivables": round(books.receivables, 2),
        "totalPayables": round(books.payables, 2),
        "netPosition": round(books.net, 2),
    }


def transaction(one: Entry) -> dict[str, Any]:
    """A finance transaction: a booking that moved cash."""
    return {
        "_id": f"F{one.number}",
        "transactionId": f"F{one.number}",
        "type": "payment_in" if one.cash > 0 else "payment_out",
        "amount": round(abs(one.cash), 2),
        "sourceType": one.source_type,
        "sourceId": one.source_id,
        "partnerId": None if one.partner is None else f"P{one.partner + 1}",
        "createdAt": stamp(one.time),
        "metadata": {},
    }


def company(index: int | None) -> dict[str, Any]:
    """A trading partner, or the own company for None."""
    own = index is None
    return {
        "_id": "MPC" if index is None else f"P{index + 1}",
        "companyId": "MPC" if index is None else f"P{index + 1}",
        "name": "Skyfoods" if index is None else COMPANIES[index],
        "isMpcCompany": own,
        "status": "ACTIVE",
        "currency": "USD",
    }


def product(index: int, world: Simulation) -> dict[str, Any]:
    """A product and what is on hand of it."""
    sku, price = PRODUCTS[index]
    return {"_id": sku, "productId": sku, "name": sku, "price": price, "quantityOnHand": world.stock[index]}


def fulfillment(world: Simulation) -> dict[str, int]:
    """How many outbound orders are where."""
    orders = world.orders
    held = orders.by_status
    shipped = orders.count("SHIPPED")
    total = orders.total()
    names = ("released", "allocated", "picking", "picked", "packed")
    return {
        "total": total,
        "active": total - shipped - orders.count("CANCELLED"),
        "created": len(held.get("PENDING", ())),
        **{name: len(held.get(name.upper(), ())) for name in names},
        "packing": 0,
        "shipped": shipped,
        "rushOrders": sum(one.priority == "URGENT" for one in orders.of("PENDING", "ALLOCATED")),
    }


def dashboard(world: Simulation) -> dict[str, Any]:
    """The WMS operations dashboard."""
    count = world.orders.count
    receiving = ("total", "pending", "expected", "inTransit", "receiving", "received", "dueToday")
    return {
        "inventory": {
            "totalItems": sum(world.stock),
            "byStatus": {"AVAILABLE": sum(world.stock)},
            "lowStockAlerts": sum(level <= world.rules.restock_at for level in world.stock),
            "expiringAlerts": 0,
        },
        "receiving": dict.fromkeys(receiving, 0),
        "fulfillment": fulfillment(world),
        "tasks": {
            "total": world.busy + count("ALLOCATED"),
            "pending": count("ALLOCATED"),
            "inProgress": world.busy,
            "completedToday": count("PACKED", "SHIPPED"),
            "byType": {"PICK": count("PICKING"), "PACK": count("PICKED")},
        },
    }
