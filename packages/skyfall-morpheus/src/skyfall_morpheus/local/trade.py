"""Routes of the trade itself: EDI documents, outbound orders, stock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import desk, intake, views
from skyfall_morpheus.local.answers import (
    body_of,
    by_status,
    find,
    in_period,
    integer,
    ok,
    only_status,
    require_room,
    show,
    text,
)
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.handlers import Handlers
from skyfall_morpheus.local.model import ORDER_FLOW
from skyfall_morpheus.local.routing import Reply, Request
from skyfall_morpheus.local.simulation import COMPANIES, PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skyfall_morpheus.local.routing import Handler
    from skyfall_morpheus.local.worlds import World

__all__ = ["Trade"]

DOC_TYPES = ("850", "855", "856", "810", "820", "997", "999")
EDI_STATUSES = ("RECEIVED", "QUEUED", "PROCESSING", "DELIVERED", "ERRORED", "ARCHIVED")


class Trade(Handlers):
    """Routes of the trade itself: EDI documents, outbound orders, stock."""

    def routes(self) -> Iterable[tuple[str, Handler]]:
        """What answers what."""
        return (
            ("GET /{w}/edi", self.list_edi),
            ("POST /{w}/edi", self.create_edi),
            ("GET /{w}/edi/statistics/invoice", self.invoice_statistics),
            ("GET /{w}/edi/{id}", self.get_edi),
            ("PATCH /{w}/edi/{id}", self.update_edi),
            ("POST /{w}/edi/{id}/requeue", self.requeue_edi),
            ("PATCH /{w}/edi/{id}/status", self.edi_status),
            ("GET /{w}/wms/operations-dashboard", self.dashboard),
            ("GET /{w}/wms/inventory", self.inventory),
            ("GET /{w}/wms/outbound-orders/metrics", self.order_metrics),
            ("GET /{w}/wms/outbound-orders/status", self.orders),
            ("GET /{w}/wms/outbound-orders/{id}", self.order),
            ("PUT /{w}/wms/outbound-orders/{id}/lines/{line}/allocate", self.allocate),
            ("PUT /{w}/wms/outbound-orders/{id}/priority", self.priority),
            ("PUT /{w}/wms/outbound-orders/{id}/status", self.order_status),
        )

    def list_edi(self, request: Request) -> Reply:
        """EDI transactions, newest statuses as they are, by number."""
        world = self._world(request)
        query = request.query
        shelf = world.simulation.documents
        found = by_status(shelf, query, EDI_STATUSES)
        direction = query.get("direction")
        if direction:
            found = [one for one in found if one.inbound == (direction == "INBOUND")]
        if query.get("docType"):
            found = [one for one in found if one.doc_type == query["docType"]]
        if query.get("partnerId"):
            found = [one for one in found if f"P{one.partner + 1}" == query["partnerId"]]
        if query.keys() & {"dateStart", "dateEnd"}:
            wanted = in_period(query)
            found = [one for one in found if wanted(one.received)]
        total = shelf.count(query["status"]) if only_status(query) else None
        shown, facts = show(found, query, views.document, (20, 100), total=total)
        return ok(shown, "edi.list", world.now, pagination=facts)

    def create_edi(self, request: Request) -> Reply:
        """Inject a document."""
        world = self._world(request)
        given = body_of(request.body, "partnerId", "docType", "direction")
        partners = [f"P{index + 1}" for index in range(len(COMPANIES))]
        if given["partnerId"] not in partners:
            raise RefusalError(400, f"partnerId: {given['partnerId']!r} is none of {', '.join(partners)}")
        if given["docType"] not in DOC_TYPES:
            raise RefusalError(400, f"docType: {given['docType']!r} is none of {', '.join(DOC_TYPES)}")
        if given["direction"] not in {"INBOUND", "OUTBOUND"}:
            raise RefusalError(400, "direction: INBOUND or OUTBOUND is required")
        require_room(world.simulation.documents, "documents", world.simulation.rules.backlog)
        document = intake.receive(
            world.simulation,
            partners.index(given["partnerId"]),
            given["docType"],
            inbound=given["direction"] == "INBOUND",
        )
        return ok(views.document(document), "edi.created", world.now, 201)

    def get_edi(self, request: Request) -> Reply:
        """One EDI transaction."""
        world = self._world(request)
        return ok(views.document(find(world.simulation.documents, request, "E")), "edi.get", world.now)

    def update_edi(self, request: Request) -> Reply:
        """Correct a document's payload."""
        world = self._world(request)
        document = find(world.simulation.documents, request, "E")
        payload = body_of(request.body, "payload")["payload"]
        if not isinstance(payload, dict) or len(str(payload)) > 20_000:
            raise RefusalError(400, "payload: an object of moderate size is required")
        desk.correct(world.simulation, document, payload)
        return ok(views.document(document), "edi.updated", world.now)

    def requeue_edi(self, request: Request) -> Reply:
        """Try a stuck document again."""
        world = self._world(request)
        document = find(world.simulation.documents, request, "E")
        desk.requeue(world.simulation, document)
        return ok(views.document(document), "edi.requeued", world.now)

    def edi_status(self, request: Request) -> Reply:
        """Archive a document; its other statuses are the gateway's own doing."""
        world = self._world(request)
        document = find(world.simulation.documents, request, "E")
        status = body_of(request.body, "status")["status"]
        if status not in EDI_STATUSES:
            raise RefusalError(400, f"status: {status!r} is none of {', '.join(EDI_STATUSES)}")
        if status != "ARCHIVED":
            raise RefusalError(409, f"E{document.number}: only ARCHIVED may be set; use requeue to try again")
        desk.archive(world.simulation, document)
        return ok(views.document(document), "edi.status", world.now)

    def invoice_statistics(self, request: Request) -> Reply:
        """How many invoices there were and how many bounced."""
        world = self._world(request)
        counts = world.simulation.invoices.counts()
        total = sum(counts.values())
        errored = counts.get("REJECTED", 0)
        exposure = sum(one.balance for one in world.simulation.invoices.of("SENT", "PARTIALLY_PAID"))
        data = {
            "total": total,
            "errored": errored,
            "rejectionRate": errored / total if total else 0.0,
            "totalExposureDollar": round(exposure, 2),
            "firstPassAcceptanceRate": 1 - errored / total if total else 1.0,
        }
        return ok(data, "edi.statistics", world.now)

    def dashboard(self, request: Request) -> Reply:
        """The warehouse at a glance."""
        world = self._world(request)
        return ok(views.dashboard(world.simulation), "wms.dashboard", world.now)

    def inventory(self, request: Request) -> Reply:
        """Stock by product."""
        world = self._world(request)
        items = [views.product(index, world.simulation) for index in range(len(PRODUCTS))]
        facts = {"limit": len(items), "offset": 0, "totalCount": len(items), "hasMore": False}
        return ok({"items": items, "pagination": facts}, "wms.inventory", world.now)

    def order_metrics(self, request: Request) -> Reply:
        """How many orders were shipped, and how many in time."""
        world = self._world(request)
        return ok(order_metrics(world), "wms.metrics", world.now)

    def orders(self, request: Request) -> Reply:
        """Orders in one status."""
        world = self._world(request)
        if not request.query.get("status"):
            raise RefusalError(400, f"status: required, one of {', '.join(ORDER_FLOW)}")
        found = by_status(world.simulation.orders, request.query, ORDER_FLOW)
        shown, facts = show(found, request.query, views.order, (50, 100))
        return ok({"items": shown, **facts}, "wms.orders", world.now)

    def order(self, request: Request) -> Reply:
        """One order."""
        world = self._world(request)
        return ok(views.order(find(world.simulation.orders, request, "O")), "wms.order", world.now)

    def allocate(self, request: Request) -> Reply:
        """Reserve stock for an order's line."""
        world = self._world(request)
        order = find(world.simulation.orders, request, "O")
        if request.params["line"] != "1":
            raise RefusalError(404, f"O{order.number} has only line 1")
        quantity = integer(
            body_of(request.body, "allocatedQuantity")["allocatedQuantity"], "allocatedQuantity"
        )
        desk.allocate(world.simulation, order, quantity)
        return ok(views.order(order), "wms.allocated", world.now)

    def priority(self, request: Request) -> Reply:
        """Change an order's priority."""
        world = self._world(request)
        order = find(world.simulation.orders, request, "O")
        desk.set_priority(
            world.simulation, order, text(body_of(request.body, "priority")["priority"], "priority")
        )
        return ok(views.order(order), "wms.priority", world.now)

    def order_status(self, request: Request) -> Reply:
        """Release, ship or cancel an order."""
        world = self._world(request)
        order = find(world.simulation.orders, request, "O")
        desk.set_order_status(
            world.simulation, order, text(body_of(request.body, "status")["status"], "status")
        )
        return ok(views.order(order), "wms.status", world.now)


def order_metrics(world: World) -> dict[str, Any]:
    """The fulfillment metrics of a world."""
    simulation = world.simulation
    total = simulation.orders.total()
    shipped = simulation.orders.count("SHIPPED")
    return {
        "totalOrders": total,
        "completedOrders": shipped,
        "onTimeShipments": simulation.shipped_on_time,
        "lostOrders": simulation.lost,
        "documentsGivenUp": simulation.given_up,
        "fulfillmentRate": shipped / total if total else 0.0,
        "ordersByStatus": [
            {"status": status, "count": count} for status, count in simulation.orders.counts().items()
        ],
        "topCustomers": [],
    }
