"""The recorded wire contract: for every route of the local server, what the API's facts promise of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from skyfall_morpheus.local.api import LocalApi
from skyfall_morpheus.local.app import LARGEST_BODY, LocalApp
from skyfall_morpheus.local.model import Rules
from skyfall_morpheus.local.routing import Reply

ENVELOPE = {"success": bool, "status": int, "data": object}
META = {"event": str, "timestamp": str}
WORLD = {
    "_id": str,
    "name": str,
    "url": str,
    "is_default": bool,
    "createdAt": str,
    "updatedAt": str,
    "chaos": dict,
}
TICKET = {
    "_id": str,
    "worldRef": dict,
    "title": str,
    "description": str,
    "requester": str,
    "status": str,
    "priority": str,
    "impact": str,
    "urgency": str,
    "type": str,
    "createdAt": str,
    "updatedAt": str,
}
LOG = {
    "_id": str,
    "worldRef": dict,
    "logId": str,
    "timestamp": str,
    "serviceType": str,
    "level": str,
    "msg": str,
}
AUDIT = {"_id": str, "model": str, "documentId": str, "createdAt": str, "updatedAt": str}
LEDGER = {
    "_id": str,
    "worldRef": dict,
    "cash": float,
    "totalReceivables": float,
    "totalPayables": float,
    "netPosition": float,
}
POLICY = {"enabled": bool, "probability": float, "scenarios": list}
PAGE = {"totalCount": int, "limit": int, "hasMore": bool}
ITEMS = {"items": list, **PAGE}
VERIFICATION = {
    "passed": bool,
    "ticketId": str,
    "worldId": str,
    "timestamp": str,
    "totalChecks": int,
    "passedChecks": int,
    "failedChecks": int,
    "verificationDurationMs": int,
}
DASHBOARD = {
    "inventory": dict,
    "receiving": dict,
    "fulfillment": dict,
    "tasks": dict,
}
FULFILLMENT = (
    "total active created released allocated picking picked packing packed shipped rushOrders".split()  # noqa: SIM905
)

CHAOS = {
    "enabled": True,
    "probability": 1.0,
    "scenarios": [{"type": "format_change", "weight": 1, "description": ""}],
}
DONE = {"success": bool}

# route, body, status, keys of the body's data (None: the body itself is not enveloped, see BARE)
CONTRACT: list[tuple[str, Any, int, dict[str, Any] | None]] = [
    ("GET /world", None, 200, {"worlds": list}),
    ("GET /world/layouts", None, 200, None),
    ("GET /world/layouts/process-outbound", None, 200, {"id": str, "name": str, "docs": str}),
    ("GET /world/{w}", None, 200, WORLD),
    ("PATCH /world/{w}", {"description": "changed"}, 200, WORLD),
    ("GET /world/{w}/capabilities", None, 200, {"worldId": str, "count": int, "capabilityIds": list}),
    ("GET /world/{w}/chaos", None, 200, {"worldId": str, "worldName": str, "chaos": dict}),
    ("PUT /world/{w}/chaos", CHAOS, 200, {"worldId": str, "chaos": dict, "message": str}),
    ("DELETE /world/{w}/chaos", None, 200, {"worldId": str, "message": str}),
    ("GET /chaos/presets", None, 200, None),
    ("GET /chaos/presets/light", None, 200, {"id": str, "policy": dict}),
    ("GET /chaos/status", None, 200, {"enabled": bool, "stats": dict}),
    ("GET /{w}/audit-logs", None, 200, None),
    ("GET /{w}/logs", None, 200, ITEMS),
    ("GET /{w}/tickets", None, 200, ITEMS),
    ("POST /{w}/tickets", {"title": "t", "description": "d", "requester": "r"}, 201, TICKET),
    ("GET /{w}/tickets/{ticket}", None, 200, TICKET),
    ("PUT /{w}/tickets/{ticket}", {"assignedTo": "somebody"}, 200, TICKET),
    ("PATCH /{w}/tickets/{ticket}/status", {"status": "open"}, 200, TICKET),
    ("PATCH /{w}/tickets/{ticket}/work-notes", {"workNotes": [{"author": "a", "note": "n"}]}, 200, TICKET),
    ("GET /{w}/ledger", None, 200, LEDGER),
    ("PATCH /{w}/ledger", {"cash": 5000.0}, 200, LEDGER),
    ("POST /{w}/ledger", {"cash": 6000.0}, 201, LEDGER),
    ("PATCH /{w}/ledger/increment", {"cashDelta": 1.0}, 200, LEDGER),
    (
        "GET /{w}/ledger/analytics/summary",
        None,
        200,
        {"totalCash": float, "totalNetPosition": float, "ledgerCount": int},
    ),
    (
        "GET /{w}/finance/summary",
        None,
        200,
        {
            "totalIncoming": float,
            "totalOutgoing": float,
            "netBalance": float,
            "transactionCount": int,
            "avgTransactionAmount": float,
        },
    ),
    ("GET /{w}/finance/transactions", None, 200, None),
    (
        "POST /{w}/finance/transactions",
        {"type": "payment_in", "amount": 5.0, "sourceType": "manual", "sourceId": "x"},
        201,
        {"transactionId": str, "type": str, "amount": float},
    ),
    ("GET /{w}/edi", None, 200, None),
    (
        "POST /{w}/edi",
        {"partnerId": "P1", "docType": "850", "direction": "INBOUND", "rawEdi": "ISA"},
        201,
        {"_id": str, "docType": str, "direction": str, "status": str},
    ),
    ("GET /{w}/edi/{edi}", None, 200, {"_id": str, "status": str}),
    ("PATCH /{w}/edi/{edi}", {"payload": {"a": 1}}, 200, {"_id": str, "status": str}),
    ("POST /{w}/edi/{edi}/requeue", None, 200, {"_id": str, "status": str}),
    ("PATCH /{w}/edi/{edi}/status", {"status": "ARCHIVED"}, 200, {"_id": str, "status": str}),
    (
        "GET /{w}/edi/statistics/invoice",
        None,
        200,
        {"total": int, "errored": int, "rejectionRate": float, "firstPassAcceptanceRate": float},
    ),
    ("GET /{w}/wms/operations-dashboard", None, 200, DASHBOARD),
    ("GET /{w}/wms/inventory", None, 200, {"items": list, "pagination": dict}),
    ("GET /{w}/wms/outbound-orders/status?status=PENDING", None, 200, ITEMS),
    ("GET /{w}/wms/outbound-orders/metrics", None, 200, {"totalOrders": int, "onTimeShipments": int}),
    ("GET /{w}/wms/outbound-orders/{order}", None, 200, {"orderId": str, "orderStatus": str, "lines": list}),
    ("PUT /{w}/wms/outbound-orders/{order}/priority", {"priority": "HIGH"}, 200, {"orderPriority": str}),
    (
        "PUT /{w}/wms/outbound-orders/{order}/lines/1/allocate",
        {"allocatedQuantity": 1},
        200,
        {"orderId": str},
    ),
    ("PUT /{w}/wms/outbound-orders/{order}/status", {"status": "CANCELLED"}, 200, {"orderStatus": str}),
    ("GET /{w}/erp/companies", None, 200, None),
    ("GET /{w}/erp/products", None, 200, None),
    ("GET /{w}/erp/invoices", None, 200, None),
    ("GET /{w}/erp/payments", None, 200, None),
    ("PUT /{w}/od/schedules/pause", None, 200, {"message": str, "count": int}),
    ("PUT /{w}/od/schedules/resume", None, 200, {"message": str, "count": int}),
    ("GET /{w}/od/schedules/status", None, 200, {"status": str}),
    ("GET /{w}/od/descriptors", None, 200, None),
    ("GET /{w}/od/descriptors/od-inbound-edi", None, 200, {"name": str, "type": str}),
    ("GET /{w}/od/descriptors/od-inbound-edi/schedules", None, 200, None),
    (
        "POST /{w}/od/descriptors/od-inbound-edi/schedule",
        {"type": "recurring", "interval": "30 minutes"},
        201,
        {"jobId": str, "nextRunAt": str, "type": str},
    ),
    ("DELETE /{w}/tickets/{ticket}", None, 200, DONE),
    ("POST /world/{w}/reset", None, 200, {"success": bool, "message": str, "seedResult": dict}),
    ("DELETE /world/{w}", None, 200, DONE),
]


INVOICE = {
    "_id": str,
    "invoiceId": str,
    "customerId": str,
    "orderId": str,
    "status": str,
    "issueDate": str,
    "totalAmount": float,
    "balanceDue": float,
    "allowances": list,
}
PAYMENT = {
    "_id": str,
    "paymentId": str,
    "customerId": str,
    "status": str,
    "paymentDate": str,
    "totalAmount": float,
    "referenceNumbers": list,
}

# route, body, keys of the answer's data, and what is in it; on a world with invoices and a payment
ERP: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    ("GET /{w}/erp/invoices/{draft}", None, INVOICE, {"status": "DRAFT", "allowances": []}),
    ("PUT /{w}/erp/invoices/{draft}/status", {"status": "SENT"}, INVOICE, {"status": "SENT"}),
    (
        "PUT /{w}/erp/invoices/{sent}",
        {"allowances": [{"type": "early-payment"}]},
        INVOICE,
        {"status": "SENT", "allowances": [{"type": "early-payment"}]},
    ),
    ("GET /{w}/erp/payments/{payment}", None, PAYMENT, {"status": "UNMATCHED"}),
    (
        "PUT /{w}/erp/payments/{payment}/allocations",
        {"allocations": [{"invoiceId": "I1", "amount": 1.0}]},
        PAYMENT,
        {"status": "APPLIED"},
    ),
]


def has(value: Any, keys: dict[str, Any]) -> None:
    assert isinstance(value, dict)
    for key, kind in keys.items():
        assert key in value, f"{key} is missing in {sorted(value)}"
        fits = isinstance(value[key], int | float) if kind is float else isinstance(value[key], kind)
        assert fits, f"{key}: {value[key]!r} is no {kind}"


def made() -> tuple[LocalApi, dict[str, str]]:
    """A server with a world in which something of everything exists."""
    api = LocalApi()
    created = api.dispatch("POST", "/world", body={"name": "contract", "layout": "process-outbound"})
    world = created.body["world"]["_id"]
    for _ in range(3):
        inject(api, world)
    tick(api, world, 2)
    api.dispatch("PUT", f"/world/{world}/chaos", body=CHAOS)
    inject(api, world)
    tick(api, world, 2)
    stuck = api.dispatch("GET", f"/{world}/edi", {"status": "ERRORED"}).body["data"][0]
    ticket = api.dispatch("GET", f"/{world}/tickets").body["data"]["items"][0]
    return api, {"w": world, "edi": stuck["_id"], "order": "O1", "ticket": ticket["_id"]}


def inject(api: LocalApi, world: str) -> None:
    body = {"partnerId": "P1", "docType": "850", "direction": "INBOUND", "rawEdi": ""}
    assert api.dispatch("POST", f"/{world}/edi", body=body).status == 201


def tick(api: LocalApi, world: str, count: int = 1) -> None:
    for _ in range(count):
        api.dispatch("POST", "/world/act", body={"path": f"/{world}/od/schedules/status"})


def call(api: LocalApi, route: str, body: Any, ids: dict[str, str]) -> Reply:
    method, _, target = route.partition(" ")
    path, _, query = target.format(**ids).partition("?")
    return api.dispatch(method, path, dict([query.split("=")]) if query else {}, body)


@pytest.mark.parametrize(("route", "body", "status", "keys"), CONTRACT, ids=[entry[0] for entry in CONTRACT])
def test_route_answers_as_the_facts_say(
    route: str, body: Any, status: int, keys: dict[str, Any] | None
) -> None:
    api, ids = made()
    reply = call(api, route, body, ids)
    assert reply.status == status, reply.body
    has(reply.body, ENVELOPE)
    has(reply.body["meta"], META)
    assert reply.body["status"] == status
    if keys is not None:
        has(reply.body["data"], keys)
    else:
        assert isinstance(reply.body["data"], list)


def traded() -> tuple[LocalApi, dict[str, str]]:
    """A server with a world that has a draft, a sent invoice, and a payment that matches nothing yet."""
    api = LocalApi(Rules(unmatched_share=1.0))
    created = api.dispatch("POST", "/world", body={"name": "erp", "layout": "process-outbound"})
    world = created.body["world"]["_id"]
    for _ in range(3):
        inject(api, world)
    tick(api, world)
    for number in (1, 2, 3):
        path = f"/{world}/wms/outbound-orders/O{number}"
        line = api.dispatch("GET", path).body["data"]["lines"][0]
        wanted = {"allocatedQuantity": line["orderedQuantity"]}
        assert api.dispatch("PUT", f"{path}/lines/1/allocate", body=wanted).status == 200
    tick(api, world, 12)
    for number in (1, 2, 3):
        done = api.dispatch(
            "PUT", f"/{world}/wms/outbound-orders/O{number}/status", body={"status": "SHIPPED"}
        )
        assert done.status == 200, done.body
    for number in (1, 2):
        api.dispatch("PUT", f"/{world}/erp/invoices/I{number}/status", body={"status": "SENT"})
    api.dispatch("PUT", f"/{world}/erp/invoices/I1", body={"allowances": [{"type": "early-payment"}]})
    tick(api, world)
    return api, {"w": world, "draft": "I3", "sent": "I2", "payment": "P1"}


@pytest.mark.parametrize(("route", "body", "keys", "held"), ERP, ids=[entry[0] for entry in ERP])
def test_invoices_and_payments_answer_as_the_facts_say(
    route: str, body: Any, keys: dict[str, Any], held: dict[str, Any]
) -> None:
    api, ids = traded()
    reply = call(api, route, body, ids)
    assert (reply.status, reply.body["status"]) == (200, 200)
    has(reply.body, ENVELOPE)
    has(reply.body["meta"], META)
    has(reply.body["data"], keys)
    assert held.items() <= reply.body["data"].items()
    assert reply.body["data"]["_id"] in ids.values()


def test_paying_moves_money_from_receivables_to_cash() -> None:
    api, ids = traded()
    before = api.dispatch("GET", f"/{ids['w']}/ledger").body["data"]
    paid = api.dispatch("GET", f"/{ids['w']}/erp/payments/P1").body["data"]["totalAmount"]
    call(api, "PUT /{w}/erp/payments/{payment}/allocations", {"allocations": []}, ids)
    after = api.dispatch("GET", f"/{ids['w']}/ledger").body["data"]
    assert after["cash"] - before["cash"] == pytest.approx(paid)
    assert after["totalReceivables"] - before["totalReceivables"] == pytest.approx(-paid)
    invoice = api.dispatch("GET", f"/{ids['w']}/erp/invoices/I1").body["data"]
    assert (invoice["status"], invoice["balanceDue"]) == ("PAID", 0.0)
    assert invoice["totalAmount"] > paid, "the discount was not given"


def test_what_invoices_and_payments_refuse_has_the_standard_shape() -> None:
    api, ids = traded()
    refused = [
        ("PUT /{w}/erp/invoices/{draft}/status", {"status": "PAID"}, 409),
        ("PUT /{w}/erp/invoices/{draft}/status", {"status": "GONE"}, 400),
        ("PUT /{w}/erp/invoices/{draft}/status", {}, 400),
        ("PUT /{w}/erp/invoices/{sent}/status", {"status": "SENT"}, 409),
        ("PUT /{w}/erp/invoices/{draft}", {"allowances": [{"type": "early-payment"}]}, 409),
        ("PUT /{w}/erp/invoices/{sent}", {"allowances": []}, 400),
        ("PUT /{w}/erp/payments/{payment}/allocations", {"allocations": 3}, 400),
        ("PUT /{w}/erp/payments/P99/allocations", {"allocations": []}, 404),
        ("GET /{w}/erp/invoices/I99", None, 404),
    ]
    for route, body, status in refused:
        reply = call(api, route, body, ids)
        assert reply.status == status, route
        has(reply.body, {"success": bool, "status": int, "error": str, "meta": dict})


def _pattern(route: str) -> str:
    """The route as the server names it: whatever stands for an id is `{id}`."""
    path = route.partition(" ")[2].replace("{w}", "\0")
    for name in ("{draft}", "{sent}", "{payment}"):
        path = path.replace(name, "{id}")
    return path.replace("\0", "{w}")


def test_every_route_of_the_server_is_in_the_contract() -> None:
    api, ids = made()
    covered = set()
    for route, *_ in CONTRACT:
        method, _, target = route.partition(" ")
        segments = target.format(**ids).partition("?")[0].strip("/").split("/")
        covered.add((method, len(segments), segments[0] == ids["w"], segments[-1]))
    elsewhere = {"POST /world", "POST /world/act", "GET /docs", "GET /docs/mesh", "GET /{w}/overview"}
    elsewhere |= {"POST /{w}/step"}
    elsewhere |= {"POST /{w}/verification/verify-ticket", "POST /{w}/verification/verify-entity"}
    elsewhere |= {"GET /docs/swagger.json"}
    elsewhere |= {"POST /world/restore", "GET /{w}/snapshot"}  # extensions: test_snapshot
    elsewhere |= {f"{route.split(' ')[0]} {_pattern(route)}" for route, *_ in ERP}
    routes = list(_routes(api._router._root, ""))
    assert len(routes) > 60
    missing = []
    for route in routes:
        if route in elsewhere:
            continue
        method, _, path = route.partition(" ")
        segments = path.strip("/").split("/")
        wild = segments[-1].startswith("{")
        hit = any(
            one[0] == method and one[1] == len(segments) and (wild or one[3] == segments[-1])
            for one in covered
        )
        if not hit:
            missing.append(route)
    assert missing == []


def _routes(node: Any, path: str) -> Any:
    yield from (f"{method} {path}" for method in node.handlers)
    for name, child in node.literals.items():
        yield from _routes(child, f"{path}/{name}")
    if node.wild is not None:
        yield from _routes(node.wild, f"{path}/{{{node.wild.name}}}")


def test_create_is_not_enveloped_and_answers_200() -> None:
    api = LocalApi()
    body = {
        "name": "one",
        "layout": "process-outbound",
        "description": None,
        "is_default": False,
        "realHoursPerSimDay": None,
        "chaos": {"processChaosEnabled": True, "infraChaosEnabled": False},
    }
    reply = api.dispatch("POST", "/world", {"stream": "false"}, body)
    assert reply.status == 200
    has(reply.body["world"], WORLD)
    assert reply.body["world"]["chaos"]["processChaosEnabled"] is True
    has(reply.body["world"]["chaos"], POLICY)
    has(
        reply.body["capabilities"],
        {"samplingType": str, "count": int, "ids": list, "validationWarnings": list},
    )
    assert len(reply.body["npcCompanies"]) == 5
    assert len(reply.body["productsForMpc"]) == 20


def test_records_have_every_required_key() -> None:
    api, ids = made()
    data = api.dispatch("GET", f"/{ids['w']}/logs").body["data"]["items"]
    for record in data:
        has(record, LOG)
        assert record["serviceType"] in {
            "edi",
            "erp",
            "as2",
            "translator",
            "validator",
            "gateway",
            "infra",
            "other",
        }
    audits = api.dispatch("GET", f"/{ids['w']}/audit-logs").body["data"]
    assert audits
    for record in audits:
        has(record, AUDIT)
    for record in api.dispatch("GET", f"/{ids['w']}/tickets").body["data"]["items"]:
        has(record, TICKET)
        assert record["metadata"]["failureType"] == "format_change"
    fulfillment = api.dispatch("GET", f"/{ids['w']}/wms/operations-dashboard").body["data"]["fulfillment"]
    assert set(FULFILLMENT) <= set(fulfillment)


def test_verification_is_bare_and_looks_at_the_world_again() -> None:
    api, ids = made()
    path = f"/{ids['w']}/verification/verify-ticket"
    before = api.dispatch("POST", path, body={"ticketId": ids["ticket"]})
    has(before.body, VERIFICATION)
    assert before.body["passed"] is False
    assert before.body["failureReason"] == "format_change"
    api.dispatch("PATCH", f"/{ids['w']}/edi/{ids['edi']}", body={"payload": {"fixed": True}})
    api.dispatch("POST", f"/{ids['w']}/edi/{ids['edi']}/requeue")
    tick(api, ids["w"])
    assert api.dispatch("POST", path, body={"ticketId": ids["ticket"]}).body["passed"] is True
    entity = f"/{ids['w']}/verification/verify-entity"
    found = api.dispatch("POST", entity, body={"odId": "od-inbound-edi", "entityId": "O1"})
    has(found.body, VERIFICATION)
    lower = api.dispatch("POST", entity, body={"odId": "x", "entityId": "O1", "entityType": "order"})
    assert (lower.status, set(lower.body)) == (400, {"error"})


def test_each_family_of_errors_has_its_own_shape() -> None:
    api, ids = made()
    world = ids["w"]
    standard = [
        api.dispatch("GET", "/world/nope"),
        api.dispatch("GET", "/nope/logs"),
        api.dispatch("GET", f"/{world}/edi/E999"),
        api.dispatch("POST", "/world", body={"layout": "process-outbound"}),
        api.dispatch("POST", "/world", body={"name": "x", "layout": "unknown"}),
        api.dispatch("GET", f"/{world}/no/such/route"),
    ]
    for reply in standard:
        assert reply.status in {400, 404}
        has(reply.body, {"success": bool, "status": int, "error": str, "meta": dict})
        assert reply.body["status"] == reply.status
    ledger = api.dispatch("PATCH", f"/{world}/ledger/increment", body={})
    assert (ledger.status, set(ledger.body)) == (400, {"success", "status", "error"})
    chaos = api.dispatch("PUT", f"/world/{world}/chaos", body={"enabled": True})
    assert (chaos.status, set(chaos.body)) == (400, {"success", "error"})
    verification = api.dispatch("POST", f"/{world}/verification/verify-ticket", body={"ticketId": "T99"})
    assert (verification.status, set(verification.body)) == (404, {"error"})
    wrong_method = api.dispatch("DELETE", f"/{world}/ledger")
    assert wrong_method.status == 405


def test_act_forwards_status_and_body_and_lets_time_pass() -> None:
    api, ids = made()
    world = ids["w"]
    before = api.dispatch("GET", f"/world/{world}").body["data"]["updatedAt"]
    plain = api.dispatch("GET", f"/{world}/edi/{ids['edi']}")
    acted = api.dispatch(
        "POST",
        "/world/act",
        body={"path": "/:worldId/edi/:id", "params": {"worldId": world, "id": ids["edi"]}},
    )
    assert (acted.status, acted.body["data"]) == (plain.status, plain.body["data"])
    assert api.dispatch("GET", f"/world/{world}").body["data"]["updatedAt"] > before
    missing = api.dispatch("POST", "/world/act", body={"path": f"/{world}/edi/E999", "method": "GET"})
    assert missing.status == 404
    created = api.dispatch(
        "POST",
        "/world/act",
        body={
            "path": f"/{world}/tickets",
            "method": "POST",
            "body": {"title": "t", "description": "d", "requester": "r"},
        },
    )
    assert created.status == 201
    for body in (
        None,
        {},
        {"path": 3},
        {"path": "/x", "method": "get"},
        {"path": "/world/act", "method": "POST"},
    ):
        assert api.dispatch("POST", "/world/act", body=body).status == 400
    listed = api.dispatch(
        "POST", "/world/act", body={"path": f"/{world}/edi", "query": {"status": "ERRORED"}}
    )
    assert {item["status"] for item in listed.body["data"]} == {"ERRORED"}
    assert ids["edi"] in [item["_id"] for item in listed.body["data"]]


def test_the_step_extension_is_act_and_overview_in_one() -> None:
    one, ids = made()
    two, _ = made()
    action = {"path": f"/{ids['w']}/edi/{ids['edi']}/requeue", "method": "POST"}
    acted = one.dispatch("POST", "/world/act", body=action)
    seen = one.dispatch("GET", f"/{ids['w']}/overview").body["data"]
    stepped = two.dispatch("POST", f"/{ids['w']}/step", body=action).body["data"]
    assert stepped == {"status": acted.status, "body": acted.body, "overview": seen}
    refused = two.dispatch("POST", f"/{ids['w']}/step", body={"path": f"/{ids['w']}/edi/E999"})
    assert (refused.status, refused.body["data"]["status"]) == (200, 404)


def test_the_asgi_application_answers_any_asgi_client() -> None:
    async def talk() -> list[Any]:
        transport = httpx.ASGITransport(LocalApp(LocalApi()))
        async with httpx.AsyncClient(transport=transport, base_url="http://local") as client:
            body = {"name": "asgi", "layout": "process-outbound"}
            created = await client.post("/world", json=body, params={"stream": "false"})
            world = created.json()["world"]["_id"]
            listed = await client.get(f"/{world}/wms/outbound-orders/status", params={"status": "PENDING"})
            garbled = await client.post("/world", content=b"{")
            large = await client.post("/world", content=b" " * (LARGEST_BODY + 1))
            return [
                created.status_code,
                listed.json()["data"]["items"],
                garbled.status_code,
                large.status_code,
            ]

    assert asyncio.run(talk()) == [200, [], 400, 413]


def test_lists_are_narrowed_by_period_and_property() -> None:
    api, ids = made()
    world = ids["w"]
    tick(api, world, 6)
    everything = api.dispatch("GET", f"/{world}/edi").body["data"]
    assert len({one["createdAt"] for one in everything}) > 1
    split = everything[-1]["createdAt"]
    for path in ("edi", "tickets", "logs", "audit-logs"):
        whole = listed(api, f"/{world}/{path}", {})
        early = listed(api, f"/{world}/{path}", {"dateEnd": split})
        late = listed(api, f"/{world}/{path}", {"dateStart": split})
        exactly = listed(api, f"/{world}/{path}", {"dateStart": split, "dateEnd": split})
        assert len(early) + len(late) - len(exactly) == len(whole) > 0, path
        assert listed(api, f"/{world}/{path}", {"dateStart": "2026-01-05"}) == whole
        assert listed(api, f"/{world}/{path}", {"dateStart": "2026-01-06T00:00:00Z"}) == []
        assert api.dispatch("GET", f"/{world}/{path}", {"dateStart": "yesterday"}).status == 400
    for name in ("impact", "urgency"):
        shown = listed(api, f"/{world}/tickets", {})[0][name]
        assert all(one[name] == shown for one in listed(api, f"/{world}/tickets", {name: shown}))
        assert listed(api, f"/{world}/tickets", {name: "none such"}) == []


def test_invoices_and_payments_are_narrowed_by_customer() -> None:
    api, ids = traded()
    for path in ("erp/invoices", "erp/payments"):
        whole = listed(api, f"/{ids['w']}/{path}", {})
        customer = whole[0]["customerId"]
        found = listed(api, f"/{ids['w']}/{path}", {"customerId": customer})
        assert found == [one for one in whole if one["customerId"] == customer]
        assert listed(api, f"/{ids['w']}/{path}", {"dateEnd": "2026-01-04"}) == []


def listed(api: LocalApi, path: str, query: dict[str, str]) -> list[Any]:
    data = api.dispatch("GET", path, query).body["data"]
    return list(data["items"] if isinstance(data, dict) else data)


def test_documentation_tells_every_route() -> None:
    api, _ = made()
    document = api.dispatch("GET", "/docs/swagger.json").body
    routes = {f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs}
    assert routes == set(_routes(api._router._root, ""))
    mesh = api.dispatch("GET", "/docs/mesh", {"service": "edi", "method": "GET"}).body
    assert {"method": "GET", "path": "/{w}/edi/{id}"} in mesh["actions"]
    assert {action["method"] for action in mesh["actions"]} == {"GET"}
    assert api.dispatch("GET", "/docs/mesh").status == 400


def test_a_world_record_takes_every_field_it_documents() -> None:
    api, ids = made()
    changes = {
        "name": "renamed",
        "description": "new",
        "layout": "perishables-food-manufacturer",
        "realHoursPerSimDay": 1.5,
        "capabilityIds": ["od-inbound-edi"],
        "samplingStrategy": {"type": "random", "count": 1, "seed": 4},
        "ticketCreationEnabled": False,
    }
    record = api.dispatch("PATCH", f"/world/{ids['w']}", body={**changes, "is_default": True}).body["data"]
    assert changes.items() <= record.items()
    assert record["is_default"] is True
    for name, value in (("layout", "x"), ("capabilityIds", [3]), ("realHoursPerSimDay", 0)):
        assert api.dispatch("PATCH", f"/world/{ids['w']}", body={name: value}).status == 400
    other = api.dispatch("POST", "/world", body={"name": "other", "layout": "process-outbound"})
    for refused in ({"name": "other"}, {"chaos": {}}, {"personas": {"allowedPersonas": ["nobody"]}}):
        body = {"description": "by half", **refused}
        assert api.dispatch("PATCH", f"/world/{ids['w']}", body=body).status == 400
        assert api.dispatch("GET", f"/world/{ids['w']}").body["data"]["description"] == "new"
    renamed = api.dispatch("PATCH", f"/world/{other.body['world']['_id']}", body={"name": "other"})
    assert renamed.status == 200
    policy = {**CHAOS, "persistCorruptedData": True, "seed": "s"}
    shown = api.dispatch("PUT", f"/world/{ids['w']}/chaos", body=policy).body["data"]["chaos"]
    assert (shown["persistCorruptedData"], shown["seed"]) == (True, "s")


def test_a_streamed_creation_sends_events_and_ends_with_the_world() -> None:
    async def talk() -> list[tuple[str, str, int]]:
        transport = httpx.ASGITransport(LocalApp(LocalApi()))
        async with httpx.AsyncClient(transport=transport, base_url="http://local") as client:
            found = []
            for layout in ("process-outbound", "unknown"):
                body = {"name": "streamed", "layout": layout}
                answer = await client.post("/world", json=body, params={"stream": "true"})
                found.append((answer.headers["content-type"], answer.text, answer.status_code))
            return found

    made_, refused = asyncio.run(talk())
    assert made_[0] == refused[0] == "text/event-stream"
    frames = [frame.split("\n") for frame in made_[1].strip().split("\n\n")]
    assert [lines[0] for lines in frames] == ["event: connected", "event: progress", "event: complete"]
    has(json.loads(frames[-1][1].removeprefix("data: "))["world"], WORLD)
    assert refused[1].strip().split("\n\n")[-1].startswith("event: error")


def test_pages_follow_their_cursors_to_the_end() -> None:
    api, ids = made()
    world = ids["w"]
    for _ in range(25):
        inject(api, world)
    seen: list[str] = []
    query: dict[str, str] = {"limit": "7"}
    while True:
        body = api.dispatch("GET", f"/{world}/edi", query).body
        seen += [item["_id"] for item in body["data"]]
        facts = body["pagination"]
        assert facts["totalCount"] == 29
        if not facts["hasMore"]:
            assert facts["nextCursor"] is None
            break
        query["cursor"] = facts["nextCursor"]
    assert seen == [f"E{number}" for number in range(1, 30)]
    for index in range(24):
        api.dispatch("POST", "/world", body={"name": f"w{index}", "layout": "process-outbound"})
    first = api.dispatch("GET", "/world", {"limit": "50"}).body["data"]
    assert len(first["worlds"]) == 20
    rest = api.dispatch("GET", "/world", {"cursor": first["nextCursor"]}).body["data"]
    assert len(rest["worlds"]) == 5
    assert rest["nextCursor"] is None


def test_a_reset_keeps_the_id_and_begins_anew() -> None:
    api, ids = made()
    world = ids["w"]
    api.dispatch(
        "PATCH", f"/world/{world}", body={"samplingStrategy": {"type": "seeded", "count": 1, "seed": 5}}
    )
    assert api.dispatch("POST", f"/world/{world}/reset").status == 200
    assert api.dispatch("GET", f"/{world}/tickets").body["data"]["totalCount"] == 0
    assert api.dispatch("GET", f"/{world}/ledger").body["data"]["cash"] == 100_000
    assert api.worlds.by_id[world].simulation.seed == 5


def test_deleted_worlds_are_gone_and_names_are_unique() -> None:
    api, ids = made()
    taken = api.dispatch("POST", "/world", body={"name": "contract", "layout": "process-outbound"})
    assert taken.status == 400
    assert api.dispatch("DELETE", f"/world/{ids['w']}").status == 200
    assert api.dispatch("DELETE", f"/world/{ids['w']}").status == 404
    assert api.dispatch("GET", f"/{ids['w']}/edi").status == 404


def test_real_time_worlds_follow_the_clock_and_not_the_actions() -> None:
    now = [0.0]
    api = LocalApi(real_time=True, clock=lambda: now[0])
    world = api.dispatch("POST", "/world", body={"name": "r", "layout": "process-outbound"}).body["world"][
        "_id"
    ]
    tick(api, world, 5)
    assert api.worlds.by_id[world].now == 0.0
    now[0] = 3600.0  # an hour at two real hours a simulated day
    api.dispatch("GET", f"/world/{world}")
    assert api.worlds.by_id[world].now == pytest.approx(720.0)
