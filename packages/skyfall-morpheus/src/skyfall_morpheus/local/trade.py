"""Routes of the trade itself: EDI, orders, invoices, payments, ledger and finance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import desk, intake, views
from skyfall_morpheus.local.answers import body_of, integer, number, ok, show, text
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.model import ORDER_FLOW
from skyfall_morpheus.local.routing import Reply, Request
from skyfall_morpheus.local.simulation import COMPANIES, PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skyfall_morpheus.local.ledger import Entry
    from skyfall_morpheus.local.routing import Router
    from skyfall_morpheus.local.shelf import Shelf
    from skyfall_morpheus.local.worlds import World, Worlds

__all__ = ["Trade"]

FILTERS = frozenset({"status", "direction", "docType", "partnerId"})
INVOICE_STATUSES = ("DRAFT", "VALIDATED", "SENT", "PARTIALLY_PAID", "PAID", "REJECTED")
DOC_TYPES = ("850", "855", "856", "810", "820", "997", "999")
EDI_STATUSES = ("RECEIVED", "QUEUED", "PROCESSING", "DELIVERED", "ERRORED", "ARCHIVED")


class Trade:
    """Handlers over a server's worlds.

    Args:
        worlds: The worlds.
    """

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds

    def add_routes(self, router: Router) -> None:
        """Register the routes of this module."""
        for route, handler in (
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
            ("GET /{w}/erp/companies", self.companies),
            ("GET /{w}/erp/products", self.products),
            ("GET /{w}/erp/invoices", self.invoices),
            ("GET /{w}/erp/invoices/{id}", self.invoice),
            ("PUT /{w}/erp/invoices/{id}", self.update_invoice),
            ("PUT /{w}/erp/invoices/{id}/status", self.invoice_status),
            ("GET /{w}/erp/payments", self.payments),
            ("GET /{w}/erp/payments/{id}", self.payment),
            ("PUT /{w}/erp/payments/{id}/allocations", self.allocations),
            ("GET /{w}/ledger", self.ledger),
            ("PATCH /{w}/ledger", self.set_ledger),
            ("POST /{w}/ledger", self.upsert_ledger),
            ("GET /{w}/ledger/analytics/summary", self.ledger_summary),
            ("PATCH /{w}/ledger/increment", self.increment_ledger),
            ("GET /{w}/finance/summary", self.finance_summary),
            ("GET /{w}/finance/transactions", self.transactions),
            ("POST /{w}/finance/transactions", self.create_transaction),
        ):
            router.add(route, handler)

    def _world(self, request: Request) -> World:
        return self.worlds.find(request.params["w"])

    def list_edi(self, request: Request) -> Reply:
        """EDI transactions, newest statuses as they are, by number."""
        world = self._world(request)
        query = request.query
        shelf = world.simulation.documents
        found = _by_status(shelf, query, EDI_STATUSES)
        direction = query.get("direction")
        if direction:
            found = [one for one in found if one.inbound == (direction == "INBOUND")]
        if query.get("docType"):
            found = [one for one in found if one.doc_type == query["docType"]]
        if query.get("partnerId"):
            found = [one for one in found if f"P{one.partner + 1}" == query["partnerId"]]
        total = shelf.count(query["status"]) if set(query) & FILTERS == {"status"} else None
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
        return ok(views.document(_find(world.simulation.documents, request, "E")), "edi.get", world.now)

    def update_edi(self, request: Request) -> Reply:
        """Correct a document's payload."""
        world = self._world(request)
        document = _find(world.simulation.documents, request, "E")
        payload = body_of(request.body, "payload")["payload"]
        if not isinstance(payload, dict) or len(str(payload)) > 20_000:
            raise RefusalError(400, "payload: an object of moderate size is required")
        desk.correct(world.simulation, document, payload)
        return ok(views.document(document), "edi.updated", world.now)

    def requeue_edi(self, request: Request) -> Reply:
        """Try a stuck document again."""
        world = self._world(request)
        document = _find(world.simulation.documents, request, "E")
        desk.requeue(world.simulation, document)
        return ok(views.document(document), "edi.requeued", world.now)

    def edi_status(self, request: Request) -> Reply:
        """Archive a document; its other statuses are the gateway's own doing."""
        world = self._world(request)
        document = _find(world.simulation.documents, request, "E")
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
        found = _by_status(world.simulation.orders, request.query, ORDER_FLOW)
        shown, facts = show(found, request.query, views.order, (50, 100))
        return ok({"items": shown, **facts}, "wms.orders", world.now)

    def order(self, request: Request) -> Reply:
        """One order."""
        world = self._world(request)
        return ok(views.order(_find(world.simulation.orders, request, "O")), "wms.order", world.now)

    def allocate(self, request: Request) -> Reply:
        """Reserve stock for an order's line."""
        world = self._world(request)
        order = _find(world.simulation.orders, request, "O")
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
        order = _find(world.simulation.orders, request, "O")
        desk.set_priority(
            world.simulation, order, text(body_of(request.body, "priority")["priority"], "priority")
        )
        return ok(views.order(order), "wms.priority", world.now)

    def order_status(self, request: Request) -> Reply:
        """Release, ship or cancel an order."""
        world = self._world(request)
        order = _find(world.simulation.orders, request, "O")
        desk.set_order_status(
            world.simulation, order, text(body_of(request.body, "status")["status"], "status")
        )
        return ok(views.order(order), "wms.status", world.now)

    def companies(self, request: Request) -> Reply:
        """The own company and its partners."""
        world = self._world(request)
        shown = [views.company(None), *(views.company(index) for index in range(len(COMPANIES)))]
        return ok(shown, "erp.companies", world.now, pagination=_whole(shown))

    def products(self, request: Request) -> Reply:
        """Every product."""
        world = self._world(request)
        shown = [views.product(index, world.simulation) for index in range(len(PRODUCTS))]
        return ok(shown, "erp.products", world.now, pagination=_whole(shown))

    def invoices(self, request: Request) -> Reply:
        """Invoices, by status when asked."""
        world = self._world(request)
        found = _by_status(world.simulation.invoices, request.query, INVOICE_STATUSES)
        shown, facts = show(found, request.query, views.invoice, (50, 100))
        return ok(shown, "erp.invoices", world.now, pagination=facts)

    def invoice(self, request: Request) -> Reply:
        """One invoice."""
        world = self._world(request)
        return ok(views.invoice(_find(world.simulation.invoices, request, "I")), "erp.invoice", world.now)

    def update_invoice(self, request: Request) -> Reply:
        """Offer an early-payment allowance, the one thing about an invoice that may change."""
        world = self._world(request)
        invoice = _find(world.simulation.invoices, request, "I")
        allowances = body_of(request.body, "allowances")["allowances"]
        if not isinstance(allowances, list) or not allowances:
            raise RefusalError(400, "allowances: a list with the early-payment allowance is required")
        desk.discount(world.simulation, invoice)
        return ok(views.invoice(invoice), "erp.invoice.updated", world.now)

    def invoice_status(self, request: Request) -> Reply:
        """Send a draft; what follows is the customer's doing."""
        world = self._world(request)
        invoice = _find(world.simulation.invoices, request, "I")
        status = body_of(request.body, "status")["status"]
        if status not in INVOICE_STATUSES:
            raise RefusalError(400, f"status: {status!r} is none of {', '.join(INVOICE_STATUSES)}")
        if status != "SENT":
            raise RefusalError(409, f"I{invoice.number}: only SENT may be set")
        desk.send_invoice(world.simulation, invoice)
        return ok(views.invoice(invoice), "erp.invoice.status", world.now)

    def payments(self, request: Request) -> Reply:
        """Payments, by status when asked."""
        world = self._world(request)
        statuses = ("RECEIVED", "APPLIED", "UNMATCHED", "REVERSAL")
        found = _by_status(world.simulation.payments, request.query, statuses)
        shown, facts = show(found, request.query, views.payment, (50, 100))
        return ok(shown, "erp.payments", world.now, pagination=facts)

    def payment(self, request: Request) -> Reply:
        """One payment."""
        world = self._world(request)
        return ok(views.payment(_find(world.simulation.payments, request, "P")), "erp.payment", world.now)

    def allocations(self, request: Request) -> Reply:
        """Match a payment to the invoice it is for."""
        world = self._world(request)
        payment = _find(world.simulation.payments, request, "P")
        allocations = body_of(request.body, "allocations")["allocations"]
        if not isinstance(allocations, list):
            raise RefusalError(400, "allocations: a list is required")
        desk.match(world.simulation, payment)
        return ok(views.payment(payment), "erp.payment.applied", world.now)

    def ledger(self, request: Request) -> Reply:
        """The balances."""
        world = self._world(request)
        return ok(views.ledger(world.id, world.simulation.ledger), "ledger.get", world.now)

    def set_ledger(self, request: Request) -> Reply:
        """Set balances outright, booked as a manual entry."""
        return self._set_ledger(request, 200)

    def upsert_ledger(self, request: Request) -> Reply:
        """As `set_ledger`; a world always has a ledger."""
        return self._set_ledger(request, 201)

    def increment_ledger(self, request: Request) -> Reply:
        """Add to balances, booked as a manual entry."""
        world = self._world(request)
        try:
            given = body_of(request.body)
            names = ("cashDelta", "receivablesDelta", "payablesDelta")
            if not any(name in given for name in names):
                raise RefusalError(400, f"body: at least one of {', '.join(names)} is required")  # noqa: TRY301
            cash, receivables, payables = (number(given.get(name, 0.0), name, -1e9, 1e9) for name in names)
        except RefusalError as refusal:
            return _ledger_refusal(refusal)
        _book_manually(world, cash, receivables, payables)
        return ok(views.ledger(world.id, world.simulation.ledger), "ledger.incremented", world.now)

    def ledger_summary(self, request: Request) -> Reply:
        """The balances as an aggregate over the one ledger there is."""
        world = self._world(request)
        books = world.simulation.ledger
        data = {
            "totalCash": round(books.cash, 2),
            "totalReceivables": round(books.receivables, 2),
            "totalPayables": round(books.payables, 2),
            "totalNetPosition": round(books.net, 2),
            "ledgerCount": 1,
            "positiveLedgers": int(books.net > 0),
            "negativeLedgers": int(books.net < 0),
        }
        return ok(data, "ledger.summary", world.now)

    def finance_summary(self, request: Request) -> Reply:
        """Cash in and out since the world began."""
        world = self._world(request)
        books = world.simulation.ledger
        moved = books.incoming + books.outgoing
        data = {
            "totalIncoming": round(books.incoming, 2),
            "totalOutgoing": round(books.outgoing, 2),
            "netBalance": round(books.incoming - books.outgoing, 2),
            "transactionCount": books.transactions,
            "avgTransactionAmount": round(moved / books.transactions, 2) if books.transactions else 0.0,
        }
        return ok(data, "finance.summary", world.now)

    def transactions(self, request: Request) -> Reply:
        """The latest bookings that moved cash."""
        world = self._world(request)
        found: list[Entry] = [entry for entry in world.simulation.ledger.entries if entry.cash]
        kind = request.query.get("type")
        if kind:
            found = [entry for entry in found if (entry.cash > 0) == (kind == "payment_in")]
        shown, facts = show(found, request.query, views.transaction, (20, 100))
        return ok(shown, "finance.transactions", world.now, pagination=facts)

    def create_transaction(self, request: Request) -> Reply:
        """Book a manual movement of cash."""
        world = self._world(request)
        given = body_of(request.body, "type", "amount", "sourceType", "sourceId")
        if given["type"] not in {"payment_in", "payment_out"}:
            raise RefusalError(400, "type: payment_in or payment_out is required")
        amount = round(number(given["amount"], "amount", 0.01, 1e9), 2)
        signed = amount if given["type"] == "payment_in" else -amount
        books = world.simulation.ledger
        entry = books.book(world.now, ("manual", text(given["sourceId"], "sourceId", 200)), cash=signed)
        return ok(views.transaction(entry), "finance.created", world.now, 201)

    def _set_ledger(self, request: Request, status: int) -> Reply:
        world = self._world(request)
        books = world.simulation.ledger
        try:
            given = body_of(request.body)
            cash = number(given.get("cash", books.cash), "cash", -1e9, 1e9)
            receivables = number(
                given.get("totalReceivables", books.receivables), "totalReceivables", -1e9, 1e9
            )
            payables = number(given.get("totalPayables", books.payables), "totalPayables", -1e9, 1e9)
        except RefusalError as refusal:
            return _ledger_refusal(refusal)
        deltas = (cash - books.cash, receivables - books.receivables, payables - books.payables)
        _book_manually(world, *deltas)
        return ok(views.ledger(world.id, books), "ledger.updated", world.now, status)


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
        "fulfillmentRate": shipped / total if total else 0.0,
        "ordersByStatus": [
            {"status": status, "count": count} for status, count in simulation.orders.counts().items()
        ],
        "topCustomers": [],
    }


def _find(shelf: Shelf[Any], request: Request, letter: str) -> Any:
    identifier = request.params["id"]
    digits = identifier[1:]
    thing = None
    if identifier.startswith(letter) and digits.isascii() and digits.isdigit() and len(digits) < 16:
        thing = shelf.get(int(digits))
    if thing is None:
        raise RefusalError(404, f"{identifier[:64]!r} not found")
    return thing


def _by_status(shelf: Shelf[Any], query: Mapping[str, str], known: tuple[str, ...]) -> list[Any]:
    status = query.get("status")
    if not status:
        return list(shelf.things.values())
    if status not in known:
        raise RefusalError(400, f"status: {status[:40]!r} is none of {', '.join(known)}")
    return sorted(shelf.of(status), key=lambda thing: thing.number)


def _whole(shown: list[dict[str, Any]]) -> dict[str, Any]:
    return {"totalCount": len(shown), "limit": len(shown), "hasMore": False, "nextCursor": None}


def _book_manually(world: World, cash: float, receivables: float, payables: float) -> None:
    simulation = world.simulation
    simulation.ledger.book(
        simulation.now, ("manual", "adjustment"), cash=cash, receivables=receivables, payables=payables
    )


def _ledger_refusal(refusal: RefusalError) -> Reply:
    return Reply(refusal.status, {"success": False, "status": refusal.status, "error": str(refusal)})
