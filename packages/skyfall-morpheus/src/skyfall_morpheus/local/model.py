"""The things in a local world, its vocabulary, and the numbers that shape it.

Amounts are dollars, durations and instants are simulated minutes since the world began. The rules and
numbers are this project's own: the real server's inner workings are not public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

__all__ = [
    "COMPANIES",
    "FIXABLE",
    "ORDER_FLOW",
    "PERSONAS",
    "PRIORITIES",
    "PRODUCTS",
    "SCENARIOS",
    "TICKET_STATUSES",
    "WAITING",
    "Document",
    "Invoice",
    "Order",
    "Payment",
    "Rules",
    "Ticket",
]

COMPANIES = ("Arctic Foods", "Bluebird Market", "Cedar Grocers", "Delta Kitchens", "Evergreen Stores")
"""Trading partners, P1 to P5."""

PRODUCTS = tuple((f"SKU-{number:02d}", 8.0 + 3.0 * number) for number in range(1, 21))
"""Product code and unit price, twenty of them."""

FIXABLE = frozenset({"data_corruption", "missing_data", "format_change", "partial_data", "invalid_state"})
"""Failures that last until somebody corrects the document."""

WAITING = frozenset({"stale_data", "rate_limit", "dependency_failure", "timing_issue"})
"""Failures that pass by themselves; trying again too early makes them last longer."""

SCENARIOS = (*sorted(FIXABLE), *sorted(WAITING), "duplicate_data", "permission_denied")
"""Every chaos scenario type the API knows."""

PERSONAS = tuple(f"worker-{number}" for number in range(1, 7))
"""Warehouse workers; those a world allows are the ones that work."""

ORDER_FLOW = ("PENDING", "RELEASED", "ALLOCATED", "PICKING", "PICKED", "PACKED", "SHIPPED", "CANCELLED")
"""Statuses of an outbound order, in the order they are passed."""

TICKET_STATUSES = ("new", "open", "in_progress", "on_hold", "resolved", "closed")


@dataclass(frozen=True, slots=True)
class Rules:
    """The numbers of a world; those a configuration moves are set through the API, not here.

    Attributes:
        tick_minutes: Simulated minutes that pass with one action.
        workers: Workers at most; the world's allowed personas limit them further.
        edi_interval: Mean minutes between two incoming orders.
        order_lead: Minutes from arrival until an order must be shipped.
        order_lifetime: Minutes past its due time after which the customer walks away.
        work_minutes: Shortest and longest time one worker needs to pick and pack an order.
        cost_share: Cost of an order as a share of its value, owed when it is invoiced.
        payment_terms: Shortest and longest time until a sent invoice is paid.
        bill_terms: Minutes until a bill is paid out of cash.
        discount: Share given away for being paid at once.
        late_penalty: Share of an order's value owed each time `penalty_interval` passes while late.
        lost_penalty: Share of an order's value owed when it is lost, cancelled or wrongly archived.
        interest_hourly: Interest on negative cash, a share per hour.
        credit_limit: Negative cash beyond this bears no further interest.
        unmatched_share: Share of payments that arrive without saying what they are for.
        opening_cash: Cash of a new or reset world.
        stock: Opening stock of each product; `restock_at` and `restock_minutes` refill it.
        patience: Minutes after which the office sends a forgotten invoice, matches a payment itself, puts a
            stuck document away that orders nothing, and gives up on a ticket (three times as long).
        retention: Finished things kept of each kind, beyond those that unfinished ones still need; older
            ones leave only their count.
        backlog: Unfinished documents, and open tickets, above which nobody may add more by hand.
    """

    tick_minutes: float = 10.0
    workers: int = len(PERSONAS)
    edi_interval: float = 40.0
    order_lead: float = 480.0
    order_lifetime: float = 720.0
    work_minutes: tuple[float, float] = (30.0, 70.0)
    cost_share: float = 0.6
    payment_terms: tuple[float, float] = (720.0, 1440.0)
    bill_terms: float = 480.0
    discount: float = 0.02
    late_penalty: float = 0.1
    penalty_interval: float = 240.0
    lost_penalty: float = 0.15
    interest_hourly: float = 0.01
    credit_limit: float = 100_000.0
    unmatched_share: float = 0.15
    opening_cash: float = 100_000.0
    stock: int = 120
    restock_at: int = 40
    restock_minutes: float = 360.0
    patience: float = 1440.0
    retention: int = 200
    backlog: int = 1000


@dataclass(slots=True)
class Document:
    """An incoming EDI purchase order."""

    number: int
    partner: int
    product: int
    quantity: int
    value: float
    received: float
    due: float
    doc_type: str = "850"
    inbound: bool = True
    status: str = "RECEIVED"
    failure: str | None = None
    retry_at: float = 0.0
    retry_delay: float = 0.0
    attempts: int = 0
    corrected: bool = False
    payload: Mapping[str, Any] = field(default_factory=dict)
    order: int | None = None
    ticket: int | None = None
    lost: bool = False
    touched: float = 0.0


@dataclass(slots=True)
class Order:
    """An outbound warehouse order, one line each."""

    number: int
    document: int
    partner: int
    product: int
    quantity: int
    value: float
    created: float
    due: float
    duplicate: bool
    status: str = "PENDING"
    priority: str = "NORMAL"
    allocated: int = 0
    late: bool = False
    invoice: int | None = None
    touched: float = 0.0


@dataclass(slots=True)
class Invoice:
    """What a customer owes for a shipped order."""

    number: int
    order: int
    partner: int
    amount: float
    cost: float
    issued: float
    status: str = "DRAFT"
    balance: float = 0.0
    discounted: bool = False
    touched: float = 0.0


@dataclass(slots=True)
class Payment:
    """Money a customer sent."""

    number: int
    invoice: int
    partner: int
    amount: float
    received: float
    status: str = "RECEIVED"
    touched: float = 0.0


@dataclass(slots=True)
class Ticket:
    """An ITSM ticket; one raised by a failed document names it."""

    number: int
    title: str
    description: str
    requester: str
    created: float
    status: str = "new"
    priority: str = "medium"
    kind: str = "incident"
    document: int | None = None
    failure: str | None = None
    assigned: str | None = None
    resolution: str | None = None
    category: str | None = None
    notes: list[dict[str, Any]] = field(default_factory=list)
    settled: bool = False
    verified: bool = False
    touched: float = 0.0


PRIORITIES = MappingProxyType({"LOW": 0, "NORMAL": 1, "HIGH": 2, "URGENT": 3})
"""Rank of an order's priority; workers take the highest first."""
