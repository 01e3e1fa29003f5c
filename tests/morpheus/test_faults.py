"""MorpheusEnv against a server that fails: what a run survives, and how it ends when it cannot."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.errors import MorpheusError, WorldConfigError, WorldsFailedError, WorldUnreachableError
from skyfall_morpheus.vector import PersistentVectorEnv

FAST = {"attempts": 4, "pause_seconds": 0.001, "longest_pause_seconds": 0.01, "read_seconds": 5.0}
SECRET = "hidden-value"  # noqa: S105


def env_for(faulty: Any, **settings: Any) -> MorpheusEnv:
    connection = {**FAST, **settings.pop("connection", {})}
    return MorpheusEnv(faulty.url, connection=connection, **settings)


def test_a_refused_connection_is_told_when_the_environment_is_built() -> None:
    with pytest.raises(WorldUnreachableError, match="check base_url"):
        MorpheusEnv("http://127.0.0.1:9", connection=FAST)


def test_a_run_against_no_server_ends_with_status_2(tmp_path: Path) -> None:
    document = tmp_path / "run.yaml"
    document.write_text(
        textwrap.dedent("""
        environment: {id: morpheus, kwargs: {base_url: "http://127.0.0.1:9", connection: {attempts: 1}}}
        algorithm: {name: random}
        rollout: {window_steps: 4, total_steps: 8}
        run: {name: r, seed: 0}
        """),
        encoding="utf-8",
    )
    command = [str(Path(sys.executable).parent / "skyfall"), "run", str(document)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "no MORPHEUS server answers" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("fault", ["reset", "truncated", "half_json", "html", "500", "429"])
@pytest.mark.parametrize("where", ["/step", "/world/act", "/overview"])
def test_a_run_goes_on_after_a_spoiled_answer(faulty: Any, faults: Any, where: str, fault: str) -> None:
    env = env_for(faulty)
    if where != "/step":  # as a server without the extension is driven
        env.client._extensions = frozenset({"overview"})
    env.reset(seed=1)
    env.step("wait")
    spoiled = {
        "html": faults.html(502),
        "500": faults.status(500),
        "429": faults.status(429, retry_after="1"),
    }
    faulty.spoil("*", where, spoiled.get(fault) or getattr(faults, fault))
    observation, _, _, _, info = env.step("wait")
    assert info["invalid_action"] is False, "the agent was blamed for the server's failure"
    assert env.observation_space.contains(observation)
    assert (observation["state"]["last"]["status"] == 200) is (where == "/overview")
    assert observation["state"]["time"].endswith("00:20:00.000Z")
    observation, *_ = env.step("wait")
    assert observation["state"]["last"]["status"] == 200
    env.close()
    assert faulty.api.worlds.by_id == {}


def test_a_server_that_stalls_in_mid_run_costs_its_timeout_and_no_more(faulty: Any, faults: Any) -> None:
    env = env_for(faulty, connection={"read_seconds": 0.2})
    env.reset(seed=1)
    faulty.spoil("POST", "/step", faults.trickling)
    observation, *_ = env.step("wait")
    assert observation["state"]["last"]["error"] == "the answer was lost"
    env.close()


def test_a_server_that_never_recovers_ends_the_run_with_its_reason(faulty: Any, faults: Any) -> None:
    env = env_for(faulty)
    env.reset(seed=1)
    faulty.spoil("*", env.world_id, faults.status(500), times=100)
    with pytest.raises(MorpheusError, match="HTTP 500"):
        env.step("wait")
    faulty.rules.clear()
    env.close()
    assert faulty.api.worlds.by_id == {}, "the world was left running"


def test_one_failing_world_of_several_leaves_the_others_going(faulty: Any, faults: Any) -> None:
    def make(**settings: Any) -> Any:
        return lambda: env_for(faulty, observe="text", **settings)

    envs = PersistentVectorEnv([make() for _ in range(3)], on_error="isolate")
    envs.reset(seed=1)
    doomed = envs.envs[1].world_id
    faulty.api.dispatch("DELETE", f"/world/{doomed}")
    for _ in range(3):
        _, rewards, _, truncations, infos = envs.step(["wait"] * 3)
    np.testing.assert_array_equal(truncations, [False, True, False])
    np.testing.assert_array_equal(infos["world_failed"], [False, True, False])
    assert np.isfinite(rewards).all()
    envs.close()
    assert faulty.api.worlds.by_id == {}


def test_a_restarted_server_that_kept_its_worlds_is_gone_on_with(faulty: Any) -> None:
    env = env_for(faulty)
    env.reset(seed=1)
    env.step("wait")
    world_id = env.world_id
    env.client.close()  # the old process is gone, and every connection with it
    again = env_for(faulty, world_id=world_id)
    observation, _ = again.reset()
    assert observation["state"]["time"].endswith("00:10:00.000Z")
    again.step("wait")
    again.close()
    assert list(faulty.api.worlds.by_id) == [world_id], "an attached world was deleted"


def test_a_lost_answer_to_create_leaves_no_orphan_behind(faulty: Any, faults: Any) -> None:
    faulty.spoil("POST", "/world", faults.reset)
    env = env_for(faulty)
    env.reset(seed=1)
    assert list(faulty.api.worlds.by_id) == [env.world_id]
    env.close()
    assert faulty.api.worlds.by_id == {}


def test_a_world_that_cannot_be_deleted_is_named(faulty: Any, faults: Any) -> None:
    def make() -> MorpheusEnv:
        return env_for(faulty)

    envs = PersistentVectorEnv([make, make])
    envs.reset(seed=1)
    faulty.spoil("DELETE", f"/world/{envs.envs[1].world_id}", faults.status(500), times=10, execute=False)
    with pytest.raises(WorldsFailedError, match="world 1: ResponseError") as caught:
        envs.close()
    assert envs.envs[1].world_id in caught.value.failures[1].__notes__[0]
    assert list(faulty.api.worlds.by_id) == [envs.envs[1].world_id]


def test_no_secret_reaches_observation_info_description_or_error(faulty: Any, faults: Any) -> None:
    env = env_for(faulty, connection={"headers": {"Authorization": SECRET}})
    observation, info = env.reset(seed=1)
    said = [observation, info, env.describe_run()]
    for fault in (faults.reset, faults.html(500), faults.status(401)):
        faulty.spoil("POST", "/step", fault)
        observation, _, _, _, info = env.step("wait")
        said += [observation, info]
    assert faulty.headers["authorization"] == SECRET
    faulty.spoil("*", "/step", faults.status(500))
    faulty.spoil("GET", "/overview", faults.status(500), times=9)
    with pytest.raises(MorpheusError) as caught:
        env.step("wait")
    assert SECRET not in json.dumps(said, default=str) + str(caught.value) + repr(env.settings)
    env.close()


def test_headers_come_from_environment_variables(faulty: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORPHEUS_KEY", SECRET)
    env = env_for(faulty, connection={"header_variables": {"Authorization": "MORPHEUS_KEY"}})
    env.reset(seed=1)
    assert faulty.headers["authorization"] == SECRET
    env.close()
    with pytest.raises(WorldConfigError, match="'NOT_SET' is not set"):
        env_for(faulty, connection={"header_variables": {"Authorization": "NOT_SET"}})


INTERRUPTED = """
import sys
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.vector import PersistentVectorEnv
url, attached = sys.argv[1], sys.argv[2]
makers = [lambda: MorpheusEnv(url, observe="text") for _ in range(7)]
makers.append(lambda: MorpheusEnv(url, observe="text", world_id=attached))
envs = PersistentVectorEnv(makers)
try:
    envs.reset(seed=1)
    print("running", flush=True)
    while True:
        envs.step(["wait"] * 8)
except KeyboardInterrupt:
    pass
finally:
    envs.close()
print("closed", flush=True)
"""


def test_an_interrupt_with_eight_worlds_open_deletes_those_that_were_made(faulty: Any) -> None:
    body = {"name": "operators-own", "layout": "process-outbound"}
    attached = faulty.api.dispatch("POST", "/world", body=body).body["world"]["_id"]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, faulty.url, attached], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    assert len(faulty.api.worlds.by_id) == 8
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "closed\n")
    assert list(faulty.api.worlds.by_id) == [attached]


def test_skyfall_morpheus_serve_answers_over_http_and_stops_on_a_signal(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).parent / "skyfall"), "morpheus", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "running on" in line.lower():
                break
        url = f"http://127.0.0.1:{port}"
        env = MorpheusEnv(url)
        observation, _ = env.reset(seed=3)
        times = []
        for _ in range(5):
            observation, *_ = env.step("wait")
            times.append(observation["state"]["time"][11:16])
        assert times == ["00:10", "00:20", "00:30", "00:40", "00:50"]
        answers = _raw(port)
        assert answers == [404, 400, 413, 405, 200]
        env.close()
        busy = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (busy.returncode, "choose another --port" in busy.stderr) == (2, True)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode in {0, 130, -signal.SIGINT}


def _raw(port: int) -> list[int]:
    """Statuses of requests no client of ours would send."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as raw:
        return [
            raw.get("/a/%2e%2e/chaos").status_code,
            raw.post("/world", content=b"{not json").status_code,
            raw.post("/world", content=b"x" * 1_100_000).status_code,
            raw.put("/world/layouts", json={}).status_code,
            raw.get("/docs").status_code,
        ]
