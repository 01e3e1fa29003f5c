"""A whole world as one JSON value, and the world that goes on from it as if nothing had happened.

A snapshot holds everything that decides what happens next: things and their order, pending events,
where every stream of random numbers stands, the rules. A world restored from it answers every call as
the original would have. It carries a digest, so one that was damaged or edited is refused.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from skyfall_morpheus.local.model import Document, Invoice, Order, Payment, Rules, Ticket
from skyfall_morpheus.local.simulation import Simulation
from skyfall_morpheus.local.streams import packed, unpacked

if TYPE_CHECKING:
    from skyfall_morpheus.local.shelf import Shelf
    from skyfall_morpheus.local.worlds import World

__all__ = ["SnapshotError", "restore", "snapshot"]

VERSION = 2

_PLAIN = (
    "seed",
    "now",
    "chaos",
    "edi_interval",
    "paused",
    "tickets_enabled",
    "stock",
    "shipped_on_time",
    "shipped_late",
    "lost",
    "given_up",
    "busy",
    "sequence",
)
_RECORD = (
    "id",
    "name",
    "layout",
    "url",
    "description",
    "real_hours_per_sim_day",
    "sampling",
    "capability_ids",
    "process_chaos",
    "infra_chaos",
)


class SnapshotError(Exception):
    """What was given is no snapshot; the text says why."""


def snapshot(world: World) -> dict[str, Any]:
    """The world as plain JSON values: `version`, `digest`, `state`."""
    record = {name: getattr(world, name) for name in _RECORD}
    state = {"world": record, "simulation": _simulation_state(world.simulation)}
    copied = msgspec.json.decode(msgspec.json.encode(state))
    return {"version": VERSION, "digest": _digest(copied), "state": copied}


def restore(given: Any) -> tuple[dict[str, Any], Simulation]:
    """What `snapshot` wrote: the world's record by field, and its simulation.

    Raises:
        SnapshotError: It is no snapshot, of another version, or was changed.
    """
    if not isinstance(given, dict) or not isinstance(given.get("state"), dict):
        raise SnapshotError("snapshot: an object with version, digest and state is required")
    if given.get("version") != VERSION:
        raise SnapshotError(f"snapshot.version: {given.get('version')!r} is not {VERSION}")
    state = given["state"]
    if given.get("digest") != _digest(state):
        raise SnapshotError("snapshot.digest: does not fit; the snapshot was changed or damaged")
    record = {name: state["world"][name] for name in _RECORD}
    return record, _loaded_simulation(state["simulation"])


def _digest(state: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(state, order="sorted")).hexdigest()


def _shelves(world: Simulation) -> tuple[tuple[str, Shelf[Any], type[Any]], ...]:
    return (
        ("documents", world.documents, Document),
        ("orders", world.orders, Order),
        ("invoices", world.invoices, Invoice),
        ("payments", world.payments, Payment),
        ("tickets", world.tickets, Ticket),
    )


def _simulation_state(world: Simulation) -> dict[str, Any]:
    return {
        **{name: getattr(world, name) for name in _PLAIN},
        "rules": asdict(world.rules),
        "personas": list(world.personas),
        "ledger": world.ledger.state(),
        "journal": world.journal.state(),
        "shelves": {name: shelf.state() for name, shelf, _ in _shelves(world)},
        "bills": [[number, *bill] for number, bill in world.bills.items()],
        "restocking": sorted(world.restocking),
        "events": [list(event) for event in world.events],
        "arrivals": packed(world.arrivals),
        "contents": packed(world.contents),
    }


def _loaded_simulation(state: dict[str, Any]) -> Simulation:
    world = Simulation(state["seed"], msgspec.convert(state["rules"], Rules))
    for name in _PLAIN:
        setattr(world, name, state[name])
    world.personas = tuple(state["personas"])
    world.ledger.load(state["ledger"])
    world.journal.load(state["journal"])
    for name, shelf, kind in _shelves(world):
        shelf.load(state["shelves"][name], kind)
    world.bills = {number: (amount, source, partner) for number, amount, source, partner in state["bills"]}
    world.restocking = set(state["restocking"])
    world.events = [(time, order, kind, number) for time, order, kind, number in state["events"]]
    world.arrivals = unpacked(state["arrivals"])
    world.contents = unpacked(state["contents"])
    return world
