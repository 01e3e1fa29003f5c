"""A deterministic, discrete-event enterprise: orders come in, are worked on, and turn into money.

Purchase orders arrive as EDI documents. A document that goes through becomes a warehouse order; one
that meets the chaos policy is stuck, and raises a ticket, until the remedy its kind of failure needs
is applied. Allocated orders are picked and packed by a limited number of workers, shipped on request,
then invoiced and paid. Whatever is late, lost or wrong costs money.

Every random draw comes from a stream of its own, keyed by the seed and by what is drawn, so nothing
an agent does changes what would have arrived. `advance` handles events in time order: those of
documents are in `intake`, of the floor in `warehouse`, of money in `billing`. The verbs an agent
reaches through the API are in `desk`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import Any

from skyfall_morpheus.local import billing, intake, warehouse
from skyfall_morpheus.local.billing import INTEREST_MINUTES
from skyfall_morpheus.local.journal import Journal
from skyfall_morpheus.local.ledger import Ledger
from skyfall_morpheus.local.model import (
    COMPANIES,
    PERSONAS,
    PRODUCTS,
    Document,
    Invoice,
    Order,
    Payment,
    Rules,
    Ticket,
)
from skyfall_morpheus.local.shelf import Shelf
from skyfall_morpheus.local.streams import stream

__all__ = ["COMPANIES", "PRODUCTS", "ChaosPolicy", "Simulation"]

ChaosPolicy = dict[str, Any]
"""`enabled`, `probability`, `scenarios`, optional `seed`, as the API takes it."""


class Simulation:
    """One world's state and the passing of its time.

    Args:
        seed: Everything random follows from it.
        rules: The world's numbers.
    """

    def __init__(self, seed: int, rules: Rules | None = None) -> None:
        self.seed = seed
        self.rules = rules or Rules()
        self.now = 0.0
        self.chaos: ChaosPolicy = {"enabled": False, "probability": 0.0, "scenarios": []}
        self.personas: tuple[str, ...] = PERSONAS
        self.edi_interval = self.rules.edi_interval
        self.paused = False
        self.tickets_enabled = True
        self.ledger = Ledger(self.rules.opening_cash, 2 * self.rules.retention)
        self.journal = Journal(self.rules.retention)
        keep = self.rules.retention
        self.documents: Shelf[Document] = Shelf(frozenset({"DELIVERED", "ARCHIVED"}), keep, self._has_work)
        self.orders: Shelf[Order] = Shelf(frozenset({"SHIPPED", "CANCELLED"}), keep, self._has_draft)
        self.invoices: Shelf[Invoice] = Shelf(frozenset({"PAID", "REJECTED"}), keep)
        self.payments: Shelf[Payment] = Shelf(frozenset({"APPLIED"}), keep)
        self.tickets: Shelf[Ticket] = Shelf(frozenset({"resolved", "closed"}), keep)
        self.stock = [self.rules.stock] * len(PRODUCTS)
        self.shipped_on_time = 0
        self.shipped_late = 0
        self.lost = 0
        self.given_up = 0
        self.busy = 0
        self.bills: dict[int, tuple[float, str, int | None]] = {}
        self.restocking: set[int] = set()
        self.events: list[tuple[float, int, str, int]] = []
        self.sequence = 0
        self.arrivals = stream(seed, "arrivals")
        self.contents = stream(seed, "contents")
        self.schedule(intake.gap(self), "arrival", 0)
        self.schedule(INTEREST_MINUTES, "interest", 0)

    def advance(self, minutes: float) -> None:
        """Let time pass, handling every event that falls due in its order."""
        end = self.now + minutes
        while self.events and self.events[0][0] <= end:
            time, _, kind, number = heapq.heappop(self.events)
            self.now = time
            _HANDLERS[kind](self, number)
        self.now = end

    def schedule(self, delay: float, kind: str, number: int) -> None:
        """Have the event `kind` happen to thing `number` after `delay` minutes."""
        self.sequence += 1
        heapq.heappush(self.events, (self.now + delay, self.sequence, kind, number))

    def _has_work(self, document: Document) -> bool:
        """Whether a document's order or ticket still waits for somebody, and will ask what it was about."""
        order, ticket = self.orders.get(document.order), self.tickets.get(document.ticket)
        waiting = order is not None and order.status not in self.orders.finished
        return waiting or (ticket is not None and ticket.status not in self.tickets.finished)

    def _has_draft(self, order: Order) -> bool:
        """Whether an order's invoice is not sent yet, and will ask whether it was a duplicate's."""
        invoice = self.invoices.get(order.invoice)
        return invoice is not None and invoice.status == "DRAFT"

    @property
    def workers(self) -> int:
        """How many workers may work now."""
        return min(self.rules.workers, len(self.personas))

    def audit(
        self, model: str, identifier: str, before: str | None, after: str, why: str | None = None
    ) -> None:
        """Write down a change of status."""
        old = None if before is None else {"status": before}
        self.journal.audit(self.now, (model, identifier), old, {"status": after}, why)

    def move(self, shelf: Shelf[Any], thing: Any, status: str, why: str | None = None) -> None:
        """Give a thing another status and write it down."""
        before = thing.status
        shelf.move(thing, status, self.now)
        model, letter = _MODELS[type(thing)]
        self.audit(model, f"{letter}{thing.number}", before, status, why)

    def log(self, service: str, level: str, message: str, **metadata: Any) -> None:
        """Write a log line."""
        self.journal.log(self.now, (service, level), message, metadata or None)


_MODELS = {
    Document: ("EdiTransaction", "E"),
    Order: ("ERPShipment", "O"),
    Invoice: ("FinanceTransaction", "I"),
    Payment: ("FinanceTransaction", "P"),
    Ticket: ("WorldItsmTicket", "T"),
}

_HANDLERS: Mapping[str, Callable[[Simulation, int], None]] = {
    name.removeprefix("on_"): handler
    for module in (intake, warehouse, billing)
    for name, handler in vars(module).items()
    if name.startswith("on_")
}
