"""What may be done in a world: the verbs behind the API, each checked against the world's state.

A verb either does its work or raises `RefusalError` with the HTTP status and message the API answers
with, and then nothing has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import billing, intake, warehouse
from skyfall_morpheus.local.model import ORDER_FLOW, PRIORITIES, TICKET_STATUSES, Invoice, Ticket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skyfall_morpheus.local.model import Document, Order, Payment
    from skyfall_morpheus.local.simulation import Simulation

__all__ = [
    "RefusalError",
    "allocate",
    "archive",
    "cancel",
    "correct",
    "discount",
    "match",
    "requeue",
    "send_invoice",
    "set_priority",
    "set_ticket_status",
    "ship",
    "verify",
]


class RefusalError(Exception):
    """A request the world does not grant.

    Args:
        status: HTTP status of the answer.
        message: The answer's explanation.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def correct(world: Simulation, document: Document, payload: Mapping[str, Any]) -> None:
    """Replace a document's payload; a stuck document counts as corrected from then on."""
    document.payload = dict(payload)
    document.touched = world.now
    if document.status == "ERRORED":
        document.corrected = True
    world.audit("EdiTransaction", f"E{document.number}", document.status, document.status, "payload")


def requeue(world: Simulation, document: Document) -> None:
    """Have a stuck document processed again."""
    if document.status != "ERRORED":
        raise RefusalError(409, f"E{document.number} is {document.status}; only ERRORED can be requeued")
    world.move(world.documents, document, "QUEUED", "requeued")
    world.schedule(1.0, "process", document.number)


def archive(world: Simulation, document: Document) -> None:
    """Put a document away; one that ordered something is lost business, a duplicate is settled."""
    if document.status == "ARCHIVED":
        raise RefusalError(409, f"E{document.number} is already ARCHIVED")
    stuck = document.status != "DELIVERED"
    world.move(world.documents, document, "ARCHIVED", "archived")
    if not stuck or not document.inbound or document.lost:
        return
    if document.failure == "duplicate_data":
        intake.settle(world, document)
    else:
        world.given_up += 1
        billing.lose(world, document, "archived unprocessed")


def allocate(world: Simulation, order: Order, quantity: int) -> None:
    """Reserve stock for an order; a fully allocated one waits for a worker."""
    if order.status not in {"PENDING", "RELEASED"}:
        raise RefusalError(
            409, f"O{order.number} is {order.status}; only PENDING or RELEASED can be allocated"
        )
    missing = order.quantity - order.allocated
    if not 1 <= quantity <= missing:
        raise RefusalError(400, f"allocatedQuantity: {quantity} is outside 1..{missing}")
    if quantity > world.stock[order.product]:
        warehouse.reorder(world, order.product)
        raise RefusalError(409, f"stock: {world.stock[order.product]} on hand, {quantity} asked for")
    world.stock[order.product] -= quantity
    order.allocated += quantity
    order.touched = world.now
    warehouse.reorder(world, order.product)
    if order.allocated == order.quantity:
        world.move(world.orders, order, "ALLOCATED")
        warehouse.dispatch(world)


def set_order_status(world: Simulation, order: Order, status: str) -> None:
    """Release, ship or cancel an order; the other statuses are the warehouse's own doing."""
    if status not in ORDER_FLOW:
        raise RefusalError(400, f"status: {status!r} is none of {', '.join(ORDER_FLOW)}")
    if status == "SHIPPED":
        ship(world, order)
    elif status == "CANCELLED":
        cancel(world, order)
    elif status == "RELEASED" and order.status == "PENDING":
        world.move(world.orders, order, "RELEASED")
    else:
        raise RefusalError(
            409, f"O{order.number} goes from {order.status} to {status} by itself or not at all"
        )


def ship(world: Simulation, order: Order) -> None:
    """Hand a packed order to the carrier; drafts its invoice."""
    if order.status != "PACKED":
        raise RefusalError(409, f"O{order.number} is {order.status}; only PACKED can be shipped")
    if world.now <= order.due and not order.duplicate:
        world.shipped_on_time += 1
    else:
        world.shipped_late += 1
    invoice = Invoice(
        number=world.invoices.next_number,
        order=order.number,
        partner=order.partner,
        amount=order.value,
        cost=round(world.rules.cost_share * order.value, 2),
        issued=world.now,
        touched=world.now,
    )
    order.invoice = invoice.number
    world.invoices.add(invoice)
    world.move(world.orders, order, "SHIPPED")
    world.audit("FinanceTransaction", f"I{invoice.number}", None, "DRAFT")
    world.schedule(world.rules.patience, "autosend", invoice.number)


def cancel(world: Simulation, order: Order) -> None:
    """Give an order up; a duplicate goes for free, a real one costs what losing it costs."""
    if order.status in world.orders.finished:
        raise RefusalError(409, f"O{order.number} is already {order.status}")
    document = world.documents.get(order.document)
    if document is not None and not order.duplicate:
        billing.lose(world, document, "cancelled")
    if order.status not in world.orders.finished:
        warehouse.release(world, order)
        world.move(world.orders, order, "CANCELLED", "cancelled")


def set_priority(world: Simulation, order: Order, priority: str) -> None:
    """Have workers take an order earlier or later."""
    if priority not in PRIORITIES:
        raise RefusalError(400, f"priority: {priority!r} is none of {', '.join(PRIORITIES)}")
    order.priority = priority
    order.touched = world.now


def send_invoice(world: Simulation, invoice: Invoice) -> None:
    """Send a draft to the customer."""
    if invoice.status != "DRAFT":
        raise RefusalError(409, f"I{invoice.number} is {invoice.status}; only DRAFT can be sent")
    billing.send(world, invoice)


def discount(world: Simulation, invoice: Invoice) -> None:
    """Offer a sent invoice's customer a discount for paying at once, which is always taken."""
    if invoice.status != "SENT" or invoice.discounted:
        raise RefusalError(
            409, f"I{invoice.number} is {invoice.status}; a discount needs SENT, and only once"
        )
    given = round(world.rules.discount * invoice.balance, 2)
    invoice.discounted = True
    invoice.balance = round(invoice.balance - given, 2)
    invoice.touched = world.now
    world.ledger.book(
        world.now, ("invoice", f"I{invoice.number}"), receivables=-given, partner=invoice.partner
    )
    world.schedule(1.0, "pay", invoice.number)


def match(world: Simulation, payment: Payment) -> None:
    """Say which invoice an unmatched payment is for."""
    if payment.status != "UNMATCHED":
        raise RefusalError(409, f"P{payment.number} is {payment.status}; only UNMATCHED can be applied")
    billing.match(world, payment)


def verify(world: Simulation, ticket: Ticket) -> bool:
    """Look again at the failure behind a ticket; True when it is gone."""
    ticket.verified = ticket.settled or ticket.document is None
    ticket.touched = world.now
    return ticket.verified


def set_ticket_status(world: Simulation, ticket: Ticket, status: str) -> None:
    """Move a ticket forward, or to and from `on_hold`; a closed one stays closed."""
    if status not in TICKET_STATUSES:
        raise RefusalError(400, f"status: {status!r} is none of {', '.join(TICKET_STATUSES)}")
    here, there = TICKET_STATUSES.index(ticket.status), TICKET_STATUSES.index(status)
    hold = TICKET_STATUSES.index("on_hold")
    if ticket.status == "closed" or (there < here != hold) or (here > hold >= there):
        raise RefusalError(409, f"T{ticket.number} cannot go from {ticket.status} to {status}")
    if there != here:
        world.move(world.tickets, ticket, status)
