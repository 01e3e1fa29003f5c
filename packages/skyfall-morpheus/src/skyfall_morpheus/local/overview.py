"""The world in one mapping: everything a compact observation needs, read at once. An extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import views

if TYPE_CHECKING:
    from collections.abc import Callable

    from skyfall_morpheus.local.shelf import Shelf
    from skyfall_morpheus.local.worlds import World

__all__ = ["overview"]

OVERVIEW_ITEMS = 8
OVERVIEW_ERRORS = 3


def overview(world: World) -> dict[str, Any]:
    """The world in one mapping: of each list the oldest, with the fields an observation reads."""
    simulation = world.simulation
    errors = list(simulation.journal.errors)[: -OVERVIEW_ERRORS - 1 : -1]
    found: dict[str, Any] = {
        "time": views.stamp(simulation.now),
        "ledger": views.ledger(world.id, simulation.ledger),
        "metrics": {
            "completedOrders": simulation.orders.count("SHIPPED"),
            "onTimeShipments": simulation.shipped_on_time,
            "documentsGivenUp": simulation.given_up,
        },
        "fulfillment": views.fulfillment(simulation),
        "errors": [{"msg": one.message} for one in errors],
        "tickets": {"closed": {"items": [], "totalCount": simulation.tickets.count("closed")}},
    }
    for part, shelf, statuses, view in (
        ("edi", simulation.documents, ("ERRORED",), views.brief_document),
        ("orders", simulation.orders, ("PENDING", "ALLOCATED", "PACKED"), views.brief_order),
        ("invoices", simulation.invoices, ("DRAFT", "SENT"), views.brief_invoice),
        ("payments", simulation.payments, ("UNMATCHED",), views.payment),
        ("tickets", simulation.tickets, ("new", "open", "in_progress"), views.brief_ticket),
    ):
        lists = found.setdefault(part, {})
        for status in statuses:
            lists[status] = _oldest(shelf, status, view)
    return found


def _oldest(shelf: Shelf[Any], status: str, view: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    held = shelf.by_status.get(status)
    if not held:
        return {"items": [], "totalCount": shelf.forgotten[status]}
    items = [view(held[number]) for number in sorted(held)[:OVERVIEW_ITEMS]]
    return {"items": items, "totalCount": len(held) + shelf.forgotten[status]}
