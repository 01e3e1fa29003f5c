"""Documents coming in: purchase orders arrive, meet the chaos policy, go through or get stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skyfall_morpheus.local import warehouse
from skyfall_morpheus.local.model import COMPANIES, FIXABLE, PRODUCTS, WAITING, Document, Order, Ticket
from skyfall_morpheus.local.streams import stream

if TYPE_CHECKING:
    from skyfall_morpheus.local.simulation import Simulation

__all__ = ["gap", "on_abandon", "on_arrival", "on_give_up", "on_process", "receive", "settle"]


def receive(
    world: Simulation, partner: int | None = None, doc_type: str = "850", *, inbound: bool = True
) -> Document:
    """Take in a document; an incoming 850 is a purchase order drawn from the seed's stream."""
    draw = world.contents
    product = draw.randrange(len(PRODUCTS))
    quantity = 1 + int(draw.expovariate(1 / 14.0))
    drawn_partner = draw.randrange(len(COMPANIES))
    document = Document(
        number=world.documents.next_number,
        partner=drawn_partner if partner is None else partner,
        product=product,
        quantity=min(quantity, world.rules.stock // 2),
        value=0.0,
        received=world.now,
        due=world.now + world.rules.order_lead,
        doc_type=doc_type,
        inbound=inbound,
        touched=world.now,
    )
    document.value = round(document.quantity * PRODUCTS[product][1], 2)
    world.documents.add(document)
    world.audit("EdiTransaction", f"E{document.number}", None, "RECEIVED")
    world.schedule(1.0, "process", document.number)
    if document.inbound and doc_type == "850":
        world.schedule(world.rules.order_lead, "overdue", document.number)
    return document


def settle(world: Simulation, document: Document) -> None:
    """Mark the ticket of a document whose failure is gone as ready to be verified."""
    ticket = world.tickets.get(document.ticket)
    if ticket is not None:
        ticket.settled = True


def gap(world: Simulation) -> float:
    """Minutes until the next document arrives."""
    return world.edi_interval * (0.5 + world.arrivals.random())


def on_arrival(world: Simulation, _: int) -> None:
    """A document arrives, unless schedules are paused."""
    if not world.paused:
        receive(world)
    world.schedule(gap(world), "arrival", 0)


def on_process(world: Simulation, number: int) -> None:
    """The translator looks at a document."""
    document = world.documents.get(number)
    if document is None or document.status not in {"RECEIVED", "QUEUED"}:
        return
    failure = (
        _drawn_failure(world, document) if document.attempts == 0 else _remaining_failure(world, document)
    )
    document.attempts += 1
    if failure is None:
        _deliver(world, document)
    else:
        _fail(world, document, failure)


def _drawn_failure(world: Simulation, document: Document) -> str | None:
    policy = world.chaos
    if not policy["enabled"] or not policy["scenarios"]:
        return None
    draw = stream(world.seed, "chaos", policy.get("seed") or "", document.number)
    if draw.random() >= policy["probability"]:
        return None
    weights = [float(scenario["weight"]) for scenario in policy["scenarios"]]
    if sum(weights) <= 0:
        return None
    return str(draw.choices(policy["scenarios"], weights)[0]["type"])


def _remaining_failure(world: Simulation, document: Document) -> str | None:
    """What still stops the document, given what was done about its failure."""
    failure = document.failure
    if failure in FIXABLE:
        return None if document.corrected else failure
    if failure in WAITING:
        return None if world.now >= document.retry_at else failure
    if failure == "permission_denied":
        ticket = world.tickets.get(document.ticket)
        allowed = document.corrected if ticket is None else ticket.assigned is not None
        return None if allowed else failure
    return None


def _deliver(world: Simulation, document: Document) -> None:
    if document.inbound and document.doc_type == "850" and not document.lost:
        _place_order(world, document)  # first, so that the finished document is known to be needed
    world.move(world.documents, document, "DELIVERED")
    settle(world, document)


def _place_order(world: Simulation, document: Document) -> None:
    order = Order(
        number=world.orders.next_number,
        document=document.number,
        partner=document.partner,
        product=document.product,
        quantity=document.quantity,
        value=document.value,
        created=world.now,
        due=document.due,
        duplicate=document.failure == "duplicate_data",
        late=world.now > document.due,
        touched=world.now,
    )
    document.order = order.number
    world.orders.add(order)
    world.audit("ERPShipment", f"O{order.number}", None, "PENDING")


def _fail(world: Simulation, document: Document, failure: str) -> None:
    again = document.failure is not None
    document.failure = failure
    if failure in WAITING:
        first = 60.0 + 120.0 * stream(world.seed, "retry", document.number).random()
        document.retry_delay = min(1.5 * document.retry_delay, 1440.0) if again else first
        document.retry_at = world.now + document.retry_delay
    world.move(world.documents, document, "ERRORED", failure)
    world.log(
        "edi",
        "error",
        f"document E{document.number} failed: {failure}",
        transactionId=f"E{document.number}",
    )
    if again:
        return
    if world.tickets_enabled:
        _raise_ticket(world, document, failure)
    if not _is_awaited(document):
        world.schedule(world.rules.patience, "abandon", document.number)


def _raise_ticket(world: Simulation, document: Document, failure: str) -> None:
    ticket = Ticket(
        number=world.tickets.next_number,
        title=f"EDI {document.doc_type} E{document.number}: {failure}",
        description=f"Document E{document.number} from P{document.partner + 1} failed with {failure}.",
        requester="od-inbound-edi",
        created=world.now,
        priority="high" if document.value >= 500 else "medium",
        document=document.number,
        failure=failure,
        touched=world.now,
    )
    document.ticket = ticket.number
    world.tickets.add(ticket)
    world.audit("WorldItsmTicket", f"T{ticket.number}", None, "new")
    world.schedule(3 * world.rules.patience, "give_up", ticket.number)


def _is_awaited(document: Document) -> bool:
    """Whether a customer waits for what the document orders, and some day walks away."""
    return document.inbound and document.doc_type == "850" and document.failure != "duplicate_data"


def on_abandon(world: Simulation, number: int) -> None:
    """The office puts a document away that nobody waits for and nobody worked on, or the order it became."""
    document = world.documents.get(number)
    if document is None:
        return
    order = world.orders.get(document.order)
    if document.status not in world.documents.finished:
        world.given_up += 1
        world.move(world.documents, document, "ARCHIVED", "given up")
        on_give_up(world, document.ticket)
    elif order is not None and order.status not in world.orders.finished:
        warehouse.release(world, order)
        world.move(world.orders, order, "CANCELLED", "given up")


def on_give_up(world: Simulation, number: int | None) -> None:
    """A ticket nobody settled expires."""
    ticket = world.tickets.get(number)
    if ticket is not None and ticket.status not in world.tickets.finished:
        world.move(world.tickets, ticket, "resolved", "expired")
