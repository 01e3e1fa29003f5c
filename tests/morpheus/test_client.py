"""MorpheusClient against a real, spoilable server: every mistake the public SDK makes is a test here."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from skyfall_morpheus.client import ClientOptions, MorpheusClient, path_of
from skyfall_morpheus.errors import ProtocolError, ResponseError, TransportError, WorldUnreachableError
from skyfall_morpheus.transport import Answer

SECRET = "s3cr3t-key"  # noqa: S105


class Pauses(list[float]):
    """Stands in for sleeping and keeps what would have been slept."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def client(faulty: Any, pauses: Pauses) -> Any:
    options = ClientOptions(read_seconds=5.0, headers={"Authorization": f"Bearer {SECRET}"})
    with MorpheusClient(faulty.url, options, sleep=pauses) as opened:
        yield opened


@pytest.fixture
def world(client: MorpheusClient) -> str:
    return client.create_world("fresh", "process-outbound").id


@pytest.mark.parametrize("status", [400, 404, 409, 418, 422])
def test_the_real_status_is_kept_and_writes_are_not_repeated(
    client: MorpheusClient, faulty: Any, faults: Any, pauses: Pauses, status: int
) -> None:
    faulty.spoil("PUT", "/x", faults.status(status))
    with pytest.raises(ResponseError, match=f"PUT /x: HTTP {status}: injected {status}") as caught:
        client.request("PUT", "/x", body={})
    assert caught.value.status == status
    assert caught.value.body["error"] == f"injected {status}"
    assert len(faulty.seen) == 1
    assert pauses == []


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(client: MorpheusClient, faulty: Any, faults: Any, status: int) -> None:
    def answer(handler: Any, _status: int, _payload: bytes) -> None:
        body = b"" if status == 204 else b'{"fine": true}'
        head = f"HTTP/1.1 {status} X\r\n" + ("" if status == 204 else f"content-length: {len(body)}\r\n")
        handler.wfile.write(head.encode() + b"\r\n" + body)

    faulty.spoil("POST", "/x", answer)
    assert client.request("POST", "/x") == (None if status == 204 else {"fine": True})


@pytest.mark.parametrize("body", [b"[[1, 2], [3, 4]]", b'"word"', b"null", b"{}"])
def test_an_act_may_forward_any_json(client: MorpheusClient, faulty: Any, body: bytes) -> None:
    def answer(handler: Any, _status: int, _payload: bytes) -> None:
        handler.wfile.write(f"HTTP/1.1 200 X\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)

    faulty.spoil("POST", "/world/act", answer)
    result = client.act({"path": "/x"})
    assert (result.status, result.body, result.ok) == (200, json.loads(body), True)


@pytest.mark.parametrize(
    ("outer", "body", "status"),
    [
        (201, {"success": True, "status": 201}, 201),
        (404, {"success": False, "status": 404}, 404),
        (200, {"success": False, "status": 409, "error": "x"}, 409),
        (200, {"success": False}, 400),
        (200, {"passed": True}, 200),
        (200, {"status": True}, 200),
        (200, {"status": "operational"}, 200),
    ],
)
def test_an_act_tells_the_inner_status_mirrored_or_not(outer: int, body: Any, status: int) -> None:
    class Fixed:
        def send(self, *_: Any) -> Answer:
            return Answer(outer, body)

        def close(self) -> None:
            """Nothing to close."""

    assert MorpheusClient(transport=Fixed()).act({"path": "/x"}).status == status


def test_acts_are_never_repeated(client: MorpheusClient, faulty: Any, faults: Any, world: str) -> None:
    simulation = faulty.api.worlds.by_id[world].simulation
    faulty.spoil("POST", "/world/act", faults.reset)
    with pytest.raises(TransportError) as caught:
        client.act({"path": f"/{world}/edi"})
    assert caught.value.sent
    assert simulation.now == 10.0, "the action was carried out twice or not at all"
    faulty.spoil("POST", "/world/act", faults.status(503))
    assert client.act({"path": f"/{world}/edi"}).status == 503
    assert simulation.now == 20.0


@pytest.mark.parametrize("fault", ["reset", "truncated", "half_json", "html", "500", "429"])
def test_reads_are_repeated_after_every_kind_of_lost_answer(
    client: MorpheusClient, faulty: Any, faults: Any, world: str, pauses: Pauses, fault: str
) -> None:
    kinds = {"html": faults.html(502), "500": faults.status(500), "429": faults.status(429)}
    faulty.spoil("GET", "/ledger", kinds.get(fault) or getattr(faults, fault), times=3)
    ledger = client.ledger(world)
    assert ledger is not None
    assert ledger.cash == 100_000
    assert len(pauses) == 3
    assert 0.1 <= pauses[0] <= 0.2
    assert 0.2 <= pauses[1] <= 0.4
    assert 0.4 <= pauses[2] <= 0.8


def test_reads_give_up_with_what_was_answered_last(
    client: MorpheusClient, faulty: Any, faults: Any, world: str
) -> None:
    faulty.spoil("GET", "/ledger", faults.html(502), times=4)
    with pytest.raises(ResponseError, match="HTTP 502: the body is no JSON") as caught:
        client.ledger(world)
    assert caught.value.status == 502
    faulty.spoil("GET", "/ledger", faults.half_json, times=4)
    with pytest.raises(ProtocolError, match="no JSON"):
        client.ledger(world)
    faulty.spoil("GET", "/ledger", faults.reset, times=4)
    with pytest.raises(TransportError, match="no answer"):
        client.ledger(world)


def test_retry_after_is_respected_up_to_the_limit(
    client: MorpheusClient, faulty: Any, faults: Any, world: str, pauses: Pauses
) -> None:
    faulty.spoil("GET", "/ledger", faults.status(429, retry_after="3"))
    faulty.spoil("GET", "/ledger", faults.status(503, retry_after="3600"))
    client.ledger(world)
    assert pauses == [3.0, 10.0]


@pytest.mark.parametrize("fault", ["silent", "trickling"])
def test_a_server_that_stalls_is_given_up_on(faulty: Any, faults: Any, fault: str) -> None:
    options = ClientOptions(read_seconds=0.15, attempts=1)
    with MorpheusClient(faulty.url, options) as client:
        faulty.spoil("GET", "/x", getattr(faults, fault))
        with pytest.raises(TransportError, match="ReadTimeout"):
            client.request("GET", "/x")


@pytest.mark.parametrize("fault", ["reset", "truncated", "half_json", "500"])
def test_a_create_whose_answer_was_lost_makes_one_world_and_no_orphan(
    client: MorpheusClient, faulty: Any, faults: Any, fault: str
) -> None:
    faulty.spoil("POST", "/world", faults.status(500) if fault == "500" else getattr(faults, fault))
    record = client.create_world("only-one", "process-outbound")
    assert [world.name for world in faulty.api.worlds.by_id.values()] == ["only-one"]
    assert record.id in faulty.api.worlds.by_id
    assert [seen for seen in faulty.seen if seen[0] == "POST"] == [("POST", "/world")]


def test_a_create_that_never_happened_is_tried_again(
    client: MorpheusClient, faulty: Any, faults: Any
) -> None:
    faulty.spoil("POST", "/world", faults.status(503), times=2, execute=False)
    client.create_world("third-time", "process-outbound")
    assert len(faulty.api.worlds.by_id) == 1


def test_a_refused_create_is_an_error_at_once(client: MorpheusClient, faulty: Any) -> None:
    with pytest.raises(ResponseError, match="HTTP 400"):
        client.create_world("x", "no-such-layout")
    assert [seen[0] for seen in faulty.seen] == ["POST"]


def test_a_delete_whose_answer_was_lost_is_done(
    client: MorpheusClient, faulty: Any, faults: Any, world: str
) -> None:
    faulty.spoil("DELETE", "/world", faults.reset)
    assert client.delete_world(world) is False
    assert faulty.api.worlds.by_id == {}


def test_creates_keep_either_shape_of_chaos(client: MorpheusClient) -> None:
    flags = client.create_world("a", "process-outbound", chaos={"processChaosEnabled": True})
    assert flags.chaos["processChaosEnabled"] is True
    client.set_chaos(flags.id, {"enabled": True, "probability": 0.5, "scenarios": []})
    assert client.get_world(flags.id).chaos["probability"] == 0.5


def test_lists_are_followed_to_their_end(client: MorpheusClient, faulty: Any, world: str) -> None:
    for number in range(45):
        client.create_world(f"w{number}", "process-outbound")
    assert len({one.id for one in client.worlds()}) == 46
    assert client.find_world("w3") is not None
    assert client.find_world("w") is None, "a search result was taken for an exact name"
    simulation = faulty.api.worlds.by_id[world].simulation
    simulation.chaos = {
        "enabled": True,
        "probability": 1.0,
        "scenarios": [{"type": "format_change", "weight": 1}],
    }
    simulation.advance(4000.0)
    tickets = list(client.tickets(world, limit=7, status="new"))
    assert len(tickets) == len({one.id for one in tickets}) == simulation.tickets.count("new") > 20
    assert [one.number for one in simulation.journal.logs][::-1] == [
        int(one.id[1:]) for one in client.logs(world, limit=9)
    ]
    assert len(list(client.items(path_of(world, "edi"), limit=9))) == len(simulation.documents.things)


def test_a_list_that_never_ends_is_left() -> None:
    class Circling:
        def __init__(self) -> None:
            self.calls = 0

        def send(self, *_: Any) -> Answer:
            self.calls += 1
            items = [{"_id": "x"}]
            return Answer(200, {"data": {"items": items, "hasMore": True, "nextCursor": "x"}})

        def close(self) -> None:
            """Nothing to close."""

    transport = Circling()
    assert len(list(MorpheusClient(transport=transport).items("/w/logs"))) == 2
    assert transport.calls == 2


def test_filters_are_plain_words(client: MorpheusClient, faulty: Any, world: str) -> None:
    assert list(client.tickets(world, status="new", priority="low")) == []
    client.request("GET", path_of(world, "edi"), query={"status": "ERRORED", "limit": 3, "cursor": None})
    assert faulty.seen[-1] == ("GET", f"/{world}/edi")


def test_path_segments_are_quoted() -> None:
    assert path_of("a b", "c/d", "ü") == "/a%20b/c%2Fd/%C3%BC"
    for segment in ("", ".", ".."):
        with pytest.raises(ValueError, match="leads elsewhere"):
            path_of("world", segment)


def test_typed_results_survive_unknown_and_missing_keys(
    client: MorpheusClient, faulty: Any, world: str
) -> None:
    summary = client.finance_summary(world)
    assert summary.transaction_count == 0
    assert client.verify_ticket(world, _ticket(faulty, world)).passed is False
    assert client.dashboard(world)["fulfillment"]["total"] >= 0
    assert client.audit_logs(world, model="EdiTransaction")

    def empty(handler: Any, _status: int, _payload: bytes) -> None:
        handler.wfile.write(b'HTTP/1.1 200 X\r\ncontent-length: 12\r\n\r\n{"data": {}}')

    faulty.spoil("GET", "/ledger", empty)
    with pytest.raises(ProtocolError, match="cash"):
        client.ledger(world)


def _ticket(faulty: Any, world: str) -> str:
    simulation = faulty.api.worlds.by_id[world].simulation
    simulation.chaos = {
        "enabled": True,
        "probability": 1.0,
        "scenarios": [{"type": "format_change", "weight": 1}],
    }
    simulation.advance(200.0)
    return f"T{next(iter(simulation.tickets.things))}"


def test_a_world_without_ledger_has_none(
    client: MorpheusClient, faulty: Any, faults: Any, world: str
) -> None:
    faulty.spoil("GET", "/ledger", faults.status(404))
    assert client.ledger(world) is None


def test_a_server_that_is_not_there_is_told_clearly(pauses: Pauses) -> None:
    with MorpheusClient("http://127.0.0.1:9", ClientOptions(attempts=3), sleep=pauses) as client:
        with pytest.raises(WorldUnreachableError, match=r"no MORPHEUS server answers.*ConnectError"):
            client.check_reachable()
        assert len(pauses) == 2
        with pytest.raises(TransportError) as caught:
            client.act({"path": "/x"})
    assert caught.value.sent is False
    assert len(pauses) == 4, "a write that never left may be repeated"


def test_no_header_key_or_password_is_ever_shown(faulty: Any, faults: Any) -> None:
    options = ClientOptions(headers={"Authorization": SECRET, "X-Api-Key": SECRET}, attempts=1)
    assert SECRET not in repr(options)
    messages = []
    with MorpheusClient(faulty.url, options) as client:
        for fault in (faults.reset, faults.html(500), faults.half_json, faults.status(403)):
            faulty.spoil("GET", "/x", fault)
            with pytest.raises((TransportError, ResponseError, ProtocolError)) as caught:
                client.request("GET", "/x")
            messages.append(str(caught.value) + repr(caught.value) + str(caught.value.__cause__))
        assert faulty.headers["authorization"] == SECRET
    assert SECRET not in "".join(messages)


def test_importing_and_building_sets_up_no_logging_and_sends_nothing(faulty: Any) -> None:
    before = list(logging.getLogger().handlers)
    MorpheusClient(faulty.url).close()
    assert logging.getLogger().handlers == before
    assert faulty.seen == []
    probe = (
        "import sys, logging, skyfall_morpheus.client; "
        "sys.exit(bool(logging.getLogger().handlers) or 'httpx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0


def test_options_are_not_shared_between_clients() -> None:
    first, second = MorpheusClient("local:"), MorpheusClient("local:")
    assert first._transport is not second._transport
    assert first.create_world("w", "process-outbound").id
    assert list(second.worlds()) == []


def test_connections_are_closed_on_exit(faulty: Any) -> None:
    with MorpheusClient(faulty.url) as client:
        client.request("GET", "/docs")
        inner = client._transport._client  # type: ignore[attr-defined]
        assert not inner.is_closed
    assert inner.is_closed
