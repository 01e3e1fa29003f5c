"""Routes of the chaos policy, which decides how many documents fail and in which ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local.answers import body_of, number, ok, text
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.handlers import Handlers
from skyfall_morpheus.local.model import SCENARIOS
from skyfall_morpheus.local.routing import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skyfall_morpheus.local.routing import Handler

__all__ = ["Chaos", "checked_policy"]

PRESETS = {
    "light": (0.1, "A tenth of the documents fail, mostly for want of a correction."),
    "moderate": (0.25, "A quarter of the documents fail."),
    "aggressive": (0.5, "Half of the documents fail."),
}


class Chaos(Handlers):
    """Routes of the chaos policy, which decides how many documents fail and in which ways."""

    def routes(self) -> Iterable[tuple[str, Handler]]:
        """What answers what."""
        return (
            ("GET /world/{w}/chaos", self.get_chaos),
            ("PUT /world/{w}/chaos", self.put_chaos),
            ("DELETE /world/{w}/chaos", self.delete_chaos),
            ("GET /chaos/presets", self.presets),
            ("GET /chaos/presets/{id}", self.preset),
            ("GET /chaos/status", self.chaos_status),
        )

    def get_chaos(self, request: Request) -> Reply:
        """A world's chaos policy."""
        world = self._world(request)
        data = {"worldId": world.id, "worldName": world.name, "chaos": world.simulation.chaos}
        return ok(data, "chaos.get", world.now)

    def put_chaos(self, request: Request) -> Reply:
        """Replace a world's chaos policy."""
        world = self._world(request)
        try:
            world.simulation.chaos = checked_policy(request.body)
        except RefusalError as refusal:
            return Reply(refusal.status, {"success": False, "error": str(refusal)})
        data = {"worldId": world.id, "chaos": world.simulation.chaos, "message": "chaos policy replaced"}
        return ok(data, "chaos.updated", world.now)

    def delete_chaos(self, request: Request) -> Reply:
        """Switch chaos off."""
        world = self._world(request)
        world.simulation.chaos = {"enabled": False, "probability": 0.0, "scenarios": []}
        return ok({"worldId": world.id, "message": "chaos policy removed"}, "chaos.deleted", world.now)

    def presets(self, request: Request) -> Reply:  # noqa: ARG002
        """Named chaos policies, for reading."""
        shown = [{"id": name, "name": name, "description": about} for name, (_, about) in PRESETS.items()]
        return ok(shown, "chaos.presets", count=len(shown))

    def preset(self, request: Request) -> Reply:
        """One named chaos policy."""
        name = request.params["id"]
        if name not in PRESETS:
            return Reply(404, {"success": False, "error": f"preset {name[:64]!r} not found"})
        probability, description = PRESETS[name]
        scenarios = [
            {"type": kind, "weight": 1.0, "description": kind, "config": {}} for kind in sorted(SCENARIOS)
        ]
        data = {
            "id": name,
            "name": name,
            "description": description,
            "policy": {"enabled": True, "probability": probability, "scenarios": scenarios},
        }
        return ok(data, "chaos.preset")

    def chaos_status(self, request: Request) -> Reply:  # noqa: ARG002
        """How many policies there are."""
        active = sum(world.simulation.chaos["enabled"] for world in self.worlds.by_id.values())
        data = {
            "enabled": active > 0,
            "activePreset": None,
            "stats": {
                "presetCount": len(PRESETS),
                "worldPolicyCount": active,
                "capabilityOverrideCount": 0,
                "odOverrideCount": 0,
            },
        }
        return ok(data, "chaos.status")


def checked_policy(given: Any) -> dict[str, Any]:
    """A checked chaos policy."""
    policy = body_of(given, "enabled", "probability", "scenarios")
    if not isinstance(policy["enabled"], bool):
        raise RefusalError(400, "enabled: true or false is required")
    scenarios = policy["scenarios"]
    if not isinstance(scenarios, list) or len(scenarios) > 100:
        raise RefusalError(400, "scenarios: a list of at most 100 is required")
    checked = []
    for position, scenario in enumerate(scenarios):
        one = body_of(scenario, "type", "weight")
        if one["type"] not in SCENARIOS:
            raise RefusalError(
                400, f"scenarios[{position}].type: {one['type']!r} is none of {', '.join(sorted(SCENARIOS))}"
            )
        checked.append(
            {
                "type": one["type"],
                "weight": number(one["weight"], f"scenarios[{position}].weight", 0.0, 1e6),
                "description": text(one.get("description", ""), "description"),
                "config": one.get("config", {}),
            }
        )
    result: dict[str, Any] = {
        "enabled": policy["enabled"],
        "probability": number(policy["probability"], "probability", 0.0, 1.0),
        "scenarios": checked,
    }
    if "seed" in policy:
        result["seed"] = text(policy["seed"], "seed", 200)
    if "persistCorruptedData" in policy:
        result["persistCorruptedData"] = policy["persistCorruptedData"] is True
    return result
