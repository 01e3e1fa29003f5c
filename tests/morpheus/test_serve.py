"""`skyfall morpheus serve`, walked through by a client that knows the API's facts and nothing of ours.

Standard library only: raw requests, the headers that the facts name, every family of endpoints in the
order in which a client would meet them, and what each answer must hold.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
WORLD = "_id name url is_default createdAt updatedAt"
TICKET = "_id worldRef title description requester status priority impact urgency type createdAt updatedAt"
LOG = "_id worldRef logId timestamp serviceType level msg"
AUDIT = "_id model documentId createdAt updatedAt"
VERDICT = "passed ticketId worldId timestamp totalChecks passedChecks failedChecks verificationDurationMs"
LEDGER = "_id worldRef cash totalReceivables totalPayables netPosition"
PAGE = "totalCount limit hasMore"
SERVICES = {"edi", "erp", "as2", "translator", "validator", "gateway", "infra", "other"}


class Client:
    """Says what the facts say a client says, and keeps status and body apart."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}"

    def __call__(self, route: str, body: Any = None, **query: str) -> tuple[int, Any]:
        method, _, path = route.partition(" ")
        url = f"{self.root}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310  # loopback
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                status, kind, raw = answer.status, answer.headers["content-type"], answer.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                status, kind, raw = refusal.code, refusal.headers["content-type"], refusal.read()
        assert kind == "application/json", route
        return status, json.loads(raw)

    def data(self, route: str, body: Any = None, *, code: int = 200, **query: str) -> Any:
        """The data of an enveloped success."""
        got, answer = self(route, body, **query)
        assert (got, answer["success"], answer["status"]) == (code, True, code), (route, answer)
        assert INSTANT.fullmatch(answer["meta"]["timestamp"]), route
        assert isinstance(answer["meta"]["event"], str)
        return answer["data"]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).parent / "skyfall"), "morpheus", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        assert any("running on" in line.lower() for line in process.stderr), "the server never came up"
        yield Client(port)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@pytest.fixture
def world(client: Client, request: pytest.FixtureRequest) -> Iterator[str]:
    """A world of the test's own, with a stuck document and a ticket about it."""
    name = re.sub(r"\W+", "-", request.node.name)
    made = client("POST /world", {"name": name, "layout": "process-outbound"})[1]["world"]["_id"]
    policy = {"enabled": True, "probability": 1.0, "scenarios": [scenario("format_change")]}
    client.data(f"PUT /world/{made}/chaos", policy)
    client.data(f"POST /{made}/edi", order("P1"), code=201)
    passes(client, made)
    client.data(f"DELETE /world/{made}/chaos")
    client.data(f"POST /{made}/edi", order("P2"), code=201)
    passes(client, made)
    yield made
    client(f"DELETE /world/{made}")


def scenario(kind: str) -> dict[str, Any]:
    return {"type": kind, "weight": 1.0, "description": kind, "config": {}}


def order(partner: str) -> dict[str, Any]:
    return {"partnerId": partner, "docType": "850", "direction": "INBOUND", "rawEdi": "ISA*00*"}


def passes(client: Client, world: str) -> None:
    """Let an action's time pass."""
    assert client("POST /world/act", {"path": f"/{world}/od/schedules/status"})[0] == 200


def holds(value: Any, names: str) -> None:
    assert set(names.split()) <= set(value), sorted(set(names.split()) - set(value))


def standard_error(answer: tuple[int, Any], status: int) -> None:
    got, body = answer
    assert (got, body["success"], body["status"]) == (status, False, status), body
    assert isinstance(body["error"], str)
    holds(body["meta"], "event timestamp")


def test_worlds_are_made_listed_read_changed_begun_anew_and_ended(client: Client) -> None:
    body = {"name": "walk", "layout": "process-outbound", "description": None, "is_default": False}
    flags = {"processChaosEnabled": True, "infraChaosEnabled": False}
    status, made = client("POST /world", {**body, "realHoursPerSimDay": 1.5, "chaos": flags}, stream="false")
    assert status == 200
    holds(made, "world mainCompany npcCompanies productsForMpc seedResult capabilities")
    holds(made["world"], WORLD)
    assert flags.items() <= made["world"]["chaos"].items()
    assert (len(made["npcCompanies"]), len(made["productsForMpc"])) == (5, 20)
    holds(made["capabilities"], "samplingType count ids validationWarnings")
    world = made["world"]["_id"]
    assert re.fullmatch(r"[0-9a-f]{24}", world)

    listed = client.data("GET /world", search="walk", is_default="false", mpcCompany="MPC")
    assert [one["_id"] for one in listed["worlds"]] == [world]
    assert listed["nextCursor"] is None
    assert client.data("GET /world", mpcCompany="somebody else")["worlds"] == []
    shown = client.data(f"GET /world/{world}")
    holds(shown, WORLD)
    assert (shown["realHoursPerSimDay"], shown["ticketCreationEnabled"]) == (1.5, True)
    changes = {"description": "d", "personas": {"allowedPersonas": ["worker-1"]}, "capabilityIds": []}
    changed = client.data(f"PATCH /world/{world}", changes)
    assert changed["personas"] == {"allowedPersonas": ["worker-1"], "personaOverrides": {}}
    holds(
        client.data(f"GET /world/{world}/capabilities"),
        "worldId worldName samplingStrategy count capabilityIds capabilities",
    )
    layouts = client.data("GET /world/layouts")
    assert {"process-outbound", "perishables-food-manufacturer"} <= {one["id"] for one in layouts}
    for one in layouts:
        holds(one, "id name description shortDescription")
        holds(client.data(f"GET /world/layouts/{one['id']}"), "id name docs")

    client.data(f"POST /{world}/edi", order("P1"), code=201)
    begun = client.data(f"POST /world/{world}/reset")
    assert begun["success"] is True
    holds(begun, "message seedResult")
    assert client.data(f"GET /world/{world}")["_id"] == world
    assert client("GET /" + world + "/edi")[1]["data"] == []
    assert client.data(f"DELETE /world/{world}") == {"success": True}
    for route in (f"GET /world/{world}", f"DELETE /world/{world}", f"GET /{world}/logs"):
        standard_error(client(route), 404)
    standard_error(client("POST /world", {"name": "no layout", "layout": None}), 400)


def test_acting_fills_placeholders_and_mirrors_the_inner_answer(client: Client, world: str) -> None:
    action = {"path": "/:worldId/edi", "params": {"worldId": world}, "query": {"status": "ERRORED"}}
    status, forwarded = client("POST /world/act", action)
    assert (status, len(forwarded["data"])) == (200, 1)
    ticket = {"title": "t", "description": "d", "requester": "r"}
    created = {"path": f"/{world}/tickets", "method": "POST", "body": ticket}
    assert client("POST /world/act", created)[0] == 201
    status, missing = client("POST /world/act", {"path": f"/{world}/tickets/T999"})
    assert (status, missing["success"]) == (404, False)
    before = client.data(f"GET /world/{world}")["updatedAt"]
    passes(client, world)
    assert client.data(f"GET /world/{world}")["updatedAt"] > before
    for wrong in ({}, {"path": f"/{world}/edi", "method": "get"}, {"path": "/:worldId/edi"}):
        assert client("POST /world/act", wrong)[0] == 400


def test_both_logs_are_observed(client: Client, world: str) -> None:
    logs = client.data(f"GET /{world}/logs", level="error", limit="1")
    holds(logs, f"items {PAGE}")
    assert len(logs["items"]) == 1
    for record in logs["items"]:
        holds(record, LOG)
        assert record["worldRef"] == {"worldId": world}
        assert record["serviceType"] in SERVICES
        assert INSTANT.fullmatch(record["timestamp"])
    audits = client.data(f"GET /{world}/audit-logs", model="EdiTransaction", documentId="E1")
    for record in audits:
        holds(record, AUDIT)
        assert (record["model"], record["documentId"]) == ("EdiTransaction", "E1")
    assert (audits[0]["before"], audits[0]["after"]["status"]) == (None, "RECEIVED")
    standard_error(client(f"GET /{world}/logs", limit="none"), 400)


def test_a_ticket_goes_through_its_life_and_is_verified_against_the_world(client: Client, world: str) -> None:
    listed = client.data(f"GET /{world}/tickets", status="new", limit="5")
    holds(listed, f"items {PAGE}")
    (found,) = listed["items"]
    holds(found, TICKET)
    holds(found["metadata"], "odId odName runId failedStepId failureType contextSnapshots")
    ticket = found["_id"]
    assert client.data(f"GET /{world}/tickets/{ticket}") == found

    status, verdict = client(f"POST /{world}/verification/verify-ticket", {"ticketId": ticket})
    assert (status, verdict["passed"], verdict["failedChecks"]) == (200, False, 1)
    holds(verdict, VERDICT)
    holds(verdict["entityStateChecks"][0], "entityType entityId expectedStates actualState passed")
    client.data(f"PATCH /{world}/edi/E1", {"payload": {"corrected": True}})
    assert client.data(f"POST /{world}/edi/E1/requeue")["status"] == "QUEUED"
    passes(client, world)
    assert client(f"POST /{world}/verification/verify-ticket", {"ticketId": ticket})[1]["passed"] is True

    changed = client.data(f"PUT /{world}/tickets/{ticket}", {"assignedTo": "me", "priority": "critical"})
    assert (changed["assignedTo"], changed["priority"]) == ("me", "critical")
    note = {"author": "me", "note": "done", "isPublic": True}
    noted = client.data(f"PATCH /{world}/tickets/{ticket}/work-notes", {"workNotes": [note]})
    holds(noted["workNotes"][0], "author note isPublic createdAt updatedAt")
    for status_ in ("open", "in_progress", "on_hold", "in_progress", "resolved", "closed"):
        moved = client.data(f"PATCH /{world}/tickets/{ticket}/status", {"status": status_})
        assert moved["status"] == status_
    assert client.data(f"DELETE /{world}/tickets/{ticket}") == {"success": True}

    entity = {"odId": "od-inbound-edi", "entityId": "O1", "entityType": "ORDER"}
    status, verdict = client(f"POST /{world}/verification/verify-entity", entity)
    assert status == 200
    holds(verdict, VERDICT)
    for path, body, wanted in (
        ("verify-ticket", {"ticketId": ticket}, 404),
        ("verify-ticket", {}, 400),
        ("verify-entity", {**entity, "entityType": "order"}, 400),
    ):
        status, refused = client(f"POST /{world}/verification/{path}", body)
        assert (status, set(refused)) == (wanted, {"error"})


def test_chaos_is_read_replaced_and_removed(client: Client, world: str) -> None:
    policy = {"enabled": True, "probability": 0.5, "scenarios": [scenario("rate_limit")], "seed": "s"}
    replaced = client.data(f"PUT /world/{world}/chaos", policy)
    holds(replaced, "worldId chaos message")
    found = client.data(f"GET /world/{world}/chaos")
    holds(found, "worldId worldName chaos")
    assert policy.items() <= found["chaos"].items()
    holds(client.data(f"DELETE /world/{world}/chaos"), "worldId message")
    assert client.data(f"GET /world/{world}/chaos")["chaos"] == {
        "enabled": False,
        "probability": 0.0,
        "scenarios": [],
    }
    status, presets = client("GET /chaos/presets")
    assert (status, presets["count"]) == (200, len(presets["data"]))
    for one in presets["data"]:
        holds(one, "id name description")
        holds(client.data(f"GET /chaos/presets/{one['id']}"), "id name description policy")
    state = client.data("GET /chaos/status")
    holds(state, "enabled activePreset stats")
    holds(state["stats"], "presetCount worldPolicyCount capabilityOverrideCount odOverrideCount")
    for wrong in ({}, {**policy, "probability": 1.5}, {**policy, "scenarios": [scenario("rain")]}):
        status, refused = client(f"PUT /world/{world}/chaos", wrong)
        assert (status, set(refused), refused["success"]) == (400, {"success", "error"}, False)
    assert client("GET /chaos/presets/none")[0] == 404


def test_ledger_and_finance_agree(client: Client, world: str) -> None:
    before = client.data(f"GET /{world}/ledger")
    holds(before, LEDGER)
    assert before["netPosition"] == before["cash"] + before["totalReceivables"] - before["totalPayables"]
    deltas = {"cashDelta": 5.0, "receivablesDelta": 3.0, "payablesDelta": 2.0}
    after = client.data(f"PATCH /{world}/ledger/increment", deltas)
    assert after["netPosition"] == before["netPosition"] + 6.0
    assert client.data(f"PATCH /{world}/ledger", {"cash": 10.0})["cash"] == 10.0
    assert client.data(f"POST /{world}/ledger", {"cash": 20.0}, code=201)["cash"] == 20.0
    totals = client.data(f"GET /{world}/ledger/analytics/summary")
    assert (totals["totalCash"], totals["ledgerCount"]) == (20.0, 1)
    holds(totals, "totalReceivables totalPayables totalNetPosition positiveLedgers negativeLedgers")
    sale = {"type": "payment_in", "amount": 30.0, "sourceType": "manual", "sourceId": "x"}
    booked = client.data(f"POST /{world}/finance/transactions", sale, code=201)
    holds(booked, "transactionId type amount sourceType sourceId partnerId metadata")
    summary = client.data(f"GET /{world}/finance/summary")
    holds(summary, "totalIncoming totalOutgoing netBalance transactionCount avgTransactionAmount")
    assert summary["netBalance"] == summary["totalIncoming"] - summary["totalOutgoing"]
    assert client.data(f"GET /{world}/ledger")["cash"] == 50.0
    status, listed = client(f"GET /{world}/finance/transactions", type="payment_in")
    assert status == 200
    assert booked["transactionId"] in [one["transactionId"] for one in listed["data"]]
    holds(listed["pagination"], PAGE)
    for route, body in (("PATCH", {}), ("PATCH", {"cashDelta": "much"})):
        status, refused = client(f"{route} /{world}/ledger/increment", body)
        assert (status, set(refused)) == (400, {"success", "status", "error"})
    standard_error(client(f"POST /{world}/finance/transactions", {**sale, "amount": 0}), 400)


def test_edi_comes_in_is_listed_page_by_page_and_put_away(client: Client, world: str) -> None:
    for partner in ("P3", "P4"):
        made = client.data(f"POST /{world}/edi", order(partner), code=201)
        assert (made["direction"], made["docType"]) == ("IN", "850")
    seen, query = [], {"limit": "3", "direction": "INBOUND"}
    while True:
        status, page = client(f"GET /{world}/edi", **query)
        assert status == 200
        holds(page["pagination"], f"{PAGE} nextCursor")
        seen += [one["_id"] for one in page["data"]]
        if not page["pagination"]["hasMore"]:
            break
        query["cursor"] = page["pagination"]["nextCursor"]
    assert seen == sorted(set(seen), key=lambda name: int(name[1:]))
    assert len(seen) == page["pagination"]["totalCount"]
    stuck = client.data(f"GET /{world}/edi/E1")
    assert (stuck["status"], stuck["errorReason"]) == ("ERRORED", "format_change")
    assert client.data(f"PATCH /{world}/edi/E1/status", {"status": "ARCHIVED"})["status"] == "ARCHIVED"
    holds(
        client.data(f"GET /{world}/edi/statistics/invoice"),
        "total errored rejectionRate totalExposureDollar firstPassAcceptanceRate",
    )
    standard_error(client(f"POST /{world}/edi/E1/requeue"), 409)
    standard_error(client(f"GET /{world}/edi/E999"), 404)
    standard_error(client(f"POST /{world}/edi", {"partnerId": "P1"}), 400)
    standard_error(client(f"GET /{world}/edi", cursor="nonsense"), 400)


def test_the_warehouse_is_seen_and_an_order_goes_out(client: Client, world: str) -> None:
    board = client.data(f"GET /{world}/wms/operations-dashboard")
    holds(board["inventory"], "totalItems byStatus lowStockAlerts expiringAlerts")
    holds(board["receiving"], "total pending expected inTransit receiving received dueToday")
    holds(
        board["fulfillment"],
        "total active created released allocated picking picked packing packed shipped rushOrders",
    )
    holds(board["tasks"], "total pending inProgress completedToday byType")
    pending = client.data(f"GET /{world}/wms/outbound-orders/status", status="PENDING")
    holds(pending, f"items {PAGE}")
    one = pending["items"][0]
    path = f"/{world}/wms/outbound-orders/{one['orderId']}"
    wanted = {"allocatedQuantity": one["lines"][0]["orderedQuantity"]}
    client.data(f"PUT {path}/lines/1/allocate", wanted)
    for _ in range(12):
        passes(client, world)
    assert client.data(f"GET {path}")["orderStatus"] == "PACKED"
    assert client.data(f"PUT {path}/status", {"status": "SHIPPED"})["orderStatus"] == "SHIPPED"
    metrics = client.data(f"GET /{world}/wms/outbound-orders/metrics")
    holds(metrics, "totalOrders completedOrders onTimeShipments fulfillmentRate ordersByStatus topCustomers")
    assert metrics["completedOrders"] == 1
    drafts = client(f"GET /{world}/erp/invoices", status="DRAFT")[1]["data"]
    assert [draft["orderId"] for draft in drafts] == [one["orderId"]]
    standard_error(client(f"GET /{world}/wms/outbound-orders/status"), 400)


def test_schedules_are_paused_resumed_and_set(client: Client, world: str) -> None:
    for verb, state in (("pause", "paused"), ("resume", "operational")):
        done = client.data(f"PUT /{world}/od/schedules/{verb}")
        holds(done, "message count")
        assert client.data(f"GET /{world}/od/schedules/status")["status"] == state
    path = f"/{world}/od/descriptors/od-inbound-edi"
    holds(client.data(f"GET {path}"), "name type steps inputs runPolicy")
    made = client.data(f"POST {path}/schedule", {"type": "recurring", "interval": "9 minutes"}, code=201)
    holds(made, "jobId nextRunAt type")
    for one in client.data(f"GET {path}/schedules"):
        holds(one, "jobId nextRunAt lastRunAt interval isRecurring lastRunResult data")
    assert len(client.data(f"GET /{world}/od/descriptors")) == 1
    standard_error(client(f"GET /{world}/od/descriptors/none"), 404)


def test_the_server_tells_what_it_answers(client: Client) -> None:
    assert client("GET /docs")[0] == 200
    status, mesh = client("GET /docs/mesh", service="edi")
    assert status == 200
    assert {"method": "POST", "path": "/{w}/edi"} in mesh["actions"]
    status, described = client("GET /docs/swagger.json")
    assert (status, described["openapi"][:2]) == (200, "3.")
    assert "post" in described["paths"]["/world/act"]
    standard_error(client("GET /docs/mesh"), 400)
    standard_error(client("GET /none/such/route"), 404)
