"""The worlds one server holds, and the routes that create, change and end them."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import views, warehouse
from skyfall_morpheus.local.answers import body_of, number, ok, text
from skyfall_morpheus.local.chaos import checked_policy
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.model import PERSONAS, Rules
from skyfall_morpheus.local.routing import Reply, Request
from skyfall_morpheus.local.simulation import Simulation
from skyfall_morpheus.local.snapshot import SnapshotError, restore, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skyfall_morpheus.local.routing import Router

__all__ = ["LAYOUTS", "World", "Worlds"]

LAYOUTS = {
    "process-outbound": "Outbound fulfillment: EDI purchase orders to shipped and paid.",
    "perishables-food-manufacturer": "The same flow under the name of the hosted default layout.",
}


@dataclass(slots=True)
class World:
    """A world's record around its simulation."""

    number: int
    id: str
    name: str
    layout: str
    url: str
    description: str | None
    simulation: Simulation
    is_default: bool = False
    real_hours_per_sim_day: float = 2.0
    sampling: dict[str, Any] = field(default_factory=lambda: {"type": "all"})
    capability_ids: list[str] = field(default_factory=list)
    process_chaos: bool = False
    infra_chaos: bool = False
    seen: float = 0.0

    @property
    def now(self) -> float:
        """The world's simulated time."""
        return self.simulation.now

    def record(self) -> dict[str, Any]:
        """The world as the API shows it."""
        simulation = self.simulation
        chaos: dict[str, Any] = dict(simulation.chaos)
        return {
            "_id": self.id,
            "name": self.name,
            "url": self.url,
            "is_default": self.is_default,
            "createdAt": views.stamp(0.0),
            "updatedAt": views.stamp(simulation.now),
            "description": self.description,
            "layout": self.layout,
            "mpcCompany": "MPC",
            "realHoursPerSimDay": self.real_hours_per_sim_day,
            "samplingStrategy": self.sampling,
            "capabilityIds": self.capability_ids,
            "personas": {"allowedPersonas": list(simulation.personas), "personaOverrides": {}},
            "chaos": {
                **chaos,
                "processChaosEnabled": self.process_chaos,
                "infraChaosEnabled": self.infra_chaos,
            },
            "ticketCreationEnabled": simulation.tickets_enabled,
        }


class Worlds:
    """Every world of a server, by id.

    Args:
        rules: The numbers new worlds follow.
        seed: Mixed into the seed of worlds nobody seeded.
        real_time: Whether time passes by the wall clock instead of by action.
        clock: Seconds, for `real_time`.
    """

    def __init__(
        self,
        rules: Rules | None = None,
        seed: int = 0,
        *,
        real_time: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rules = rules or Rules()
        self.seed = seed
        self.real_time = real_time
        self.clock = clock
        self.by_id: dict[str, World] = {}
        self._created = 0

    def find(self, identifier: str) -> World:
        """The world, its clock caught up.

        Raises:
            RefusalError: 404 when there is none.
        """
        world = self.by_id.get(identifier)
        if world is None:
            raise RefusalError(404, f"world {identifier[:64]!r} not found")
        if self.real_time:
            now = self.clock()
            hours = (now - world.seen) / 3600.0
            world.simulation.advance(min(hours / world.real_hours_per_sim_day, 30.0) * 1440.0)
            world.seen = now
        return world

    def tick(self, world: World) -> None:
        """Let an action's time pass, unless the wall clock rules."""
        if not self.real_time:
            world.simulation.advance(world.simulation.rules.tick_minutes)

    def add_routes(self, router: Router) -> None:
        """Register the routes of this module."""
        for route, handler in (
            ("POST /world", self.create),
            ("GET /world", self.list),
            ("GET /world/layouts", self.layouts),
            ("GET /world/layouts/{layout}", self.layout),
            ("POST /world/restore", self.restore),
            ("GET /world/{w}", self.get),
            ("PATCH /world/{w}", self.update),
            ("DELETE /world/{w}", self.delete),
            ("POST /world/{w}/reset", self.reset),
            ("GET /world/{w}/capabilities", self.capabilities),
            ("GET /{w}/snapshot", self.snapshot),
        ):
            router.add(route, handler)

    def create(self, request: Request) -> Reply:
        """Make a world; its name must be new."""
        given = body_of(request.body, "name", "layout")
        name = text(given["name"], "name", 200)
        layout = _known_layout(given["layout"])
        if not name:
            raise RefusalError(400, "name: must not be empty")
        if any(world.name == name for world in self.by_id.values()):
            raise RefusalError(400, f"name: {name!r} is taken")
        chaos = given.get("chaos")
        flags = chaos if isinstance(chaos, dict) else {}
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).hexdigest()
        self._created += 1
        world = World(
            number=self._created,
            id=digest[:24],
            name=name,
            layout=layout,
            url=text(given.get("url", name.lower().replace(" ", "-")), "url", 200),
            description=text(given["description"], "description") if "description" in given else None,
            simulation=Simulation(int(digest[24:32], 16), self.rules),
            real_hours_per_sim_day=_hours(given.get("realHoursPerSimDay", 2.0)),
            process_chaos=flags.get("processChaosEnabled") is True,
            infra_chaos=flags.get("infraChaosEnabled") is True,
            seen=self.clock(),
        )
        self.by_id[world.id] = world
        if given.get("is_default") is True:
            self._make_default(world)
        body = {
            "world": world.record(),
            "mainCompany": views.company(None),
            "npcCompanies": [views.company(index) for index in range(5)],
            "productsForMpc": [views.product(index, world.simulation) for index in range(20)],
            "seedResult": {"companies": 6, "products": 20, "descriptors": 1},
            "capabilities": {
                "samplingType": "all",
                "count": 1,
                "ids": ["od-inbound-edi"],
                "validationWarnings": [],
            },
        }
        return Reply(200, body)

    def list(self, request: Request) -> Reply:
        """Worlds by creation, searched by name."""
        query = request.query
        found = [
            world
            for world in self.by_id.values()
            if query.get("search", "") in world.name
            and query.get("is_default", str(world.is_default)).lower() == str(world.is_default).lower()
        ]
        cursor = query.get("cursor")
        if cursor:
            last = self.by_id.get(cursor)
            found = [world for world in found if last is None or world.number > last.number]
        limit = query.get("limit", "20")
        if not (limit.isascii() and limit.isdigit() and int(limit[:9]) >= 1):
            raise RefusalError(400, f"limit: {limit[:20]!r} is no whole number from 1 on")
        most = min(int(limit[:9]), 20)
        shown = [world.record() for world in found[:most]]
        after = shown[-1]["_id"] if len(found) > most else None
        return ok({"worlds": shown, "nextCursor": after}, "world.list")

    def get(self, request: Request) -> Reply:
        """One world's record."""
        world = self.find(request.params["w"])
        return ok(world.record(), "world.get", world.now)

    def update(self, request: Request) -> Reply:
        """Change a world's settings; workers follow the allowed personas."""
        world = self.find(request.params["w"])
        given = body_of(request.body)
        for name, checked in _SETTINGS.items():
            if name in given:
                setattr(world, *checked(given[name]))
        simulation = world.simulation
        if "chaos" in given:
            simulation.chaos = checked_policy(given["chaos"])
        if "personas" in given:
            simulation.personas = _personas(given["personas"])
            warehouse.dispatch(simulation)
        if "ticketCreationEnabled" in given:
            simulation.tickets_enabled = given["ticketCreationEnabled"] is True
        if given.get("is_default") is True:
            self._make_default(world)
        return ok(world.record(), "world.updated", world.now)

    def delete(self, request: Request) -> Reply:
        """End a world."""
        world = self.find(request.params["w"])
        del self.by_id[world.id]
        return ok({"success": True}, "world.deleted", world.now)

    def reset(self, request: Request) -> Reply:
        """Begin a world anew under the same id; a `seeded` sampling strategy gives the seed."""
        world = self.find(request.params["w"])
        seed = world.sampling.get("seed")
        former = world.simulation
        world.simulation = Simulation(former.seed if seed is None else int(seed), self.rules)
        world.simulation.chaos = former.chaos
        world.simulation.personas = former.personas
        world.simulation.tickets_enabled = former.tickets_enabled
        seeding = {"companies": 6, "products": 20, "descriptors": 1}
        return ok(
            {"success": True, "message": "world reset", "seedResult": seeding}, "world.reset", world.now
        )

    def snapshot(self, request: Request) -> Reply:
        """A world's whole state. An extension of this server."""
        world = self.find(request.params["w"])
        return ok(snapshot(world), "world.snapshot", world.now)

    def restore(self, request: Request) -> Reply:
        """Have a world of a snapshot's id go on from it, in place of what it is now. An extension."""
        try:
            world = self._restored(request.body)
        except SnapshotError as failure:
            raise RefusalError(400, str(failure)) from None
        return ok(world.record(), "world.restored", world.now)

    def state(self) -> dict[str, Any]:
        """Every world, as plain JSON values; `load` takes them back."""
        default = next((world.id for world in self.by_id.values() if world.is_default), None)
        worlds = [snapshot(world) for world in self.by_id.values()]
        return {"worlds": worlds, "default": default, "created": self._created}

    def load(self, state: Mapping[str, Any]) -> None:
        """Hold the worlds that `state` described.

        Raises:
            SnapshotError: One of them was damaged.
        """
        for given in state["worlds"]:
            self._restored(given)
        for world in self.by_id.values():
            world.is_default = world.id == state["default"]
        self._created = state["created"]

    def _restored(self, given: Any) -> World:
        record, simulation = restore(given)
        held = self.by_id.get(record["id"])
        taken = any(world.name == record["name"] and world is not held for world in self.by_id.values())
        if taken:
            raise RefusalError(400, f"name: {record['name']!r} is taken")
        if held is None:
            self._created += 1
        number = self._created if held is None else held.number
        world = World(number=number, simulation=simulation, seen=self.clock(), **record)
        world.is_default = held is not None and held.is_default
        self.by_id[world.id] = world
        return world

    def capabilities(self, request: Request) -> Reply:
        """What a world can run: its one descriptor."""
        world = self.find(request.params["w"])
        entry = {
            "id": "od-inbound-edi",
            "name": "Inbound EDI",
            "description": "Takes purchase orders in.",
            "domain": "edi",
            "odId": "od-inbound-edi",
            "tags": [],
        }
        data = {
            "worldId": world.id,
            "worldName": world.name,
            "samplingStrategy": world.sampling,
            "count": 1,
            "capabilityIds": ["od-inbound-edi"],
            "capabilities": [entry],
        }
        return ok(data, "world.capabilities", world.now)

    def layouts(self, request: Request) -> Reply:  # noqa: ARG002
        """Every layout."""
        return ok([_layout(name) for name in LAYOUTS], "world.layouts")

    def layout(self, request: Request) -> Reply:
        """One layout with its documentation."""
        name = request.params["layout"]
        if name not in LAYOUTS:
            raise RefusalError(404, f"layout {name[:64]!r} not found")
        return ok({**_layout(name), "docs": LAYOUTS[name]}, "world.layout")

    def _make_default(self, world: World) -> None:
        for other in self.by_id.values():
            other.is_default = other is world


def _layout(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": name.replace("-", " ").title(),
        "description": LAYOUTS[name],
        "shortDescription": LAYOUTS[name].split(":")[0],
    }


def _known_layout(given: Any) -> str:
    layout = text(given, "layout", 200)
    if layout not in LAYOUTS:
        raise RefusalError(400, f"layout: {layout!r} is none of {', '.join(LAYOUTS)}")
    return layout


def _strings(given: Any, name: str) -> list[str]:
    if not isinstance(given, list) or len(given) > 1000:
        raise RefusalError(400, f"{name}: a list of at most 1000 strings is required")
    return [text(one, name, 200) for one in given]


def _hours(value: Any) -> float:
    return number(value, "realHoursPerSimDay", 0.001, 10_000.0)


def _sampling(given: Any) -> dict[str, Any]:
    strategy = dict(body_of(given, "type"))
    if strategy["type"] not in {"all", "filter", "random", "seeded"}:
        raise RefusalError(400, f"samplingStrategy.type: {strategy['type']!r} is unknown")
    if "seed" in strategy:
        strategy["seed"] = int(number(strategy["seed"], "samplingStrategy.seed", 0, 2**53))
    elif strategy["type"] == "seeded":
        raise RefusalError(400, "samplingStrategy.seed: required for type 'seeded'")
    return strategy


def _personas(given: Any) -> tuple[str, ...]:
    allowed = body_of(given).get("allowedPersonas", list(PERSONAS))
    if not isinstance(allowed, list) or any(name not in PERSONAS for name in allowed):
        raise RefusalError(400, f"personas.allowedPersonas: a list out of {', '.join(PERSONAS)} is required")
    return tuple(dict.fromkeys(allowed))


_SETTINGS: Mapping[str, Callable[[Any], tuple[str, Any]]] = {
    "name": lambda given: ("name", text(given, "name", 200)),
    "description": lambda given: ("description", text(given, "description")),
    "layout": lambda given: ("layout", _known_layout(given)),
    "realHoursPerSimDay": lambda given: ("real_hours_per_sim_day", _hours(given)),
    "capabilityIds": lambda given: ("capability_ids", _strings(given, "capabilityIds")),
    "samplingStrategy": lambda given: ("sampling", _sampling(given)),
}
"""What `PATCH /world/{w}` may set on the world's record: the field, and its checked value."""
