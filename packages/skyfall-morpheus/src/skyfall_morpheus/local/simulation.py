"""A deterministic, discrete-event enterprise: orders come in, are worked on, and turn into money.

Purchase orders arrive as EDI documents. A document that goes through becomes a warehouse order; one
that meets the chaos policy is stuck, and raises a ticket, until the remedy its kind of failure needs
is applied. Allocated orders are picked and packed by a limited number of workers, shipped on request,
then invoiced and paid. Whatever is late, lost or wrong costs money.

Every random draw comes from a stream of its own, keyed by the seed and by what is drawn, so nothing
an agent does changes what would have arrived. `advance` handles events in time order; the verbs an
agent reaches through the API are in `desk`.
"""

from __future__ import annotations

import heapq
from random import Random
from typing import Any

from skyfall_morpheus.local.journal import Journal
from skyfall_morpheus.local.ledger import Ledger
from skyfall_morpheus.local.model import (
    FIXABLE,
    PERSONAS,
    PRIORITIES,
    WAITING,
    Document,
    Invoice,
    Order,
    Payment,
    Rules,
    Ticket,
)
from skyfall_morpheus.local.shelf import Shelf

__all__ = ["COMPANIES", "PRODUCTS", "ChaosPolicy", "Simulation"]

COMPANIES = ("Arctic Foods", "Bluebird Market", "Cedar Grocers", "Delta Kitchens", "Evergreen Stores")
"""Trading partners, P1 to P5."""

PRODUCTS = tuple((f"SKU-{number:02d}", 8.0 + 3.0 * number) for number in range(1, 21))
"""Product code and unit price, twenty of them."""

INTEREST_MINUTES = 10.0
"""How often interest is booked: in small parts, so that no single step bears an hour of it."""

ChaosPolicy = dict[str, Any]
"""`enabled`, `probability`, `scenarios`, optional `seed`, as the API takes it."""


def stream(seed: int, *keys: object) -> Random:
    """Random numbers that depend on the seed and the keys alone."""
    return Random("/".join(map(str, (seed, *keys))))  # noqa: S311  # a simulation, no secret


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
        self.documents: Shelf[Document] = Shelf(frozenset({"DELIVERED", "ARCHIVED"}), 5 * keep)
        self.orders: Shelf[Order] = Shelf(frozenset({"SHIPPED", "CANCELLED"}), keep)
        self.invoices: Shelf[Invoice] = Shelf(frozenset({"PAID", "REJECTED"}), keep)
        self.payments: Shelf[Payment] = Shelf(frozenset({"APPLIED"}), keep)
        self.tickets: Shelf[Ticket] = Shelf(frozenset({"resolved", "closed"}), keep)
        self.stock = [self.rules.stock] * len(PRODUCTS)
        self.shipped_on_time = 0
        self.shipped_late = 0
        self.lost = 0
        self.busy = 0
        self._bills: dict[int, tuple[float, str, int | None]] = {}
        self._restocking: set[int] = set()
        self._events: list[tuple[float, int, str, int]] = []
        self._sequence = 0
        self._arrivals = stream(seed, "arrivals")
        self._contents = stream(seed, "contents")
        self.schedule(self._gap(), "arrival", 0)
        self.schedule(INTEREST_MINUTES, "interest", 0)

    def advance(self, minutes: float) -> None:
        """Let time pass, handling every event that falls due in its order."""
        end = self.now + minutes
        while self._events and self._events[0][0] <= end:
            time, _, kind, number = heapq.heappop(self._events)
            self.now = time
            _HANDLERS[kind](self, number)
        self.now = end

    def schedule(self, delay: float, kind: str, number: int) -> None:
        """Have the event `kind` happen to thing `number` after `delay` minutes."""
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay, self._sequence, kind, number))

    @property
    def workers(self) -> int:
        """How many workers may work now."""
        return min(self.rules.workers, len(self.personas))

    def receive(self, partner: int | None = None, doc_type: str = "850", *, inbound: bool = True) -> Document:
        """Take in a document; an incoming 850 is a purchase order drawn from the seed's stream."""
        draw = self._contents
        product = draw.randrange(len(PRODUCTS))
        quantity = 1 + int(draw.expovariate(1 / 14.0))
        drawn_partner = draw.randrange(len(COMPANIES))
        document = Document(
            number=self.documents.next_number,
            partner=drawn_partner if partner is None else partner,
            product=product,
            quantity=min(quantity, self.rules.stock // 2),
            value=0.0,
            received=self.now,
            due=self.now + self.rules.order_lead,
            doc_type=doc_type,
            inbound=inbound,
            touched=self.now,
        )
        document.value = round(document.quantity * PRODUCTS[product][1], 2)
        self.documents.add(document)
        self.audit("EdiTransaction", f"E{document.number}", None, "RECEIVED")
        self.schedule(1.0, "process", document.number)
        if document.inbound and doc_type == "850":
            self.schedule(self.rules.order_lead, "overdue", document.number)
        return document

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

    def dispatch(self) -> None:
        """Put free workers on allocated orders: highest priority first, then the oldest."""
        while self.busy < self.workers and (waiting := self.orders.by_status.get("ALLOCATED")):
            order = min(waiting.values(), key=lambda one: (-PRIORITIES[one.priority], one.number))
            self.busy += 1
            self.move(self.orders, order, "PICKING")
            self.schedule(0.6 * self._work(order), "picked", order.number)

    def lose(self, document: Document, why: str) -> None:
        """The customer walks away from what the document ordered, and is owed for it."""
        document.lost = True
        self.lost += 1
        amount = round(self.rules.lost_penalty * document.value, 2)
        self.owe(amount, "bill", f"E{document.number}", document.partner)
        self.log("erp", "error", f"order of document E{document.number} lost: {why}")
        order = self.orders.get(document.order)
        if order is not None and order.status not in self.orders.finished:
            self.release(order)
            self.move(self.orders, order, "CANCELLED", why)
        elif order is None and document.status != "ARCHIVED":
            self.move(self.documents, document, "ARCHIVED", why)
        ticket = self.tickets.get(document.ticket)
        if ticket is not None and ticket.status not in self.tickets.finished and not ticket.settled:
            self.move(self.tickets, ticket, "resolved", "order lost")

    def release(self, order: Order) -> None:
        """Give a not yet shipped order's stock back, and its worker's time."""
        self.stock[order.product] += order.allocated
        order.allocated = 0
        if order.status in {"PICKING", "PICKED"}:
            self.busy -= 1
            self.dispatch()

    def owe(self, amount: float, source_type: str, source_id: str, partner: int | None) -> None:
        """Book a bill that is paid out of cash after the usual terms."""
        if amount <= 0:
            return
        entry = self.ledger.book(self.now, (source_type, source_id), payables=amount, partner=partner)
        self._bills[entry.number] = (amount, source_id, partner)
        self.schedule(self.rules.bill_terms, "bill", entry.number)

    def settle(self, document: Document) -> None:
        """Mark the ticket of a document whose failure is gone as ready to be verified."""
        ticket = self.tickets.get(document.ticket)
        if ticket is not None:
            ticket.settled = True

    def log(self, service: str, level: str, message: str, **metadata: Any) -> None:
        """Write a log line."""
        self.journal.log(self.now, (service, level), message, metadata or None)

    def _gap(self) -> float:
        return self.edi_interval * (0.5 + self._arrivals.random())

    def _work(self, order: Order) -> float:
        shortest, longest = self.rules.work_minutes
        return shortest + (longest - shortest) * stream(self.seed, "work", order.number).random()

    def _on_arrival(self, _: int) -> None:
        if not self.paused:
            self.receive()
        self.schedule(self._gap(), "arrival", 0)

    def _on_process(self, number: int) -> None:
        document = self.documents.get(number)
        if document is None or document.status not in {"RECEIVED", "QUEUED"}:
            return
        failure = (
            self._drawn_failure(document) if document.attempts == 0 else self._remaining_failure(document)
        )
        document.attempts += 1
        if failure is None:
            self._deliver(document)
        else:
            self._fail(document, failure)

    def _drawn_failure(self, document: Document) -> str | None:
        policy = self.chaos
        if not policy["enabled"] or not policy["scenarios"]:
            return None
        draw = stream(self.seed, "chaos", policy.get("seed") or "", document.number)
        if draw.random() >= policy["probability"]:
            return None
        weights = [float(scenario["weight"]) for scenario in policy["scenarios"]]
        if sum(weights) <= 0:
            return None
        return str(draw.choices(policy["scenarios"], weights)[0]["type"])

    def _remaining_failure(self, document: Document) -> str | None:
        """What still stops the document, given what was done about its failure."""
        failure = document.failure
        if failure in FIXABLE:
            return None if document.corrected else failure
        if failure in WAITING:
            return None if self.now >= document.retry_at else failure
        if failure == "permission_denied":
            ticket = self.tickets.get(document.ticket)
            allowed = document.corrected if ticket is None else ticket.assigned is not None
            return None if allowed else failure
        return None

    def _deliver(self, document: Document) -> None:
        self.move(self.documents, document, "DELIVERED")
        self.settle(document)
        if not document.inbound or document.doc_type != "850" or document.lost:
            return
        order = Order(
            number=self.orders.next_number,
            document=document.number,
            partner=document.partner,
            product=document.product,
            quantity=document.quantity,
            value=document.value,
            created=self.now,
            due=document.due,
            duplicate=document.failure == "duplicate_data",
            late=self.now > document.due,
            touched=self.now,
        )
        document.order = order.number
        self.orders.add(order)
        self.audit("ERPShipment", f"O{order.number}", None, "PENDING")

    def _fail(self, document: Document, failure: str) -> None:
        again = document.failure is not None
        document.failure = failure
        if failure in WAITING:
            first = 60.0 + 120.0 * stream(self.seed, "retry", document.number).random()
            document.retry_delay = min(1.5 * document.retry_delay, 1440.0) if again else first
            document.retry_at = self.now + document.retry_delay
        self.move(self.documents, document, "ERRORED", failure)
        self.log(
            "edi",
            "error",
            f"document E{document.number} failed: {failure}",
            transactionId=f"E{document.number}",
        )
        if not again and self.tickets_enabled:
            self._raise_ticket(document, failure)

    def _raise_ticket(self, document: Document, failure: str) -> None:
        ticket = Ticket(
            number=self.tickets.next_number,
            title=f"EDI {document.doc_type} E{document.number}: {failure}",
            description=f"Document E{document.number} from P{document.partner + 1} failed with {failure}.",
            requester="od-inbound-edi",
            created=self.now,
            priority="high" if document.value >= 500 else "medium",
            document=document.number,
            failure=failure,
            touched=self.now,
        )
        document.ticket = ticket.number
        self.tickets.add(ticket)
        self.audit("WorldItsmTicket", f"T{ticket.number}", None, "new")
        self.schedule(3 * self.rules.patience, "give_up", ticket.number)

    def _on_give_up(self, number: int) -> None:
        ticket = self.tickets.get(number)
        if ticket is not None and ticket.status not in self.tickets.finished:
            self.move(self.tickets, ticket, "resolved", "expired")

    def _on_picked(self, number: int) -> None:
        order = self.orders.get(number)
        if order is not None and order.status == "PICKING":
            self.move(self.orders, order, "PICKED")
            self.schedule(0.4 * self._work(order), "packed", number)

    def _on_packed(self, number: int) -> None:
        order = self.orders.get(number)
        if order is not None and order.status == "PICKED":
            self.move(self.orders, order, "PACKED")
            self.busy -= 1
            self.dispatch()

    def _on_overdue(self, number: int) -> None:
        """The due time passed, or another penalty interval did, and the goods may still not be on the way."""
        document = self.documents.get(number)
        if document is None or document.lost or document.failure == "duplicate_data":
            return
        order = self.orders.get(document.order)
        if document.order is not None and (order is None or order.status in self.orders.finished):
            return
        if self.now >= document.due + self.rules.order_lifetime:
            self.lose(document, "not shipped in time")
            return
        if order is not None:
            order.late = True
        amount = round(self.rules.late_penalty * document.value, 2)
        self.owe(amount, "bill", f"E{document.number}", document.partner)
        self.log("erp", "warn", f"order of document E{document.number} is late")
        self.schedule(self.rules.penalty_interval, "overdue", number)

    def _on_restock(self, product: int) -> None:
        self._restocking.discard(product)
        self.stock[product] += self.rules.stock

    def reorder(self, product: int) -> None:
        """Have a product that runs low refilled, once at a time."""
        if self.stock[product] <= self.rules.restock_at and product not in self._restocking:
            self._restocking.add(product)
            self.schedule(self.rules.restock_minutes, "restock", product)

    def send(self, invoice: Invoice) -> None:
        """Send a draft invoice; the customer of a duplicate rejects it."""
        order = self.orders.get(invoice.order)
        partner = invoice.partner
        if order is not None and order.duplicate:
            self.move(self.invoices, invoice, "REJECTED", "ordered once, shipped twice")
        else:
            self.move(self.invoices, invoice, "SENT")
            invoice.balance = invoice.amount
            self.ledger.book(
                self.now, ("invoice", f"I{invoice.number}"), receivables=invoice.amount, partner=partner
            )
            shortest, longest = self.rules.payment_terms
            share = stream(self.seed, "terms", invoice.number).random()
            self.schedule(shortest + (longest - shortest) * share, "pay", invoice.number)
        self.owe(invoice.cost, "bill", f"I{invoice.number}", partner)

    def _on_autosend(self, number: int) -> None:
        invoice = self.invoices.get(number)
        if invoice is not None and invoice.status == "DRAFT":
            self.send(invoice)

    def _on_pay(self, number: int) -> None:
        invoice = self.invoices.get(number)
        if invoice is None or invoice.status != "SENT":
            return
        payment = Payment(
            number=self.payments.next_number,
            invoice=number,
            partner=invoice.partner,
            amount=invoice.balance,
            received=self.now,
            touched=self.now,
        )
        self.payments.add(payment)
        self.invoices.move(invoice, "PARTIALLY_PAID", self.now)  # paid, and not matched yet
        if stream(self.seed, "match", number).random() < self.rules.unmatched_share:
            self.payments.move(payment, "UNMATCHED", self.now)
            self.schedule(self.rules.patience, "automatch", payment.number)
        else:
            self.match(payment)

    def _on_automatch(self, number: int) -> None:
        payment = self.payments.get(number)
        if payment is not None and payment.status == "UNMATCHED":
            self.match(payment)

    def match(self, payment: Payment) -> None:
        """Book a payment against its invoice."""
        self.payments.move(payment, "APPLIED", self.now)
        invoice = self.invoices.get(payment.invoice)
        self.ledger.book(
            self.now,
            ("payment", f"P{payment.number}"),
            cash=payment.amount,
            receivables=-payment.amount,
            partner=payment.partner,
        )
        if invoice is not None:
            invoice.balance = 0.0
            self.move(self.invoices, invoice, "PAID")

    def _on_bill(self, number: int) -> None:
        amount, source_id, partner = self._bills.pop(number)
        self.ledger.book(self.now, ("payment", source_id), cash=-amount, payables=-amount, partner=partner)

    def _on_interest(self, _: int) -> None:
        if self.ledger.cash < 0:
            overdraft = min(-self.ledger.cash, self.rules.credit_limit)
            amount = round(overdraft * self.rules.interest_hourly * INTEREST_MINUTES / 60.0, 2)
            self.owe(amount, "interest", f"minute-{int(self.now)}", None)
        self.schedule(INTEREST_MINUTES, "interest", 0)


_MODELS = {
    Document: ("EdiTransaction", "E"),
    Order: ("ERPShipment", "O"),
    Invoice: ("FinanceTransaction", "I"),
    Payment: ("FinanceTransaction", "P"),
    Ticket: ("WorldItsmTicket", "T"),
}

_HANDLERS = {
    name.removeprefix("_on_"): method for name, method in vars(Simulation).items() if name.startswith("_on_")
}
