"""Worlds that outlive their server: real processes killed and started again, and folders in any state."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from skyfall_morpheus.cli import app
from skyfall_morpheus.client import ClientOptions, MorpheusClient
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.errors import WorldConfigError
from skyfall_morpheus.local.api import LocalApi
from skyfall_morpheus.local.model import Rules
from skyfall_morpheus.local.store import JOURNAL, SNAPSHOT, Store
from skyfall_morpheus.scripted import ScriptedPolicy

STEPS = 40


class Server:
    """`skyfall morpheus serve --state-dir` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: Any = None

    def start(self) -> None:
        command = [str(Path(sys.executable).parent / "skyfall"), "morpheus", "serve", "-q"]
        options = ["--port", str(self.port), "--state-dir", str(self.folder)]
        self.process = subprocess.Popen([*command, *options])
        with MorpheusClient(self.url, ClientOptions(attempts=60, longest_pause_seconds=0.5)) as client:
            client.check_reachable()

    def stop(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait(20)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "worlds")
    try:
        made.start()
        yield made
    finally:
        if made.process.poll() is None:
            made.stop(signal.SIGKILL)


@pytest.mark.timeout(120)
def test_a_killed_server_is_gone_on_with_as_if_nothing_had_happened(server: Server) -> None:
    """SIGKILL in mid-life, then an orderly end: each time another process serves the same world."""
    lived = MorpheusEnv(server.url, keep_world=True, name="lasting")
    observation, _ = lived.reset(seed=5)
    policy, seen = ScriptedPolicy(), []
    for _ in range(STEPS):
        observation, *_ = lived.step(policy.act(observation))
        seen.append(observation)
    for how in (signal.SIGKILL, signal.SIGINT):
        server.stop(how)
        server.start()
        attached = MorpheusEnv(server.url, world_id=lived.world_id)
        observation, _ = attached.reset()
        assert observation["state"]["time"] == seen[-1]["state"]["time"]
        for _ in range(STEPS):
            observation, *_ = attached.step(policy.act(observation))
            seen.append(observation)
        attached.close()
    lived.close()

    alone = MorpheusEnv("local:")
    observation, _ = alone.reset(seed=5)
    for step, found in enumerate(seen):
        observation, *_ = alone.step(policy.act(observation))
        assert found == observation, step
    alone.close()


def worked(api: LocalApi, steps: int) -> str:
    made = api.dispatch("POST", "/world", body={"name": "w", "layout": "process-outbound"})
    world: str = made.body["world"]["_id"]
    for _ in range(steps):
        api.dispatch("POST", f"/{world}/step", body={"path": f"/{world}/od/schedules/status"})
    return world


def state(api: LocalApi) -> bytes:
    return msgspec.json.encode(api.worlds.state(), order="sorted")


class Folder:
    """Servers over one folder, each left as a kill leaves it: nothing is saved at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stores: list[Store] = []

    def open(self, rules: Rules | None = None, renew_after: int = 1000) -> LocalApi:
        api = LocalApi(rules)
        self.stores.append(Store(self.path, api, renew_after))
        return api


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    opened = Folder(tmp_path / "worlds")
    yield opened
    for store in opened.stores:
        store._file.close()


@pytest.mark.parametrize("renew_after", [1000, 7])
def test_worlds_come_back_from_the_journal_alone_and_from_a_snapshot_with_one(
    folder: Folder, renew_after: int
) -> None:
    api = folder.open(renew_after=renew_after)
    worked(api, 30)
    assert state(folder.open()) == state(api)


def test_an_orderly_end_leaves_an_empty_journal(folder: Folder) -> None:
    api = folder.open()
    worked(api, 3)
    folder.stores[-1].close()
    assert (folder.path / JOURNAL).read_bytes() == b""
    assert state(folder.open()) == state(api)


def test_deleted_worlds_stay_deleted(folder: Folder) -> None:
    api = folder.open()
    world = worked(api, 3)
    api.dispatch("DELETE", f"/world/{world}")
    assert folder.open().worlds.by_id == {}


def test_requests_that_the_snapshot_holds_already_are_not_repeated(folder: Folder) -> None:
    """A kill between writing the snapshot and cutting the journal leaves both."""
    api = folder.open()
    worked(api, 10)
    journal = (folder.path / JOURNAL).read_bytes()
    folder.stores[-1].renew()
    (folder.path / JOURNAL).write_bytes(journal)
    assert state(folder.open()) == state(api)


def test_a_torn_last_request_was_never_carried_out(folder: Folder) -> None:
    api = folder.open()
    worked(api, 10)
    whole = state(api)
    path = folder.path / JOURNAL
    path.write_bytes(path.read_bytes() + b'[99,"POST","/wor')
    again = folder.open()
    assert state(again) == whole
    world = next(iter(again.worlds.by_id))
    again.dispatch("POST", f"/{world}/step", body={"path": f"/{world}/od/schedules/status"})
    assert state(folder.open()) == state(again), "the torn line was glued to the next"


def test_damage_and_other_rules_are_named_and_nothing_is_overwritten(folder: Folder) -> None:
    api = folder.open()
    worked(api, 5)
    path = folder.path / JOURNAL
    kept = path.read_bytes()
    with pytest.raises(WorldConfigError, match="tick_minutes"):
        folder.open(Rules(tick_minutes=5.0))
    path.write_bytes(b"{" + kept)
    with pytest.raises(WorldConfigError, match=r"requests\.jsonl: damaged"):
        folder.open()
    assert path.read_bytes() == b"{" + kept
    path.write_bytes(kept)
    assert state(folder.open()) == state(api)


def test_a_damaged_snapshot_is_refused(folder: Folder) -> None:
    worked(folder.open(renew_after=2), 5)
    path = folder.path / SNAPSHOT
    path.write_bytes(path.read_bytes().replace(b'"process-outbound"', b'"process-inbound"'))
    with pytest.raises(WorldConfigError, match=r"worlds\.json: .*digest"):
        folder.open()


def test_a_folder_that_cannot_be_used_ends_the_command_with_status_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cases = (
        (["--state-dir", str(tmp_path / "file")], "cannot keep worlds here"),
        (["--state-dir", str(tmp_path / "x"), "--real-time"], "--real-time"),
    )
    for options, message in cases:
        result = CliRunner().invoke(app, ["serve", "--port", "18299", *options])
        assert (result.exit_code, message in result.output) == (2, True), result.output
