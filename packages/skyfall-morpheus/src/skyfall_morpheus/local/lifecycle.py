"""Routes of worlds themselves: they are made, listed, changed, begun anew, saved and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import views, warehouse
from skyfall_morpheus.local.answers import body_of, number, ok, text
from skyfall_morpheus.local.chaos import checked_policy
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.handlers import Handlers
from skyfall_morpheus.local.model import PERSONAS
from skyfall_morpheus.local.routing import Reply, Request
from skyfall_morpheus.local.simulation import Simulation
from skyfall_morpheus.local.snapshot import SnapshotError, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skyfall_morpheus.local.routing import Handler

__all__ = ["LAYOUTS", "Lifecycle"]

LAYOUTS = {
    "process-outbound": "Outbound fulfillment: EDI purchase orders to shipped and paid.",
    "perishables-food-manufacturer": "The same flow under the name of the hosted default layout.",
}


class Lifecycle(Handlers):
    """Routes of worlds themselves."""

    def routes(self) -> Iterable[tuple[str, Handler]]:
        """What answers what."""
        return (
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
        )

    def create(self, request: Request) -> Reply:
        """Make a world; its name must be new."""
        given = body_of(request.body, "name", "layout")
        name = text(given["name"], "name", 200)
        layout = _known_layout(given["layout"])
        if not name:
            raise RefusalError(400, "name: must not be empty")
        chaos = given.get("chaos")
        flags = chaos if isinstance(chaos, dict) else {}
        world = self.worlds.add(
            name,
            layout=layout,
            url=text(given.get("url", name.lower().replace(" ", "-")), "url", 200),
            description=text(given["description"], "description") if "description" in given else None,
            real_hours_per_sim_day=_hours(given.get("realHoursPerSimDay", 2.0)),
            process_chaos=flags.get("processChaosEnabled") is True,
            infra_chaos=flags.get("infraChaosEnabled") is True,
        )
        if given.get("is_default") is True:
            self.worlds.make_default(world)
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
            for world in self.worlds.by_id.values()
            if query.get("search", "") in world.name
            and query.get("mpcCompany", "MPC") == "MPC"
            and query.get("is_default", str(world.is_default)).lower() == str(world.is_default).lower()
        ]
        cursor = query.get("cursor")
        if cursor:
            last = self.worlds.by_id.get(cursor)
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
        world = self._world(request)
        return ok(world.record(), "world.get", world.now)

    def update(self, request: Request) -> Reply:
        """Change a world's settings; workers follow the allowed personas."""
        world = self._world(request)
        given = body_of(request.body)
        simulation = world.simulation
        changes = [checked(given[name]) for name, checked in _SETTINGS.items() if name in given]
        chaos = checked_policy(given["chaos"]) if "chaos" in given else simulation.chaos
        personas = _personas(given["personas"]) if "personas" in given else simulation.personas
        self.worlds.require_free(given.get("name", world.name), world)
        # everything is checked: from here on nothing refuses, so that no update is done by half
        for name, value in changes:
            setattr(world, name, value)
        simulation.chaos, simulation.personas = chaos, personas
        warehouse.dispatch(simulation)
        if "ticketCreationEnabled" in given:
            simulation.tickets_enabled = given["ticketCreationEnabled"] is True
        if given.get("is_default") is True:
            self.worlds.make_default(world)
        return ok(world.record(), "world.updated", world.now)

    def delete(self, request: Request) -> Reply:
        """End a world."""
        world = self._world(request)
        del self.worlds.by_id[world.id]
        return ok({"success": True}, "world.deleted", world.now)

    def reset(self, request: Request) -> Reply:
        """Begin a world anew under the same id; a `seeded` sampling strategy gives the seed."""
        world = self._world(request)
        seed = world.sampling.get("seed")
        former = world.simulation
        world.simulation = Simulation(former.seed if seed is None else int(seed), self.worlds.rules)
        world.simulation.chaos = former.chaos
        world.simulation.personas = former.personas
        world.simulation.tickets_enabled = former.tickets_enabled
        seeding = {"companies": 6, "products": 20, "descriptors": 1}
        return ok(
            {"success": True, "message": "world reset", "seedResult": seeding}, "world.reset", world.now
        )

    def snapshot(self, request: Request) -> Reply:
        """A world's whole state. An extension of this server."""
        world = self._world(request)
        return ok(snapshot(world), "world.snapshot", world.now)

    def restore(self, request: Request) -> Reply:
        """Have a world of a snapshot's id go on from it, in place of what it is now. An extension."""
        try:
            world = self.worlds.restore(request.body)
        except SnapshotError as failure:
            raise RefusalError(400, str(failure)) from None
        return ok(world.record(), "world.restored", world.now)

    def capabilities(self, request: Request) -> Reply:
        """What a world can run: its one descriptor."""
        world = self._world(request)
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
