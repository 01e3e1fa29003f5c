"""Snapshots: a restored world goes on as the original would have, and nothing else is taken for one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_morpheus.configurations import CANONICAL
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.local.api import LocalApi
from skyfall_morpheus.local.model import Rules
from skyfall_morpheus.local.streams import packed, stream, unpacked
from skyfall_morpheus.scripted import PLAYBOOKS, ScriptedPolicy
from skyfall_morpheus.tools import TOOL_NAMES, ToolError, call_of

CHAOS = {
    "enabled": True,
    "probability": 0.6,
    "scenarios": [
        {"type": kind, "weight": 1.0, "description": "", "config": {}}
        for kind in ("format_change", "rate_limit", "duplicate_data", "permission_denied")
    ],
}


def server(rules: Rules | None = None) -> tuple[LocalApi, str]:
    api = LocalApi(rules)
    made = api.dispatch("POST", "/world", body={"name": "saved", "layout": "process-outbound"})
    world = made.body["world"]["_id"]
    api.dispatch("PUT", f"/world/{world}/chaos", body=CHAOS)
    return api, world


def wire(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def saved(api: LocalApi, world: str) -> Any:
    return wire(api.dispatch("GET", f"/{world}/snapshot").body["data"])


def act(api: LocalApi, world: str, tool: str) -> bytes:
    """One tool call as the environment makes it, and everything the server then says."""
    from skyfall_morpheus.observation import compact  # noqa: PLC0415

    overview = api.dispatch("GET", f"/{world}/overview").body["data"]
    state = compact(overview, {"tool": "", "status": 200, "error": "", "result": ""})
    try:
        call = call_of({"tool": tool}, state)
    except ToolError:
        call = {"method": "GET", "path": "/:worldId/od/schedules/status"}
    call["params"] = {**call.get("params", {}), "worldId": world}
    reply = api.dispatch("POST", f"/{world}/step", body=call)
    logs = api.dispatch("GET", f"/{world}/logs").body
    audits = api.dispatch("GET", f"/{world}/audit-logs").body
    return msgspec.json.encode([reply.status, reply.body, logs, audits])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(TOOL_NAMES), max_size=60), st.lists(st.sampled_from(TOOL_NAMES), max_size=40))
def test_a_restored_world_goes_on_as_the_original(before: list[str], after: list[str]) -> None:
    api, world = server(Rules(edi_interval=15.0, unmatched_share=0.5, retention=5))
    for tool in before:
        act(api, world, tool)
    kept = saved(api, world)
    other = LocalApi()  # even one with other rules: a world brings its own
    assert other.dispatch("POST", "/world/restore", body=kept).status == 200
    assert saved(other, world) == kept
    for tool in after:
        assert act(api, world, tool) == act(other, world, tool)
    assert saved(api, world) == saved(other, world)


def test_a_long_life_is_restored_whole() -> None:
    """Every playbook's work, with finished things already forgotten."""
    env = MorpheusEnv("local:", rules={"retention": 20})
    observation, _ = env.reset(seed=3)
    for name, axes in CANONICAL.items():
        env._axes.apply(env.client, str(env.world_id), axes)
        policy = ScriptedPolicy(name if name in PLAYBOOKS else "baseline")
        for _ in range(120):
            observation, *_ = env.step(policy.act(observation))
    snapshot = env.client.snapshot(str(env.world_id))
    assert snapshot["state"]["simulation"]["shelves"]["orders"]["forgotten"]
    other = LocalApi()
    assert other.dispatch("POST", "/world/restore", body=snapshot).status == 200
    assert saved(other, str(env.world_id)) == snapshot
    env.close()


def test_restoring_replaces_what_the_world_has_become() -> None:
    api, world = server()
    kept = saved(api, world)
    for _ in range(9):
        act(api, world, "wait")
    assert saved(api, world) != kept
    assert api.dispatch("POST", "/world/restore", body=kept).status == 200
    assert saved(api, world) == kept
    assert len(api.worlds.by_id) == 1


def test_a_changed_snapshot_is_refused_and_changes_nothing() -> None:
    api, world = server()
    kept = saved(api, world)
    richer = wire(kept)
    richer["state"]["simulation"]["ledger"]["cash"] += 1e6
    for body in (richer, {**kept, "version": 1}, {**kept, "digest": ""}, {"state": {}}, {}, None, []):
        assert api.dispatch("POST", "/world/restore", body=body).status == 400
    assert saved(api, world) == kept


def test_a_snapshot_whose_name_another_world_took_is_refused() -> None:
    api, world = server()
    kept = saved(api, world)
    api.dispatch("DELETE", f"/world/{world}")
    other = LocalApi(seed=1)  # the same name under another id
    other.dispatch("POST", "/world", body={"name": "saved", "layout": "process-outbound"})
    assert other.dispatch("POST", "/world/restore", body=kept).status == 400
    assert api.dispatch("POST", "/world/restore", body=kept).status == 200


def test_a_stream_of_random_numbers_goes_on_where_it_stood() -> None:
    draws = stream(7, "arrivals")
    for _ in range(1000):
        draws.random()
    copy = unpacked(packed(draws))
    assert [copy.random() for _ in range(1000)] == [draws.random() for _ in range(1000)]
    with pytest.raises(ValueError, match="stream's state"):
        unpacked("AAAA")
