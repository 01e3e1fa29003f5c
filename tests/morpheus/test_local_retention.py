"""Worlds that nobody looks after for months: whatever arrives is given up some day, and nothing piles up."""

from __future__ import annotations

import math
from typing import Any

import pytest

from skyfall_core.regime import ScheduledRegime
from skyfall_morpheus.axes import AxisApplier
from skyfall_morpheus.client import MorpheusClient
from skyfall_morpheus.configurations import CANONICAL
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.local import desk, intake
from skyfall_morpheus.local.api import LocalApi
from skyfall_morpheus.local.model import SCENARIOS, Document, Rules
from skyfall_morpheus.local.simulation import Simulation
from skyfall_morpheus.scripted import ScriptedPolicy
from skyfall_morpheus.transport import LocalTransport

DAY = 1440.0
EVERYTHING = {
    "chaos_probability": 0.6,
    "chaos_scenarios": dict.fromkeys(SCENARIOS, 1.0),
    "edi_interval_minutes": 8.0,
}
CONFIGURATIONS = {**CANONICAL, "every failure, every eight minutes": EVERYTHING}


def held(world: Simulation) -> dict[str, int]:
    """How much a world holds of everything it has a collection for."""
    shelves = {name: thing for name, thing in vars(world).items() if hasattr(thing, "things")}
    counts = {name: len(shelf.things) for name, shelf in shelves.items()}
    counts |= {f"{name}, unfinished": shelf.unfinished for name, shelf in shelves.items()}
    return counts | {
        "logs": len(world.journal.logs),
        "errors": len(world.journal.errors),
        "audits": len(world.journal.audits),
        "entries": len(world.ledger.entries),
        "totals": len(world.ledger.totals),
        "bills": len(world.bills),
        "restocking": len(world.restocking),
        "events": len(world.events),
    }


def documented(world: Simulation) -> dict[str, int]:
    """The bounds of docs/morpheus/local-world.md for a world in which nobody works."""
    rules, keep = world.rules, world.rules.retention

    def arrivals(minutes: float) -> int:
        return math.ceil(minutes / (0.5 * world.edi_interval)) + 1

    day = arrivals(max(rules.order_lead + rules.order_lifetime, rules.patience))
    three_days = arrivals(3 * rules.patience)
    bills = 3 * (day + arrivals(rules.bill_terms)) + math.ceil(rules.bill_terms / 10.0) + 1
    return {
        "documents, unfinished": day,
        "documents": day + max(keep, day + three_days),
        "orders, unfinished": day,
        "orders": day + keep,
        "invoices, unfinished": 0,
        "invoices": 0,
        "payments, unfinished": 0,
        "payments": 0,
        "tickets, unfinished": three_days,
        "tickets": three_days + keep,
        "logs": keep,
        "errors": keep,
        "audits": keep,
        "entries": 2 * keep,
        "totals": 5,
        "bills": bills,
        "restocking": 20,
        "events": 22 + 3 * day + three_days + bills,
    }


def exceeded(world: Simulation) -> dict[str, tuple[int, int]]:
    bounds = documented(world)
    counts = held(world)
    assert counts.keys() == bounds.keys()
    return {name: (count, bounds[name]) for name, count in counts.items() if count > bounds[name]}


def world_in(axes: dict[str, Any], rules: Rules | None = None) -> Simulation:
    """A world brought into a configuration as the environment does it."""
    client = MorpheusClient("local:", rules=rules)
    world_id = client.create_world("neglected", "process-outbound").id
    AxisApplier().apply(client, world_id, axes)
    transport = client._transport
    assert isinstance(transport, LocalTransport)
    return transport.api.worlds.by_id[world_id].simulation


def assert_conserved(world: Simulation) -> None:
    """Every cent that was ever booked is in the balances, the forgotten bookings included."""
    books = world.ledger
    cash, receivables, payables = (
        sum(total[position] for total in books.totals.values()) for position in range(3)
    )
    assert round(books.cash - books.opening - cash, 4) == 0.0
    assert round(books.receivables - receivables, 4) == 0.0
    assert round(books.payables - payables, 4) == 0.0
    assert round(books.incoming - books.outgoing - cash, 4) == 0.0
    owed = sum(amount for amount, _, _ in world.bills.values())
    assert round(books.payables - owed, 4) == 0.0


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_neglected_world_holds_no_more_than_is_documented(name: str) -> None:
    world = world_in(CONFIGURATIONS[name])
    fullest: dict[str, int] = {}
    for _ in range(45):
        world.advance(2 * DAY)
        assert exceeded(world) == {}
        assert_conserved(world)
        fullest = {kind: max(count, fullest.get(kind, 0)) for kind, count in held(world).items()}
    seen, lost = world.documents.total(), world.lost
    assert seen > 90 * DAY / (1.1 * world.edi_interval)
    assert world.documents.count("ARCHIVED", "DELIVERED") > seen - documented(world)["documents, unfinished"]
    assert lost > 0.3 * seen
    assert fullest["documents"] >= world.rules.retention, "the world never filled up, so nothing was shown"


def stuck(failure: str, rules: Rules | None = None) -> tuple[Simulation, Document]:
    """A world whose one document meets a failure and in which nothing else arrives."""
    world = Simulation(5, rules)
    world.paused = True
    world.chaos = {"enabled": True, "probability": 1.0, "scenarios": [{"type": failure, "weight": 1.0}]}
    document = intake.receive(world)
    world.advance(5.0)
    assert (document.status, document.failure) == ("ERRORED", failure)
    return world, document


def test_the_office_puts_a_neglected_duplicate_away_after_a_day_and_nobody_is_paid() -> None:
    world, document = stuck("duplicate_data")
    ticket = world.tickets.get(document.ticket)
    assert ticket is not None
    world.advance(world.rules.patience - 10.0)
    assert (document.status, ticket.status) == ("ERRORED", "new")
    world.advance(10.0)
    assert (document.status, ticket.status) == ("ARCHIVED", "resolved")
    assert not desk.verify(world, ticket), "the failure is not gone, somebody only stopped waiting"
    assert (world.given_up, world.lost, world.ledger.net) == (1, 0, 100_000.0)


@pytest.mark.parametrize(("doc_type", "inbound"), [("810", True), ("850", False)])
def test_a_stuck_document_that_orders_nothing_expires_as_well(doc_type: str, inbound: bool) -> None:
    world, _ = stuck("format_change")
    document = intake.receive(world, 0, doc_type, inbound=inbound)
    world.advance(world.rules.patience - 10.0)
    assert document.status == "ERRORED"
    world.advance(20.0)
    assert document.status == "ARCHIVED"


def test_a_duplicate_that_became_an_order_is_given_up_with_its_goods_back_on_the_shelf() -> None:
    world, document = stuck("duplicate_data")
    desk.requeue(world, document)
    world.advance(2.0)
    order = world.orders.get(document.order)
    assert order is not None
    desk.allocate(world, order, order.quantity)
    world.advance(200.0)
    assert order.status == "PACKED"
    world.advance(world.rules.patience)
    assert (order.status, world.lost, world.busy) == ("CANCELLED", 0, 0)
    assert world.stock[order.product] == world.rules.stock
    assert world.ledger.net == 100_000.0


def test_what_an_unfinished_thing_refers_to_outlives_the_retention() -> None:
    """An order still ends in time, and a duplicate is still rejected, when hundreds finished since."""
    world = Simulation(6, Rules(retention=1))
    world.paused = True
    first = intake.receive(world)
    for _ in range(20):
        intake.receive(world)
    world.advance(5.0)
    order = world.orders.get(first.order)
    assert order is not None
    assert world.documents.get(first.number) is first
    world.advance(world.rules.order_lead + world.rules.order_lifetime)
    assert (order.status, world.lost, world.orders.unfinished) == ("CANCELLED", 21, 0)

    world, document = stuck("duplicate_data", Rules(retention=1))
    desk.requeue(world, document)
    world.advance(2.0)
    duplicate = world.orders.get(document.order)
    assert duplicate is not None
    desk.allocate(world, duplicate, duplicate.quantity)
    world.advance(200.0)
    desk.ship(world, duplicate)
    world.chaos["enabled"] = False
    for _ in range(5):
        desk.cancel(world, delivered(world))
    world.advance(world.rules.patience)
    assert world.invoices.counts() == {"REJECTED": 1}


def delivered(world: Simulation) -> Any:
    """The order of another document, which went through."""
    document = intake.receive(world)
    world.advance(2.0)
    return world.orders.get(document.order)


def test_waiting_is_not_paid_for_documents_that_the_world_gives_up() -> None:
    env = MorpheusEnv("local:", episode_steps=None)
    env.bind_regime(ScheduledRegime({"regimes": [{"regime_id": "x", "axes": EVERYTHING}]}))
    observation, _ = env.reset(seed=3)
    fell = 0
    for _ in range(300):
        before = observation["state"]["edi"]["errored"]
        observation, _, _, _, info = env.step("wait")
        fell += observation["state"]["edi"]["errored"] < before
        inputs = info["trace"]["reward_inputs"]
        assert (inputs["edi_recovered"], inputs["tickets_closed"]) == (0.0, 0.0)
        assert info["reward_components"]["process"] == 0.0
    assert fell > 10, "nothing was given up, so nothing was shown"
    env.close()


@pytest.mark.parametrize(("failure", "recovered"), [("duplicate_data", 1.0), ("format_change", 0.0)])
def test_putting_away_is_recovery_for_a_duplicate_and_none_for_what_a_customer_waits_for(
    failure: str, recovered: float
) -> None:
    env = MorpheusEnv("local:")
    axes = {"chaos_probability": 1.0, "chaos_scenarios": {failure: 1.0}}
    env.bind_regime(ScheduledRegime({"regimes": [{"regime_id": "x", "axes": axes}]}))
    observation, _ = env.reset(seed=4)
    while not observation["state"]["edi"]["items"]:
        observation, *_ = env.step("wait")
    path = f"/:worldId/edi/{observation['state']['edi']['items'][0]['id']}/status"
    *_, info = env.step({"method": "PATCH", "path": path, "body": {"status": "ARCHIVED"}})
    assert info["invalid_action"] is False
    assert info["trace"]["reward_inputs"]["edi_recovered"] == recovered
    env.close()


def test_nobody_adds_by_hand_to_a_pile_that_is_too_high() -> None:
    api = LocalApi(Rules(backlog=3))
    world = api.dispatch("POST", "/world", body={"name": "w", "layout": "process-outbound"}).body["world"][
        "_id"
    ]
    document = {"partnerId": "P1", "docType": "850", "direction": "INBOUND"}
    ticket = {"title": "t", "description": "d", "requester": "r"}
    for path, body in (("edi", document), ("tickets", ticket)):
        answers = [api.dispatch("POST", f"/{world}/{path}", body=body).status for _ in range(5)]
        assert answers == [201, 201, 201, 409, 409]
    api.worlds.by_id[world].simulation.advance(5.0)
    assert api.dispatch("POST", f"/{world}/edi", body=document).status == 201


def test_an_agent_that_closes_its_tickets_remembers_none_of_them() -> None:
    env = MorpheusEnv("local:", episode_steps=None)
    env.bind_regime(ScheduledRegime({"regimes": [{"regime_id": "x", "axes": CANONICAL["baseline"]}]}))
    observation, _ = env.reset(seed=5)
    policy = ScriptedPolicy("baseline")
    for _ in range(400):
        observation, *_ = env.step(policy.act(observation))
    assert observation["state"]["tickets"]["closed"] > 5
    open_ones = {ticket["id"] for ticket in observation["state"]["tickets"]["items"] if ticket["verified"]}
    assert set(env._actor.verified) == open_ones
    env.close()
