"""Algorithms by name."""

from collections.abc import Iterator
from typing import Any

import pytest

from skyfall_core import plugins, registry
from skyfall_core.errors import PluginConflictError, UnknownPluginError


@pytest.fixture(autouse=True)
def _own_registrations(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plugins, "_registered", {})
    return


def test_shipped_algorithms_are_available_in_alphabetical_order() -> None:
    names = registry.available()
    assert names == sorted(names)
    assert {"actor-critic", "ewc", "frozen", "lcm", "ppo", "random"} <= set(names)


def test_registered_name_is_available_resolved_and_created() -> None:
    assert not registry.is_registered("namespace")
    registry.register("namespace", "types:SimpleNamespace")
    assert registry.is_registered("namespace")
    assert "namespace" in registry.available()
    made = registry.create("namespace", policy="p", gamma=0.5)
    assert type(made) is registry.resolve("namespace")
    assert vars(made) == {"policy": "p", "gamma": 0.5}


def test_policy_is_left_out_of_the_call_when_there_is_none() -> None:
    registry.register("namespace", "types:SimpleNamespace")
    assert vars(registry.create("namespace", gamma=0.5)) == {"gamma": 0.5}


def test_taken_name_needs_leave() -> None:
    registry.register("namespace", "types:SimpleNamespace")
    with pytest.raises(PluginConflictError, match="already registered by this process as 'types:"):
        registry.register("namespace", "types:MappingProxyType")
    registry.register("namespace", "builtins:dict", replace=True)
    assert registry.resolve("namespace") is dict


@pytest.mark.parametrize("ask", [registry.resolve, registry.create])
def test_unknown_name_is_told_the_nearest(ask: Any) -> None:
    known = ", ".join(map(repr, registry.available()))
    with pytest.raises(UnknownPluginError) as caught:
        ask("actorcritic")
    assert (
        str(caught.value) == f"unknown algorithm 'actorcritic': did you mean 'actor-critic'? known: {known}"
    )
