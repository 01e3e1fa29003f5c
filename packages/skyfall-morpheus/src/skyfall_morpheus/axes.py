"""Applying a configuration's axes to a world through its API.

An axis is a named setting of a configuration. Each has a value for when no configuration mentions it,
so leaving a configuration undoes what entering it did, and a ledger axis is an offset: going from one
value to another books the difference. Further axes are described in the document, as a call with
`$value` in it.

| axis | unset | what it does |
|---|---|---|
| `chaos_probability`, `chaos_scenarios` | 0, {} | the world's chaos policy; scenarios are type → weight |
| `edi_interval_minutes` | 40 | how often a purchase order arrives |
| `workers` | 6 | how many warehouse personas are allowed |
| `cash_offset`, `receivables_offset`, `payables_offset` | 0 | booked on top of the ledger |
| `cash_level` | null | what cash is set to on entering; the difference is given back on leaving |
| `schedules_paused` | false | whether scheduled work stands still |
| `tickets` | true | whether failures raise tickets |
| `edi_burst` | 0 | documents injected once when the value rises |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skyfall_core.errors import ConfigError, suggestion
from skyfall_morpheus.client import path_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skyfall_morpheus.client import MorpheusClient

__all__ = ["UNSET", "AxisApplier"]

UNSET: Mapping[str, Any] = {
    "chaos_probability": 0.0,
    "chaos_scenarios": {},
    "edi_interval_minutes": 40.0,
    "workers": 6,
    "cash_offset": 0.0,
    "receivables_offset": 0.0,
    "payables_offset": 0.0,
    "cash_level": None,
    "schedules_paused": False,
    "tickets": True,
    "edi_burst": 0,
}
"""Built-in axes and the value each has when a configuration does not mention it."""

_OFFSETS = {
    "cash_offset": "cashDelta",
    "receivables_offset": "receivablesDelta",
    "payables_offset": "payablesDelta",
}
_CHAOS = ("chaos_probability", "chaos_scenarios")
_RULE_KEYS = ("method", "path", "body", "unset")


class AxisApplier:
    """Brings a world from one configuration's axes to another's.

    Args:
        custom: Further axes: name to `{method, path, body, unset}`; in `path`, `:worldId` is the
            world, in `body` the string `$value` is replaced by the axis's value.

    Raises:
        ConfigError: A custom axis is incomplete or has unknown keys.
    """

    def __init__(self, custom: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._custom = dict(custom or {})
        for name, rule in self._custom.items():
            _check_rule(name, rule)
        self._unset = {**UNSET, **{name: rule["unset"] for name, rule in self._custom.items()}}
        self._applied: dict[str, Any] = dict(self._unset)
        self._taken = 0.0
        self._latest: dict[str, Any] | None = None

    def check(self, names: Iterable[str]) -> None:
        """Refuse axes nobody can apply.

        Raises:
            ConfigError: Naming the axis and the nearest known one.
        """
        for name in names:
            if name not in self._unset:
                raise ConfigError(f"regime axis {name!r} is unknown here; {suggestion(name, self._unset)}")

    def forget(self) -> None:
        """Take the world for untouched, as a new or reset one is."""
        self._applied = dict(self._unset)
        self._taken = 0.0
        self._latest = None

    def restarted(self) -> None:
        """Take the world for one that was reset: business data is new, its own settings are kept."""
        kept = (*_CHAOS, "workers", "tickets")
        self._taken = 0.0
        self._latest = None
        self._applied = {
            name: self._applied[name] if name in kept else value for name, value in self._unset.items()
        }

    def state(self) -> dict[str, Any]:
        """What was applied, as plain JSON values."""
        return {"applied": dict(self._applied), "taken": self._taken, "latest": self._latest}

    def load(self, state: Mapping[str, Any]) -> None:
        """Take the world for one to which `state` was applied."""
        self._applied = {**self._unset, **state["applied"]}
        self._taken = state["taken"]
        self._latest = state["latest"]

    def apply(self, client: MorpheusClient, world_id: str, axes: Mapping[str, Any]) -> bool:
        """Change what differs from what was applied before.

        Returns:
            Whether anything was changed.

        Raises:
            ConfigError: An unknown axis.
            MorpheusError: The server refused, or did not answer.
        """
        if axes == self._latest:
            return False
        self.check(axes)
        wanted = {**self._unset, **axes}
        changed = [name for name, value in wanted.items() if value != self._applied[name]]
        if any(name in _CHAOS for name in changed):
            _apply_chaos(client, world_id, wanted["chaos_probability"], wanted["chaos_scenarios"])
        deltas = {_OFFSETS[name]: wanted[name] - self._applied[name] for name in changed if name in _OFFSETS}
        if deltas:
            client.increment_ledger(world_id, **deltas)
        for name in changed:
            self._apply_one(client, world_id, name, wanted[name])
        self._applied = wanted
        self._latest = dict(axes)
        return bool(changed)

    def _apply_one(self, client: MorpheusClient, world_id: str, name: str, value: Any) -> None:
        if name in self._custom:
            rule = self._custom[name]
            segments = [
                world_id if part == ":worldId" else part for part in rule["path"].strip("/").split("/")
            ]
            body = _filled(rule.get("body"), value)
            client.request(rule["method"], path_of(*segments), body=body, repeat=rule["method"] == "PUT")
        elif name == "edi_interval_minutes":
            path = path_of(world_id, "od", "descriptors", "od-inbound-edi", "schedule")
            client.request("POST", path, body={"type": "recurring", "interval": f"{value:g} minutes"})
        elif name == "workers":
            allowed = [f"worker-{number}" for number in range(1, int(value) + 1)]
            client.update_world(world_id, personas={"allowedPersonas": allowed})
        elif name == "cash_level":
            self._set_cash(client, world_id, value)
        elif name == "schedules_paused":
            path = path_of(world_id, "od", "schedules", "pause" if value else "resume")
            client.request("PUT", path, repeat=True)
        elif name == "tickets":
            client.update_world(world_id, ticketCreationEnabled=bool(value))
        elif name == "edi_burst":
            for _ in range(max(0, int(value) - int(self._applied[name]))):
                body = {"partnerId": "P1", "docType": "850", "direction": "INBOUND", "rawEdi": ""}
                client.request("POST", path_of(world_id, "edi"), body=body)

    def _set_cash(self, client: MorpheusClient, world_id: str, level: float | None) -> None:
        """Take the difference to `level` out of cash, or give back what was taken."""
        delta = self._taken
        if level is not None:
            ledger = client.ledger(world_id)
            delta = level - (0.0 if ledger is None else ledger.cash)
        self._taken -= delta
        if delta:
            client.increment_ledger(world_id, cashDelta=round(delta, 2))


def _apply_chaos(
    client: MorpheusClient, world_id: str, probability: float, weights: Mapping[str, float]
) -> None:
    if not probability or not weights:
        client.clear_chaos(world_id)
        return
    scenarios = [
        {"type": kind, "weight": weight, "description": kind, "config": {}}
        for kind, weight in weights.items()
    ]
    client.set_chaos(world_id, {"enabled": True, "probability": probability, "scenarios": scenarios})


def _check_rule(name: str, rule: Any) -> None:
    if name in UNSET:
        raise ConfigError(f"axes.{name}: this name is built in; choose another")
    if not isinstance(rule, Mapping):
        raise ConfigError(f"axes.{name}: {rule!r} is no mapping with method, path, body and unset")
    for key in rule:
        if key not in _RULE_KEYS:
            raise ConfigError(f"axes.{name}.{key}: unknown key; {suggestion(str(key), _RULE_KEYS)}")
    for key in ("method", "path", "unset"):
        if key not in rule:
            raise ConfigError(f"axes.{name}: needs {key!r}")
    if rule["method"] not in {"PUT", "PATCH", "POST", "DELETE"}:
        raise ConfigError(f"axes.{name}.method: {rule['method']!r} is none of PUT, PATCH, POST, DELETE")


def _filled(template: Any, value: Any) -> Any:
    if template == "$value":
        return value
    if isinstance(template, Mapping):
        return {key: _filled(part, value) for key, part in template.items()}
    if isinstance(template, list):
        return [_filled(part, value) for part in template]
    return template
