"""Building what a document names, and closing what was built when the rest cannot be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import gymnasium
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from skyfall_core import plugins
from skyfall_core.config import EnvironmentConfig
from skyfall_core.environments import environment_id_problem
from skyfall_core.errors import ConfigError, PluginLoadError, ScheduleError
from skyfall_core.plugins import Group


class World(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)
    alive: list[World] = []  # noqa: RUF012 - what the test asks for
    closes_badly = False

    def __init__(self, size: int = 1) -> None:
        self.size = size
        World.alive.append(self)

    def close(self) -> None:
        World.alive.remove(self)
        if self.closes_badly:
            raise OSError("stuck")


class Outer(gymnasium.Wrapper[Any, Any, Any, Any]):
    def __init__(self, env: gymnasium.Env[Any, Any], label: str = "") -> None:
        super().__init__(env)
        self.label = label


def failing(env: Any = None) -> Any:
    raise LookupError("no such part")


def strict() -> Any:
    raise ScheduleError("axes", "cannot hold")


def nothing(env: Any = None) -> None:
    return None


def several(worlds: int) -> Any:
    return SyncVectorEnv([World] * worlds, autoreset_mode=AutoresetMode.DISABLED)


def in_turn(env_fns: Any) -> Any:
    return [make() for make in env_fns]


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("parts")
    vars(module).update(
        World=World,
        Outer=Outer,
        failing=failing,
        strict=strict,
        nothing=nothing,
        several=several,
        in_turn=in_turn,
    )
    monkeypatch.setitem(sys.modules, "parts", module)
    monkeypatch.setattr(World, "alive", [])
    yield
    plugins.unregister(Group.ENVIRONMENTS, "world")
    plugins.unregister(Group.VECTORS, "in-turn")


def config(id: str = "parts:World", **rest: Any) -> EnvironmentConfig:  # noqa: A002 - the document's key
    return EnvironmentConfig.model_validate({"id": id, **rest})


def test_an_id_is_a_plugin_then_a_factory_then_gymnasiums() -> None:
    plugins.register(Group.ENVIRONMENTS, "world", "parts:World")
    assert config("world", kwargs={"size": 3}).build().size == 3
    assert config(kwargs={"size": 4}).build().size == 4
    cart = config("CartPole-v1", kwargs={"sutton_barto_reward": True}).build()
    assert cart.unwrapped._sutton_barto_reward is True
    imported_first = config("gymnasium.envs:CartPole-v1").build()
    assert imported_first.spec.id == "CartPole-v1"


def test_wrappers_go_on_from_the_inside_and_preparation_last() -> None:
    wrappers = [{"factory": "parts:Outer", "kwargs": {"label": "in"}}, {"factory": "parts:Outer"}]
    env = config(wrappers=wrappers).build(lambda world: Outer(world, "prepared"))
    assert [env.label, env.env.label, env.env.env.label] == ["prepared", "", "in"]


def test_every_world_gets_wrappers_and_preparation_of_its_own() -> None:
    plugins.register(Group.VECTORS, "in-turn", "parts:in_turn")
    worlds = config(worlds=3, vector="in-turn", wrappers=[{"factory": "parts:Outer"}]).build(Outer)
    assert len({id(world) for world in worlds}) == len({id(world.env) for world in worlds}) == 3
    assert len(World.alive) == 3


def test_a_factory_may_return_several_worlds() -> None:
    assert config("parts:several", kwargs={"worlds": 2}).build().num_envs == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CartPol-v1", "did you mean 'CartPole-v1'"),
        ("CartPole", "did you mean 'CartPole-v1'"),
        ("zzz", "give an id like 'CartPole-v1'"),
    ],
)
def test_an_unknown_id_names_the_nearest(name: str, message: str) -> None:
    assert message in (environment_id_problem(name) or "")
    with pytest.raises(ConfigError, match=message):
        config(name).build()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"kwargs": {"sise": 1}}, r"environment\.kwargs\.sise: World takes no 'sise'; did you mean 'size'"),
        ({"id": "CartPole-v1", "kwargs": {"colour": 1}}, "'CartPole-v1' cannot be built: TypeError"),
        ({"id": "parts:failing"}, r"environment\.kwargs: building failing failed: LookupError: no such part"),
        ({"id": "parts:nothing"}, r"environment\.id: 'parts:nothing' gave None, which is no environment"),
        ({"id": "math:floor", "kwargs": {}}, "environment"),
        ({"wrappers": [{"factory": "parts:failing"}]}, r"wrappers\[0\]\.kwargs: building failing failed"),
        ({"wrappers": [{"factory": "parts:nothing"}]}, r"wrappers\[0\]\.factory: 'parts:nothing' gave None"),
        (
            {"wrappers": [{"factory": "parts:Outer"}, {"factory": "parts:Outer", "kwargs": {"lable": 1}}]},
            r"wrappers\[1\]\.kwargs\.lable: .*did you mean 'label'",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_built_is_named_and_leaves_nothing_open(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(**section).build()
    assert World.alive == []


def test_a_missing_module_or_attribute_is_named() -> None:
    with pytest.raises(PluginLoadError, match="there is no module 'no_such_module'"):
        config("no_such_module:World").build()
    with pytest.raises(PluginLoadError, match="has no 'Wurld'; did you mean 'World'"):
        config("parts:Wurld").build()


def test_preparation_that_fails_closes_the_world_and_keeps_its_own_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(env: Any) -> Any:
        raise ConfigError("regime: no")

    monkeypatch.setattr(World, "closes_badly", True)
    with pytest.raises(ConfigError, match="regime: no") as caught:
        config().build(refuse)
    assert World.alive == []
    assert caught.value.__notes__ == ["closing the environment failed too: OSError: stuck"]


def test_deliberate_errors_of_parts_come_through_unchanged() -> None:
    plugins.register(Group.VECTORS, "in-turn", "parts:in_turn")
    for section in ({"id": "parts:strict"}, {"id": "parts:strict", "worlds": 2, "vector": "in-turn"}):
        with pytest.raises(ScheduleError, match=r"^axes: cannot hold$"):
            config(**section).build()


def test_worlds_that_cannot_be_driven_together_are_named() -> None:
    plugins.register(Group.VECTORS, "in-turn", "parts:failing")
    with pytest.raises(ConfigError, match=r"environment\.worlds: building 2 worlds failed: LookupError"):
        config(worlds=2, vector="in-turn").build()
