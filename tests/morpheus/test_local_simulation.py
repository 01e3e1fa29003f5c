"""The local world under any sequence of API calls: books balance, orders and tickets follow their flow."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skyfall_morpheus.local import desk, intake, warehouse
from skyfall_morpheus.local.api import LocalApi
from skyfall_morpheus.local.ledger import Ledger
from skyfall_morpheus.local.model import FIXABLE, PERSONAS, SCENARIOS, WAITING, Document, Rules
from skyfall_morpheus.local.shelf import Shelf
from skyfall_morpheus.local.simulation import Simulation

ORDER_STEPS = {
    "PENDING": {"RELEASED", "ALLOCATED", "CANCELLED"},
    "RELEASED": {"ALLOCATED", "CANCELLED"},
    "ALLOCATED": {"PICKING", "CANCELLED"},
    "PICKING": {"PICKED", "CANCELLED"},
    "PICKED": {"PACKED", "CANCELLED"},
    "PACKED": {"SHIPPED", "CANCELLED"},
    "SHIPPED": set(),
    "CANCELLED": set(),
}


def reachable(start: str) -> set[str]:
    """Every status that lies ahead of `start`, itself included."""
    seen, ahead = {start}, [start]
    while ahead:
        for following in ORDER_STEPS[ahead.pop()] - seen:
            seen.add(following)
            ahead.append(following)
    return seen


NUMBERS = st.integers(0, 12)
WORD = st.text(max_size=5)
JUNK = st.none() | st.booleans() | st.integers(-5, 10**18) | st.floats() | WORD | st.lists(WORD, max_size=2)
STATUSES = st.sampled_from(
    [
        "SHIPPED",
        "CANCELLED",
        "RELEASED",
        "PACKED",
        "ARCHIVED",
        "SENT",
        "PAID",
        "closed",
        "open",
        "on_hold",
        "new",
    ]
)


class WorldMachine(RuleBasedStateMachine):
    """Random calls against one world; the books are kept a second time, from what the API says."""

    def __init__(self) -> None:
        super().__init__()
        self.api = LocalApi(Rules(retention=15))
        self.statuses: dict[str, str] = {}
        self.tickets: dict[str, str] = {}

    @initialize()
    def create(self) -> None:
        body = {"name": "m", "layout": "process-outbound"}
        self.world = self.api.dispatch("POST", "/world", body=body).body["world"]["_id"]
        policy = {
            "enabled": True,
            "probability": 0.6,
            "scenarios": [{"type": kind, "weight": 1.0} for kind in SCENARIOS],
        }
        assert self.call("PUT", f"/world/{self.world}/chaos", policy) == 200
        self.manual = [0.0, 0.0, 0.0]

    def call(self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> int:
        reply = self.api.dispatch(method, path, query, body)
        assert 200 <= reply.status < 500, (method, path, body, reply.body)
        msgspec.json.encode(reply.body)
        return reply.status

    def of_world(self, method: str, path: str, body: Any = None) -> int:
        return self.call(method, f"/{self.world}/{path}", body)

    @rule(count=st.integers(1, 40))
    def time_passes(self, count: int) -> None:
        for _ in range(count):
            self.call("POST", "/world/act", {"path": f"/{self.world}/od/schedules/status"})

    @rule(partner=st.sampled_from(["P1", "P5", "P9"]), kind=st.sampled_from(["850", "810"]))
    def document_arrives(self, partner: str, kind: str) -> None:
        body = {"partnerId": partner, "docType": kind, "direction": "INBOUND", "rawEdi": ""}
        self.of_world("POST", "edi", body)

    @rule(number=NUMBERS, what=st.sampled_from(["requeue", "correct", "archive"]))
    def document_is_worked_on(self, number: int, what: str) -> None:
        path = f"edi/E{number}"
        if what == "requeue":
            self.of_world("POST", f"{path}/requeue")
        elif what == "correct":
            self.of_world("PATCH", path, {"payload": {"x": 1}})
        else:
            self.of_world("PATCH", f"{path}/status", {"status": "ARCHIVED"})

    @rule(number=NUMBERS, quantity=st.integers(0, 40))
    def order_is_allocated(self, number: int, quantity: int) -> None:
        self.of_world(
            "PUT", f"wms/outbound-orders/O{number}/lines/1/allocate", {"allocatedQuantity": quantity}
        )

    @rule()
    def everything_is_pushed_along(self) -> None:
        """What a diligent agent does, so that deep states are reached."""
        simulation = self.api.worlds.by_id[self.world].simulation
        for order in simulation.orders.of("PENDING"):
            body = {"allocatedQuantity": order.quantity - order.allocated}
            self.of_world("PUT", f"wms/outbound-orders/O{order.number}/lines/1/allocate", body)
        for order in simulation.orders.of("PACKED"):
            self.of_world("PUT", f"wms/outbound-orders/O{order.number}/status", {"status": "SHIPPED"})
        for invoice in simulation.invoices.of("DRAFT"):
            self.of_world("PUT", f"erp/invoices/I{invoice.number}/status", {"status": "SENT"})

    @rule(number=NUMBERS, status=STATUSES, thing=st.sampled_from(["O", "I", "T", "E"]))
    def a_status_is_set(self, number: int, status: str, thing: str) -> None:
        route = {
            "O": ("PUT", f"wms/outbound-orders/O{number}/status"),
            "I": ("PUT", f"erp/invoices/I{number}/status"),
            "T": ("PATCH", f"tickets/T{number}/status"),
            "E": ("PATCH", f"edi/E{number}/status"),
        }[thing]
        self.of_world(*route, {"status": status})

    @rule(number=NUMBERS)
    def money_is_asked_for(self, number: int) -> None:
        self.of_world("PUT", f"erp/invoices/I{number}", {"allowances": [{"type": "early-payment"}]})
        self.of_world("PUT", f"erp/payments/P{number}/allocations", {"allocations": []})

    @rule(number=NUMBERS)
    def a_ticket_is_verified_and_assigned(self, number: int) -> None:
        self.of_world("POST", "verification/verify-ticket", {"ticketId": f"T{number}"})
        self.of_world("PUT", f"tickets/T{number}", {"assignedTo": "supervisor"})

    @rule(number=NUMBERS)
    def a_ticket_is_dropped_and_another_opened(self, number: int) -> None:
        if self.of_world("DELETE", f"tickets/T{number}") == 200:
            self.tickets.pop(f"T{number}", None)
        body = {"title": "t", "description": "d", "requester": "r"}
        assert self.of_world("POST", "tickets", body) == 201

    @rule(deltas=st.lists(st.integers(-5000, 5000), min_size=3, max_size=3))
    def the_books_are_adjusted(self, deltas: list[int]) -> None:
        names = ("cashDelta", "receivablesDelta", "payablesDelta")
        assert self.of_world("PATCH", "ledger/increment", dict(zip(names, deltas, strict=True))) == 200
        self.manual = [old + new for old, new in zip(self.manual, deltas, strict=True)]

    @rule(count=st.integers(0, 6), interval=st.sampled_from([5, 40]))
    def the_configuration_changes(self, count: int, interval: int) -> None:
        body = {"personas": {"allowedPersonas": list(PERSONAS[:count])}}
        assert self.call("PATCH", f"/world/{self.world}", body) == 200
        path = "od/descriptors/od-inbound-edi/schedule"
        assert self.of_world("POST", path, {"type": "recurring", "interval": f"{interval} minutes"}) == 201

    @rule(
        method=st.sampled_from(["GET", "POST", "PUT", "PATCH"]),
        path=st.sampled_from(
            [
                "edi",
                "edi/E1",
                "edi/E1/status",
                "tickets",
                "tickets/T1",
                "tickets/T1/status",
                "ledger",
                "tickets/T1/work-notes",
                "ledger/increment",
                "finance/transactions",
                "wms/outbound-orders/O1/status",
                "wms/outbound-orders/status",
                "wms/outbound-orders/O1/lines/1/allocate",
                "erp/invoices/I1",
                "verification/verify-ticket",
                "verification/verify-entity",
                "od/descriptors/od-inbound-edi/schedule",
                "logs",
                "audit-logs",
                "overview",
            ]
        ),
        body=JUNK
        | st.dictionaries(
            st.sampled_from(
                ["status", "payload", "ticketId", "workNotes", "allocatedQuantity", "title", "type"]
            ),
            JUNK,
        ),
        query=st.dictionaries(st.sampled_from(["status", "limit", "cursor", "level"]), WORD),
    )
    def junk_is_sent(self, method: str, path: str, body: Any, query: dict[str, str]) -> None:
        if method != "GET" and path.split("/", maxsplit=1)[0] in {"ledger", "finance"}:
            body = {"junk": body}
        self.call(method, f"/{self.world}/{path}", body, query)

    @invariant()
    def the_ledger_is_what_was_booked(self) -> None:
        if not hasattr(self, "world"):
            return
        books = self.api.worlds.by_id[self.world].simulation.ledger
        shown = self.api.dispatch("GET", f"/{self.world}/ledger").body["data"]
        assert shown["netPosition"] == pytest.approx(
            shown["cash"] + shown["totalReceivables"] - shown["totalPayables"], abs=0.02
        )
        assert shown["cash"] == pytest.approx(100_000 + books.incoming - books.outgoing, abs=0.02)
        assert books.totals.get("manual", [0.0] * 3) == pytest.approx(self.manual)
        simulation = self.api.worlds.by_id[self.world].simulation
        open_invoices = sum(one.balance for one in simulation.invoices.of("SENT", "PARTIALLY_PAID"))
        assert books.receivables - self.manual[1] == pytest.approx(open_invoices, abs=0.02)
        open_bills = sum(amount for amount, _, _ in simulation.bills.values())
        assert books.payables - self.manual[2] == pytest.approx(open_bills, abs=0.02)

    @invariant()
    def orders_only_move_forward(self) -> None:
        if not hasattr(self, "world"):
            return
        simulation = self.api.worlds.by_id[self.world].simulation
        for order in simulation.orders.things.values():
            identifier = f"O{order.number}"
            assert order.status in reachable(self.statuses.get(identifier, order.status))
            self.statuses[identifier] = order.status
            assert 0 <= order.allocated <= order.quantity
            assert (
                order.status not in {"PICKING", "PICKED", "PACKED", "SHIPPED"}
                or order.allocated == order.quantity
            )
        assert simulation.busy == simulation.orders.count("PICKING", "PICKED")
        assert all(level >= 0 for level in simulation.stock)

    @invariant()
    def closed_tickets_stay_closed(self) -> None:
        if not hasattr(self, "world"):
            return
        for ticket in self.api.worlds.by_id[self.world].simulation.tickets.things.values():
            if self.tickets.get(f"T{ticket.number}") == "closed":
                assert ticket.status == "closed"
            self.tickets[f"T{ticket.number}"] = ticket.status

    @invariant()
    def nothing_finished_piles_up(self) -> None:
        if not hasattr(self, "world"):
            return
        simulation = self.api.worlds.by_id[self.world].simulation
        shelves = (simulation.documents, simulation.orders, simulation.invoices, simulation.payments)
        for shelf in (*shelves, simulation.tickets):
            finished = [one for one in shelf.things.values() if one.status in shelf.finished]
            assert shelf.unfinished == len(shelf.things) - len(finished)
            shelf._trim()  # what is no longer needed goes when the next thing finishes, or now
            kept = [one for one in finished if one.number in shelf.things]
            assert len(kept) <= max(shelf.retention, sum(map(shelf.needed, kept)))
        assert len(simulation.journal.logs) <= 15


TestWorldMachine = WorldMachine.TestCase
TestWorldMachine.settings = settings(
    max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_a_seed_decides_everything_and_another_decides_otherwise() -> None:
    def history(seed: int) -> list[Any]:
        world = Simulation(seed)
        world.chaos = {
            "enabled": True,
            "probability": 0.5,
            "scenarios": [{"type": "format_change", "weight": 1.0}],
        }
        world.advance(3000.0)
        return [(one.value, one.received, one.status, one.failure) for one in world.documents.things.values()]

    assert history(1) == history(1)
    assert history(1) != history(2)


def test_what_an_agent_does_changes_nothing_about_what_arrives() -> None:
    def arrivals(busy: bool) -> list[Any]:
        world = Simulation(3)
        for _ in range(200):
            world.advance(10.0)
            if busy:
                for order in world.orders.of("PENDING"):
                    if world.stock[order.product] >= order.quantity:
                        desk.allocate(world, order, order.quantity)
        return [(one.number, one.value, one.received) for one in world.documents.things.values()]

    assert arrivals(busy=True) == arrivals(busy=False)


def test_advancing_in_small_steps_or_large_ones_comes_to_the_same() -> None:
    fine, coarse = Simulation(4), Simulation(4)
    for _ in range(600):
        fine.advance(5.0)
    coarse.advance(3000.0)
    assert [one.received for one in fine.documents.things.values()] == [
        one.received for one in coarse.documents.things.values()
    ]
    assert fine.ledger.net == pytest.approx(coarse.ledger.net)


def _stuck(failure: str) -> tuple[Simulation, Document]:
    world = Simulation(5)
    world.paused = True
    world.chaos = {"enabled": True, "probability": 1.0, "scenarios": [{"type": failure, "weight": 1.0}]}
    document = intake.receive(world)
    world.advance(5.0)
    assert (document.status, document.failure) == ("ERRORED", failure)
    return world, document


@pytest.mark.parametrize("failure", sorted(SCENARIOS))
def test_each_failure_has_its_own_remedy_and_only_that_one(failure: str) -> None:
    world, document = _stuck(failure)
    ticket = world.tickets.get(document.ticket)
    assert ticket is not None
    assert not desk.verify(world, ticket)
    if failure == "duplicate_data":
        desk.archive(world, document)
        assert desk.verify(world, ticket)
        assert world.lost == 0
        return
    desk.requeue(world, document)
    world.advance(2.0)
    assert document.status == "ERRORED", "an untouched failure went away"
    if failure in FIXABLE:
        desk.correct(world, document, {"fixed": True})
    elif failure in WAITING:
        world.advance(document.retry_at - world.now)
    else:
        ticket.assigned = "supervisor"
    desk.requeue(world, document)
    world.advance(2.0)
    assert document.status == "DELIVERED"
    assert world.orders.get(document.order) is not None
    assert desk.verify(world, ticket)


def test_trying_again_too_early_makes_an_outage_last_longer() -> None:
    world, document = _stuck("rate_limit")
    first = document.retry_at
    desk.requeue(world, document)
    world.advance(2.0)
    assert document.retry_at > first


def test_a_duplicate_that_is_shipped_costs_its_goods_and_earns_nothing() -> None:
    world, document = _stuck("duplicate_data")
    desk.requeue(world, document)
    world.advance(2.0)
    order = world.orders.get(document.order)
    assert order is not None
    desk.allocate(world, order, order.quantity)
    world.advance(100.0)
    desk.ship(world, order)
    invoice = world.invoices.get(order.invoice)
    assert invoice is not None
    before = world.ledger.net
    desk.send_invoice(world, invoice)
    assert invoice.status == "REJECTED"
    assert world.ledger.net == pytest.approx(before - 0.6 * order.value, abs=0.01)


def test_late_and_lost_orders_cost_money() -> None:
    world = Simulation(6)
    world.paused = True
    document = intake.receive(world)
    world.advance(479.0)
    assert world.ledger.payables == 0
    world.advance(2.0)
    assert world.ledger.payables == pytest.approx(0.1 * document.value, abs=0.01)
    world.advance(2000.0)
    assert document.lost
    order = world.orders.get(document.order)
    assert order is not None
    assert order.status == "CANCELLED"
    # late at 480, 720 and 960 minutes, lost at 1,200
    assert 100_000 - world.ledger.net == pytest.approx((3 * 0.1 + 0.15) * document.value, abs=0.05)


def test_negative_cash_bears_interest_up_to_the_limit() -> None:
    world = Simulation(7)
    world.paused = True
    world.ledger.book(0.0, ("manual", "x"), cash=-1100_000.0)
    world.advance(60.0)
    assert world.ledger.payables == pytest.approx(100_000 * 0.01, abs=0.1)


def test_fewer_workers_pick_fewer_orders_at_a_time() -> None:
    world = Simulation(8)
    world.personas = PERSONAS[:2]
    for _ in range(5):
        intake.receive(world)
    world.advance(5.0)
    for order in world.orders.of("PENDING"):
        desk.allocate(world, order, order.quantity)
    assert (world.busy, world.orders.count("PICKING"), world.orders.count("ALLOCATED")) == (2, 2, 3)
    world.advance(300.0)
    assert world.orders.count("PACKED") == 5


def test_higher_priority_is_picked_first() -> None:
    world = Simulation(9)
    world.personas = ()
    for _ in range(3):
        intake.receive(world)
    world.advance(5.0)
    orders = world.orders.of("PENDING")
    for order in orders:
        desk.allocate(world, order, order.quantity)
    desk.set_priority(world, orders[2], "URGENT")
    world.personas = PERSONAS[:1]
    warehouse.dispatch(world)
    assert [order.status for order in orders] == ["ALLOCATED", "ALLOCATED", "PICKING"]


def test_a_shelf_forgets_finished_things_and_keeps_their_count() -> None:
    world = Simulation(10)
    shelf: Shelf[Document] = Shelf(frozenset({"DELIVERED"}), 2)
    for number in range(1, 6):
        document = intake.receive(world)
        document.number = number
        shelf.add(document)
        shelf.move(document, "DELIVERED", 0.0)
    assert sorted(shelf.things) == [4, 5]
    assert (shelf.count("DELIVERED"), shelf.total(), shelf.counts()) == (5, 5, {"DELIVERED": 5})


def test_the_ledger_books_what_it_is_told() -> None:
    books = Ledger(100.0, 10)
    books.book(1.0, ("invoice", "I1"), receivables=50.0)
    books.book(2.0, ("payment", "P1"), cash=50.0, receivables=-50.0)
    books.book(3.0, ("bill", "B1"), payables=30.0)
    assert (books.cash, books.receivables, books.payables, books.net) == (150.0, 0.0, 30.0, 120.0)
    assert (books.incoming, books.outgoing, books.transactions) == (50.0, 0.0, 1)
