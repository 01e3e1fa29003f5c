"""The allow-list: what an agent needs passes, everything else is refused, whatever it is dressed as."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_morpheus.guard import ALLOWED, DeniedError, admit

WORLD = "abc123"
NOBODY: frozenset[str] = frozenset()


def allowed(**action: Any) -> Any:
    return admit(action, WORLD, NOBODY)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/abc123/edi", None),
        ("GET", "/:worldId/wms/operations-dashboard", None),
        ("POST", "/abc123/edi/E1/requeue", None),
        ("PUT", "/abc123/wms/outbound-orders/O1/lines/1/allocate", {"allocatedQuantity": 3}),
        ("PUT", "/abc123/erp/invoices/I1/status", {"status": "SENT"}),
        ("PATCH", "/abc123/tickets/T1/status", {"status": "in_progress"}),
        ("POST", "/abc123/verification/verify-ticket", {"ticketId": "T1"}),
    ],
)
def test_the_work_itself_is_allowed(method: str, path: str, body: Any) -> None:
    call = allowed(method=method, path=path, body=body)
    assert call.path.startswith(f"/{WORLD}/")
    assert call.request["method"] == method


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/world/abc123/chaos", None),
        ("PUT", "/world/abc123/chaos", {"enabled": False, "probability": 0, "scenarios": []}),
        ("DELETE", "/world/abc123/chaos", None),
        ("GET", "/chaos/status", None),
        ("GET", "/world/abc123", None),
        ("PATCH", "/world/abc123", {"name": "x"}),
        ("DELETE", "/world/abc123", None),
        ("POST", "/world/abc123/reset", None),
        ("POST", "/world", {"name": "x", "layout": "process-outbound"}),
        ("GET", "/world", None),
        ("POST", "/world/act", {"path": "/abc123/edi"}),
        ("PATCH", "/abc123/ledger", {"cash": 1e9}),
        ("POST", "/abc123/ledger", {"cash": 1e9}),
        ("PATCH", "/abc123/ledger/increment", {"cashDelta": 1e9}),
        ("POST", "/abc123/finance/transactions", {"type": "payment_in"}),
        ("DELETE", "/abc123/finance/transactions/F1", None),
        ("PUT", "/abc123/od/schedules/pause", None),
        ("PUT", "/abc123/od/schedules/resume", None),
        ("POST", "/abc123/od/descriptors/od-inbound-edi/schedule", {"type": "recurring"}),
        ("GET", "/abc123/od/descriptors/od-inbound-edi/schedules", None),
        ("POST", "/abc123/edi", {"partnerId": "P1"}),
        ("POST", "/abc123/tickets", {"title": "x"}),
        ("DELETE", "/abc123/tickets/T1", None),
        ("PUT", "/abc123/tickets/T1", {"status": "closed"}),
        ("PATCH", "/abc123/tickets/T1/status", {"status": "closed"}),
        ("PATCH", "/abc123/tickets/T1/status", {"status": "resolved"}),
        ("PATCH", "/abc123/tickets/T1/status", {"status": ["closed"]}),
        ("PUT", "/abc123/erp/invoices/I1", {"totalAmount": 1e9}),
        ("PUT", "/abc123/erp/invoices/I1/status", {"status": "PAID"}),
        ("PATCH", "/abc123/edi/E1/status", {"status": "DELIVERED"}),
        ("POST", "/abc123/erp/payments", {"totalAmount": 1e9}),
        ("PUT", "/abc123/wms/outbound-orders/O1/status", {"status": "PACKED"}),
        ("GET", "/other/edi", None),
        ("GET", "/abc123/overview", None),
        ("GET", "/abc123/snapshot", None),
        ("POST", "/abc123/step", {"path": "/abc123/edi"}),
        ("POST", "/world/restore", {"version": 1, "digest": "", "state": {}}),
        ("GET", "/docs/swagger.json", None),
        ("GET", "/abc123/logs", None),
        ("GET", "/abc123/audit-logs", None),
    ],
)
def test_rewards_configuration_and_other_worlds_are_out_of_reach(method: str, path: str, body: Any) -> None:
    with pytest.raises(DeniedError):
        allowed(method=method, path=path, body=body)


@pytest.mark.parametrize(
    "path",
    [
        "/abc123/../world/abc123/chaos",
        "/abc123/edi/../ledger",
        "/abc123/./edi",
        "/abc123/edi/%2e%2e/ledger",
        "/abc123/edi%2F..%2Fledger",
        "/abc123//edi",
        "//abc123/edi",
        "/abc123/edi/",
        "/abc123/edi?status=x",
        "/abc123/edi#x",
        "/abc123\\edi",
        "/ABC123/edi",
        "/abc123/EDI",
        "abc123/edi",
        "http://127.0.0.1:8282/abc123/edi",
        "//evil.example/abc123/edi",
        "/abc123/edi;x=1",
        "/abc123/edi\n",
        "/abc123/edi/E１",
        "/abc123/edi/:other",
        "",
        "/",
        "/" + "a/" * 600,
        None,
        7,
        ["/abc123/edi"],
    ],
)
def test_path_tricks_are_refused(path: Any) -> None:
    with pytest.raises(DeniedError):
        allowed(path=path)


@pytest.mark.parametrize("method", ["get", "Get", "POST ", "TRACE", "OPTIONS", "", None, 3, ["GET"]])
def test_methods_must_be_exactly_the_listed_ones(method: Any) -> None:
    with pytest.raises(DeniedError):
        allowed(path="/abc123/edi", method=method)


@pytest.mark.parametrize(
    "params",
    [
        {"id": "E1/../../ledger"},
        {"id": ".."},
        {"id": "%2e%2e"},
        {"id": ""},
        {"id": 3},
        {},
        {"id": ":worldId"},
        "id",
    ],
)
def test_placeholders_cannot_smuggle_a_path_in(params: Any) -> None:
    with pytest.raises(DeniedError):
        allowed(path="/:worldId/edi/:id", params=params)


def test_a_placeholder_for_the_world_cannot_name_another_one() -> None:
    with pytest.raises(DeniedError):
        allowed(path="/:worldId/edi", params={"worldId": "other"})
    assert allowed(path="/:worldId/edi").path == "/abc123/edi"


def test_queries_are_limited_to_known_short_parameters() -> None:
    assert allowed(path="/abc123/edi", query={"status": "ERRORED", "limit": 5}).query["limit"] == 5
    for query in ({"x": "1"}, {"status": "a" * 201}, {"status": ["a"]}, {"limit": True}, "status=x", [1]):
        with pytest.raises(DeniedError):
            allowed(path="/abc123/edi", query=query)


def test_logs_need_a_service_that_cannot_tell_the_configuration() -> None:
    allowed(path="/abc123/logs", query={"serviceType": "edi"})
    for service in ("world", "capability", "persona", "od"):
        with pytest.raises(DeniedError):
            allowed(path="/abc123/logs", query={"serviceType": service})
    allowed(path="/abc123/audit-logs", query={"model": "EdiTransaction"})
    for model in ("World", "Persona", "OperationalDescriptor"):
        with pytest.raises(DeniedError):
            allowed(path="/abc123/audit-logs", query={"model": model})


def test_a_ticket_is_settled_only_after_its_verification_passed() -> None:
    action = {"method": "PATCH", "path": "/abc123/tickets/T1/status", "body": {"status": "closed"}}
    assert admit(action, WORLD, {"T1"}).ids == ("T1",)
    with pytest.raises(DeniedError, match="verification"):
        admit(action, WORLD, {"T2"})


def test_unknown_keys_of_an_action_are_refused() -> None:
    with pytest.raises(DeniedError, match="headers"):
        allowed(path="/abc123/edi", headers={"X": "1"})


SEGMENTS = st.one_of(
    st.sampled_from(
        [
            WORLD,
            ":worldId",
            "world",
            "chaos",
            "act",
            "ledger",
            "increment",
            "..",
            ".",
            "",
            "%2e%2e",
            "edi",
            "finance",
            "transactions",
            "od",
            "schedules",
            "pause",
            "reset",
            "tickets",
            "T1",
            "status",
            "LEDGER",
            *(
                "http:",
                "verification",
                "verify-ticket",
                ":id",
                "logs",
                "wms",
                "outbound-orders",
                "O1",
                "docs",
            ),
        ]
    ),
    st.text(max_size=6),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FORBIDDEN = {
    "world",
    "chaos",
    "docs",
    "ledger",
    "finance",
    "reset",
    "pause",
    "resume",
    "schedule",
    "overview",
}


@settings(max_examples=120, deadline=None)
@given(
    st.lists(SEGMENTS, min_size=1, max_size=6),
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "patch", "HEAD"]) | JSON,
    JSON,
    JSON,
    JSON,
)
def test_whatever_is_admitted_stays_inside_the_own_world_and_on_the_list(
    segments: list[str], method: Any, params: Any, query: Any, body: Any
) -> None:
    action = {
        "path": "/" + "/".join(segments),
        "method": method,
        "params": params,
        "query": query,
        "body": body,
    }
    try:
        call = admit(action, WORLD, NOBODY)
    except DeniedError:
        return
    parts = call.path.split("/")
    assert parts[1] == WORLD
    assert all(part not in {"", ".", ".."} and "%" not in part for part in parts[1:])
    assert call.route in ALLOWED
    if call.route.method != "GET":
        assert parts[2] not in FORBIDDEN
        assert not FORBIDDEN & set(call.route.pattern)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(["path", "method", "params", "query", "body", "x"]), JSON))
def test_no_action_does_more_than_be_refused(action: dict[str, Any]) -> None:
    refusal = ""
    try:
        admit(action, WORLD, NOBODY)
    except DeniedError as denied:
        refusal = str(denied)
    assert len(refusal) < 400
