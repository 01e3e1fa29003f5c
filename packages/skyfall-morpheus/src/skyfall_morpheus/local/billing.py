"""Money: invoices are sent and paid, bills fall due, and what is late, lost or in debt costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skyfall_morpheus.local import warehouse
from skyfall_morpheus.local.model import Payment
from skyfall_morpheus.local.streams import stream

if TYPE_CHECKING:
    from skyfall_morpheus.local.model import Document, Invoice
    from skyfall_morpheus.local.simulation import Simulation

__all__ = [
    "INTEREST_MINUTES",
    "lose",
    "match",
    "on_automatch",
    "on_autosend",
    "on_bill",
    "on_interest",
    "on_overdue",
    "on_pay",
    "owe",
    "send",
]

INTEREST_MINUTES = 10.0
"""How often interest is booked: in small parts, so that no single step bears an hour of it."""


def owe(world: Simulation, amount: float, source_type: str, source_id: str, partner: int | None) -> None:
    """Book a bill that is paid out of cash after the usual terms."""
    if amount <= 0:
        return
    entry = world.ledger.book(world.now, (source_type, source_id), payables=amount, partner=partner)
    world.bills[entry.number] = (amount, source_id, partner)
    world.schedule(world.rules.bill_terms, "bill", entry.number)


def lose(world: Simulation, document: Document, why: str) -> None:
    """The customer walks away from what the document ordered, and is owed for it."""
    document.lost = True
    world.lost += 1
    amount = round(world.rules.lost_penalty * document.value, 2)
    owe(world, amount, "bill", f"E{document.number}", document.partner)
    world.log("erp", "error", f"order of document E{document.number} lost: {why}")
    order = world.orders.get(document.order)
    if order is not None and order.status not in world.orders.finished:
        warehouse.release(world, order)
        world.move(world.orders, order, "CANCELLED", why)
    elif order is None and document.status != "ARCHIVED":
        world.given_up += 1
        world.move(world.documents, document, "ARCHIVED", why)
    ticket = world.tickets.get(document.ticket)
    if ticket is not None and ticket.status not in world.tickets.finished and not ticket.settled:
        world.move(world.tickets, ticket, "resolved", "order lost")


def send(world: Simulation, invoice: Invoice) -> None:
    """Send a draft invoice; the customer of a duplicate rejects it."""
    order = world.orders.get(invoice.order)
    partner = invoice.partner
    if order is not None and order.duplicate:
        world.move(world.invoices, invoice, "REJECTED", "ordered once, shipped twice")
    else:
        world.move(world.invoices, invoice, "SENT")
        invoice.balance = invoice.amount
        world.ledger.book(
            world.now, ("invoice", f"I{invoice.number}"), receivables=invoice.amount, partner=partner
        )
        shortest, longest = world.rules.payment_terms
        share = stream(world.seed, "terms", invoice.number).random()
        world.schedule(shortest + (longest - shortest) * share, "pay", invoice.number)
    owe(world, invoice.cost, "bill", f"I{invoice.number}", partner)


def match(world: Simulation, payment: Payment) -> None:
    """Book a payment against its invoice."""
    world.payments.move(payment, "APPLIED", world.now)
    invoice = world.invoices.get(payment.invoice)
    world.ledger.book(
        world.now,
        ("payment", f"P{payment.number}"),
        cash=payment.amount,
        receivables=-payment.amount,
        partner=payment.partner,
    )
    if invoice is not None:
        invoice.balance = 0.0
        world.move(world.invoices, invoice, "PAID")


def on_overdue(world: Simulation, number: int) -> None:
    """The due time passed, or another penalty interval did, and the goods may still not be on the way."""
    document = world.documents.get(number)
    if document is None or document.lost or document.failure == "duplicate_data":
        return
    order = world.orders.get(document.order)
    if document.order is not None and (order is None or order.status in world.orders.finished):
        return
    if world.now >= document.due + world.rules.order_lifetime:
        lose(world, document, "not shipped in time")
        return
    if order is not None:
        order.late = True
    amount = round(world.rules.late_penalty * document.value, 2)
    owe(world, amount, "bill", f"E{document.number}", document.partner)
    world.log("erp", "warn", f"order of document E{document.number} is late")
    world.schedule(world.rules.penalty_interval, "overdue", number)


def on_autosend(world: Simulation, number: int) -> None:
    """The office sends a draft nobody sent."""
    invoice = world.invoices.get(number)
    if invoice is not None and invoice.status == "DRAFT":
        send(world, invoice)


def on_pay(world: Simulation, number: int) -> None:
    """A customer pays an invoice."""
    invoice = world.invoices.get(number)
    if invoice is None or invoice.status != "SENT":
        return
    payment = Payment(
        number=world.payments.next_number,
        invoice=number,
        partner=invoice.partner,
        amount=invoice.balance,
        received=world.now,
        touched=world.now,
    )
    world.payments.add(payment)
    world.invoices.move(invoice, "PARTIALLY_PAID", world.now)  # paid, and not matched yet
    if stream(world.seed, "match", number).random() < world.rules.unmatched_share:
        world.payments.move(payment, "UNMATCHED", world.now)
        world.schedule(world.rules.patience, "automatch", payment.number)
    else:
        match(world, payment)


def on_automatch(world: Simulation, number: int) -> None:
    """The office matches a payment nobody matched."""
    payment = world.payments.get(number)
    if payment is not None and payment.status == "UNMATCHED":
        match(world, payment)


def on_bill(world: Simulation, number: int) -> None:
    """A bill is paid out of cash."""
    amount, source_id, partner = world.bills.pop(number)
    world.ledger.book(world.now, ("payment", source_id), cash=-amount, payables=-amount, partner=partner)


def on_interest(world: Simulation, _: int) -> None:
    """Debt bears interest."""
    if world.ledger.cash < 0:
        overdraft = min(-world.ledger.cash, world.rules.credit_limit)
        amount = round(overdraft * world.rules.interest_hourly * INTEREST_MINUTES / 60.0, 2)
        owe(world, amount, "interest", f"minute-{int(world.now)}", None)
    world.schedule(INTEREST_MINUTES, "interest", 0)
