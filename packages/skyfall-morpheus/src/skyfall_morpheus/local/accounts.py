"""Routes of the office: companies, products, invoices, payments, ledger and finance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import desk, views
from skyfall_morpheus.local.answers import body_of, by_status, find, in_period, number, ok, show, text
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.handlers import Handlers
from skyfall_morpheus.local.model import COMPANIES, PRODUCTS
from skyfall_morpheus.local.routing import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skyfall_morpheus.local.ledger import Entry
    from skyfall_morpheus.local.model import Invoice, Payment
    from skyfall_morpheus.local.routing import Handler
    from skyfall_morpheus.local.worlds import World

__all__ = ["Accounts"]

INVOICE_STATUSES = ("DRAFT", "VALIDATED", "SENT", "PARTIALLY_PAID", "PAID", "REJECTED")


class Accounts(Handlers):
    """Routes of the office: companies, products, invoices, payments, ledger and finance."""

    def routes(self) -> Iterable[tuple[str, Handler]]:
        """What answers what."""
        return (
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
        )

    def invoices(self, request: Request) -> Reply:
        """Invoices, by status when asked."""
        world = self._world(request)
        found = by_status(world.simulation.invoices, request.query, INVOICE_STATUSES)
        wanted = in_period(request.query)
        found = [one for one in found if wanted(one.issued) and _customer(one, request.query)]
        shown, facts = show(found, request.query, views.invoice, (50, 100))
        return ok(shown, "erp.invoices", world.now, pagination=facts)

    def invoice(self, request: Request) -> Reply:
        """One invoice."""
        world = self._world(request)
        return ok(views.invoice(find(world.simulation.invoices, request, "I")), "erp.invoice", world.now)

    def update_invoice(self, request: Request) -> Reply:
        """Offer an early-payment allowance, the one thing about an invoice that may change."""
        world = self._world(request)
        invoice = find(world.simulation.invoices, request, "I")
        allowances = body_of(request.body, "allowances")["allowances"]
        if not isinstance(allowances, list) or not allowances:
            raise RefusalError(400, "allowances: a list with the early-payment allowance is required")
        desk.discount(world.simulation, invoice)
        return ok(views.invoice(invoice), "erp.invoice.updated", world.now)

    def invoice_status(self, request: Request) -> Reply:
        """Send a draft; what follows is the customer's doing."""
        world = self._world(request)
        invoice = find(world.simulation.invoices, request, "I")
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
        found = by_status(world.simulation.payments, request.query, statuses)
        wanted = in_period(request.query)
        found = [one for one in found if wanted(one.received) and _customer(one, request.query)]
        shown, facts = show(found, request.query, views.payment, (50, 100))
        return ok(shown, "erp.payments", world.now, pagination=facts)

    def payment(self, request: Request) -> Reply:
        """One payment."""
        world = self._world(request)
        return ok(views.payment(find(world.simulation.payments, request, "P")), "erp.payment", world.now)

    def allocations(self, request: Request) -> Reply:
        """Match a payment to the invoice it is for."""
        world = self._world(request)
        payment = find(world.simulation.payments, request, "P")
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
        wanted = in_period(request.query)
        entries = world.simulation.ledger.entries
        found: list[Entry] = [entry for entry in entries if entry.cash and wanted(entry.time)]
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


def _whole(shown: list[dict[str, Any]]) -> dict[str, Any]:
    return {"totalCount": len(shown), "limit": len(shown), "hasMore": False, "nextCursor": None}


def _book_manually(world: World, cash: float, receivables: float, payables: float) -> None:
    simulation = world.simulation
    simulation.ledger.book(
        simulation.now, ("manual", "adjustment"), cash=cash, receivables=receivables, payables=payables
    )


def _ledger_refusal(refusal: RefusalError) -> Reply:
    return Reply(refusal.status, {"success": False, "status": refusal.status, "error": str(refusal)})


def _customer(one: Invoice | Payment, query: Mapping[str, str]) -> bool:
    return query.get("customerId", f"P{one.partner + 1}") == f"P{one.partner + 1}"
