"""The worlds one server holds: their records, their clocks, their names and ids."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import views
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.model import Rules
from skyfall_morpheus.local.simulation import Simulation
from skyfall_morpheus.local.snapshot import restore, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["World", "Worlds"]


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

    def add(self, name: str, **record: Any) -> World:
        """Hold a new world, whose id and seed follow from its name.

        Args:
            name: Not that of another world.
            **record: Further fields of `World`.

        Raises:
            RefusalError: 400 when the name is taken.
        """
        self.require_free(name)
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).hexdigest()
        simulation = Simulation(int(digest[24:32], 16), self.rules)
        self._created += 1
        world = World(self._created, digest[:24], name, simulation=simulation, seen=self.clock(), **record)
        self.by_id[world.id] = world
        return world

    def restore(self, given: Any) -> World:
        """Hold the world of a snapshot, in place of what the one of its id is now.

        Raises:
            SnapshotError: What was given is no snapshot.
            RefusalError: 400 when another world has its name.
        """
        record, simulation = restore(given)
        held = self.by_id.get(record["id"])
        self.require_free(record["name"], held)
        if held is None:
            self._created += 1
        number = self._created if held is None else held.number
        world = World(number=number, simulation=simulation, seen=self.clock(), **record)
        world.is_default = held is not None and held.is_default
        self.by_id[world.id] = world
        return world

    def make_default(self, world: World) -> None:
        """Make a world the one default."""
        for other in self.by_id.values():
            other.is_default = other is world

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
            self.restore(given)
        for world in self.by_id.values():
            world.is_default = world.id == state["default"]
        self._created = state["created"]

    def require_free(self, name: str, but: World | None = None) -> None:
        """Refuse a name that a world has, other than `but`.

        Raises:
            RefusalError: 400 when the name is taken.
        """
        if any(world.name == name and world is not but for world in self.by_id.values()):
            raise RefusalError(400, f"name: {name!r} is taken")
