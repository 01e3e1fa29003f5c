"""Interrupted and resumed: the environment goes on from its token as if it had never stopped."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from skyfall_morpheus.client import MorpheusClient
from skyfall_morpheus.configurations import canonical
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.errors import WorldConfigError, WorldsFailedError
from skyfall_morpheus.scripted import ScriptedPolicy
from skyfall_morpheus.transport import LocalTransport, local_server
from skyfall_morpheus.vector import PersistentVectorEnv

POLICY = ScriptedPolicy()


def env_with_shifts(url: str = "local:", **settings: Any) -> MorpheusEnv:
    env = MorpheusEnv(url, episode_steps=30, **settings)
    env.bind_regime(canonical(duration_steps=25))
    return env


def lived(env: Any, observation: Any, steps: int) -> tuple[Any, list[Any]]:
    rows = []
    for _ in range(steps):
        observation, reward, _, truncated, info = env.step(POLICY.act(observation))
        rows.append((observation, reward, truncated, info))
    return observation, rows


@pytest.mark.parametrize("cut", [1, 24, 25, 30, 61])
def test_a_resumed_life_equals_an_uninterrupted_one(cut: int) -> None:
    """Cuts before, at and after a shift and an episode's end; the world is deleted in between."""
    whole = env_with_shifts()
    observation, _ = whole.reset(seed=9)
    _, expected = lived(whole, observation, 130)

    first = env_with_shifts()
    observation, _ = first.reset(seed=9)
    observation, rows = lived(first, observation, cut)
    token = json.loads(json.dumps(first.resume_token()))
    first.close()

    second = env_with_shifts()
    resumed, _ = second.resume(token)
    assert resumed == observation
    assert second.world_id == first.world_id
    _, rest = lived(second, resumed, 130 - cut)
    assert json.dumps(rows + rest) == json.dumps(expected)
    assert second.np_random.random() == whole.np_random.random()
    second.close()
    whole.close()


def test_a_world_brought_back_is_deleted_at_the_end_like_the_one_it_was() -> None:
    env = env_with_shifts("local:resume-ownership")
    env.reset(seed=1)
    token = env.resume_token()
    env.close()
    server = local_server("resume-ownership")
    assert server.worlds.by_id == {}
    again = env_with_shifts("local:resume-ownership")
    again.resume(token)
    assert list(server.worlds.by_id) == [token["world_id"]]
    again.close()
    assert server.worlds.by_id == {}


def test_an_attached_world_is_gone_on_with_as_it_is_now() -> None:
    owner = env_with_shifts("local:resume-attached")
    owner.reset(seed=1)
    attached = env_with_shifts("local:resume-attached", world_id=owner.world_id)
    attached.reset()
    attached.step("wait")
    token = attached.resume_token()
    assert token["snapshot"] is None
    attached.close()
    owner.step("wait")  # the world lives on
    again = env_with_shifts("local:resume-attached", world_id=owner.world_id)
    observation, _ = again.resume(token)
    assert observation["state"]["time"].endswith("00:20:00.000Z")
    again.close()
    owner.step("wait")  # and was not deleted
    owner.close()


class WithoutSnapshots(LocalTransport):
    """A server that knows the documented API only, as the hosted one."""

    def send(self, method: str, path: str, query: Any, body: Any) -> Any:
        if path == "/docs":
            return type(super().send(method, path, query, body))(200, {})
        return super().send(method, path, query, body)


def test_a_world_that_is_gone_is_named_with_what_keeps_it() -> None:
    server = local_server("resume-plain")
    env = MorpheusEnv(client=MorpheusClient(transport=WithoutSnapshots(server)))
    env.reset(seed=1)
    token = env.resume_token()
    assert token["snapshot"] is None
    env.close()
    again = MorpheusEnv(client=MorpheusClient(transport=WithoutSnapshots(server)))
    with pytest.raises(WorldConfigError, match=r"is gone .* keep_world: true"):
        again.resume(token)
    again.close()

    kept = MorpheusEnv(client=MorpheusClient(transport=WithoutSnapshots(server)), keep_world=True)
    kept.reset(seed=1)
    kept.step("wait")
    token = kept.resume_token()
    kept.close()
    again = MorpheusEnv(client=MorpheusClient(transport=WithoutSnapshots(server)))
    observation, _ = again.resume(token)
    assert observation["state"]["time"].endswith("00:10:00.000Z")
    again.close()
    assert server.worlds.by_id == {}, "created once, deleted by whoever goes on with it"


def test_tokens_that_cannot_be_used_are_refused() -> None:
    env = env_with_shifts()
    with pytest.raises(WorldConfigError, match="no world yet"):
        env.resume_token()
    env.reset(seed=1)
    token = env.resume_token()
    with pytest.raises(WorldConfigError, match="has a world already"):
        env.resume(token)
    env.close()
    other = env_with_shifts()
    with pytest.raises(WorldConfigError, match="version 7"):
        other.resume({**token, "version": 7})
    other.close()
    plain = MorpheusEnv(client=MorpheusClient(transport=WithoutSnapshots(local_server(""))))
    with pytest.raises(WorldConfigError, match="takes snapshots back"):
        plain.resume(token)
    plain.close()


def test_several_worlds_go_on_together() -> None:
    def build() -> PersistentVectorEnv:
        return PersistentVectorEnv([env_with_shifts] * 3)

    whole, first = build(), build()
    for envs in (whole, first):
        envs.reset(seed=4)
        for _ in range(20):
            envs.step([{"tool": "allocate_order"}] * 3)
    token = json.loads(json.dumps(first.resume_token()))  # type: ignore[attr-defined]  # a probed capability
    first.close()
    second = build()
    second.resume(token)  # type: ignore[attr-defined]
    for _ in range(20):
        expected = whole.step([{"tool": "ship_order"}] * 3)
        found = second.step([{"tool": "ship_order"}] * 3)
        assert expected[0] == found[0]
        assert np.array_equal(expected[1], found[1])
    with pytest.raises(ValueError, match="3 worlds for 2"):
        PersistentVectorEnv([env_with_shifts] * 2).resume(token)  # type: ignore[attr-defined]
    whole.close()
    second.close()


def test_a_world_that_cannot_be_resumed_is_named_by_its_index() -> None:
    envs = PersistentVectorEnv([env_with_shifts] * 2)
    envs.reset(seed=4)
    token = envs.resume_token()  # type: ignore[attr-defined]
    envs.close()
    token["worlds"][1] = {**token["worlds"][1], "version": 0}
    again = PersistentVectorEnv([env_with_shifts] * 2)
    with pytest.raises(WorldsFailedError, match="world 1"):
        again.resume(token)  # type: ignore[attr-defined]
    again.close()
