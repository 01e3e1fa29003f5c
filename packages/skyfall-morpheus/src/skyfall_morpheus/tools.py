"""Named tools: the short way to say what could be said as a path and a body.

A tool call is `{"tool": name}`, optionally with `id` (what to apply it to), `by` (`due`, `value` or
`cheapest`: which one to take without an id) and the tool's own arguments. Without an id the tool picks
from what the observation shows. Every tool becomes an ordinary call and passes the same allow-list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skyfall_core.errors import suggestion

__all__ = ["TOOLS", "TOOL_NAMES", "Tool", "ToolError", "call_of", "tool_of"]

Item = Mapping[str, Any]
State = Mapping[str, Any]


class ToolError(Exception):
    """A tool call that cannot be made; the text says why."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A named call.

    Attributes:
        name: What a policy says.
        letter: The same for a policy that has only a few tokens to say it with.
        summary: What it is for.
        method: HTTP method of the call.
        path: Path below the world, `{id}` for the target.
        body: Makes the body from target id, arguments and the target as observed; None for no body.
        candidates: What it may be applied to, out of an observation's state; the best first.
    """

    name: str
    letter: str
    summary: str
    method: str
    path: str
    body: Callable[[str, Item, Item], dict[str, Any]] | None = None
    candidates: Callable[[State], Sequence[Item]] | None = None


FIXABLE = frozenset({"data_corruption", "missing_data", "format_change", "partial_data", "invalid_state"})


def _stuck(state: State, test: Callable[[Item], bool]) -> list[Item]:
    return [one for one in state["edi"]["items"] if test(one)]


def _to_correct(state: State) -> list[Item]:
    return _stuck(state, lambda one: not one["corrected"] and one["failure"] in FIXABLE)


def _to_requeue(state: State) -> list[Item]:
    """Documents that trying again would help: corrected, waited for long enough, or permitted."""
    permitted = {one["document"] for one in state["tickets"]["items"] if one["assigned"]}

    def ready(one: Item) -> bool:
        if one["failure"] in FIXABLE:
            return bool(one["corrected"])
        if one["failure"] == "permission_denied":
            return one["id"] in permitted
        return bool(one["failure"] != "duplicate_data" and one["wait"] == 0)

    return _stuck(state, ready)


def _duplicates(state: State) -> list[Item]:
    return _stuck(state, lambda one: one["failure"] == "duplicate_data")


def _unassigned(state: State) -> list[Item]:
    """Unassigned tickets, those whose document waits for a permission first."""
    found = [one for one in state["tickets"]["items"] if not one["assigned"]]
    return sorted(found, key=lambda one: one["failure"] != "permission_denied")


def _to_verify(state: State) -> list[Item]:
    """Unverified tickets, those whose document is no longer stuck first."""
    stuck = {one["id"] for one in state["edi"]["items"]}
    found = [one for one in state["tickets"]["items"] if not one["verified"]]
    return sorted(found, key=lambda one: one["document"] in stuck)


def _to_close(state: State) -> list[Item]:
    return [one for one in state["tickets"]["items"] if one["verified"]]


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("wait", "w", "Let time pass.", "GET", "od/schedules/status"),
        Tool(
            "correct_edi",
            "f",
            "Correct the payload of a stuck document.",
            "PATCH",
            "edi/{id}",
            lambda _id, _args, _item: {"payload": {"corrected": True}},
            _to_correct,
        ),
        Tool(
            "requeue_edi",
            "r",
            "Try a stuck document again.",
            "POST",
            "edi/{id}/requeue",
            None,
            _to_requeue,
        ),
        Tool(
            "archive_edi",
            "d",
            "Put a duplicate document away.",
            "PATCH",
            "edi/{id}/status",
            lambda _id, _args, _item: {"status": "ARCHIVED"},
            _duplicates,
        ),
        Tool(
            "allocate_order",
            "o",
            "Reserve stock for an order, so that it is picked and packed.",
            "PUT",
            "wms/outbound-orders/{id}/lines/1/allocate",
            lambda _id, args, item: {"allocatedQuantity": args.get("quantity", item.get("quantity", 1))},
            lambda state: state["orders"]["to_allocate"],
        ),
        Tool(
            "ship_order",
            "s",
            "Hand a packed order to the carrier.",
            "PUT",
            "wms/outbound-orders/{id}/status",
            lambda _id, _args, _item: {"status": "SHIPPED"},
            lambda state: state["orders"]["to_ship"],
        ),
        Tool(
            "cancel_order",
            "x",
            "Give an order up.",
            "PUT",
            "wms/outbound-orders/{id}/status",
            lambda _id, _args, _item: {"status": "CANCELLED"},
            lambda state: state["orders"]["to_allocate"],
        ),
        Tool(
            "prioritize_order",
            "q",
            "Have workers take an order first.",
            "PUT",
            "wms/outbound-orders/{id}/priority",
            lambda _id, args, _item: {"priority": args.get("priority", "URGENT")},
            lambda state: state["orders"]["to_pick"],
        ),
        Tool(
            "send_invoice",
            "i",
            "Send a drafted invoice.",
            "PUT",
            "erp/invoices/{id}/status",
            lambda _id, _args, _item: {"status": "SENT"},
            lambda state: state["invoices"]["to_send"],
        ),
        Tool(
            "discount_invoice",
            "u",
            "Offer a discount for paying at once.",
            "PUT",
            "erp/invoices/{id}",
            lambda _id, _args, _item: {"allowances": [{"type": "early-payment"}]},
            lambda state: state["invoices"]["to_collect"],
        ),
        Tool(
            "apply_payment",
            "m",
            "Say which invoice a payment is for.",
            "PUT",
            "erp/payments/{id}/allocations",
            lambda _id, args, item: {
                "allocations": [{"invoiceId": args.get("invoice", item.get("invoice", ""))}]
            },
            lambda state: state["payments"]["items"],
        ),
        Tool(
            "assign_ticket",
            "p",
            "Assign a ticket to the supervisor, who can grant permissions.",
            "PUT",
            "tickets/{id}",
            lambda _id, _args, _item: {"assignedTo": "supervisor"},
            _unassigned,
        ),
        Tool(
            "verify_ticket",
            "v",
            "Check whether a ticket's failure is gone.",
            "POST",
            "verification/verify-ticket",
            lambda identifier, _args, _item: {"ticketId": identifier},
            _to_verify,
        ),
        Tool(
            "close_ticket",
            "c",
            "Close a verified ticket.",
            "PATCH",
            "tickets/{id}/status",
            lambda _id, _args, _item: {"status": "closed"},
            _to_close,
        ),
    )
}
"""Every tool by name."""

TOOL_NAMES = tuple(TOOLS)

_BY_LETTER = {tool.letter: tool for tool in TOOLS.values()}

_ARGUMENTS = frozenset({"tool", "id", "by", "quantity", "priority", "invoice"})
_ORDERS: Mapping[str, Callable[[Item], Any]] = {
    "due": lambda item: item.get("due", 0),
    "value": lambda item: -item.get("value", 0.0),
    "cheapest": lambda item: item.get("value", 0.0),
}


def tool_of(name: Any) -> Tool:
    """The tool of a name or letter.

    Raises:
        ToolError: There is none; the nearest name is given.
    """
    tool = (TOOLS.get(name) or _BY_LETTER.get(name)) if isinstance(name, str) else None
    if tool is None:
        raise ToolError(f"unknown tool {str(name)[:40]!r}: {suggestion(str(name)[:40], TOOLS)}")
    return tool


def call_of(action: Item, state: State) -> dict[str, Any]:
    """The plain call a tool call stands for.

    Args:
        action: `tool`, optional `id`, `by` and arguments.
        state: The latest observation's state.

    Raises:
        ToolError: An unknown tool or argument, or nothing to apply it to.
    """
    tool = tool_of(action.get("tool"))
    unknown = [str(key)[:40] for key in action if key not in _ARGUMENTS]
    if unknown:
        raise ToolError(f"{tool.name}: unknown arguments {', '.join(sorted(unknown)[:5])}")
    call: dict[str, Any] = {"method": tool.method, "path": f"/:worldId/{tool.path}"}
    identifier, item = _target(tool, action, state)
    if "{id}" in tool.path:
        call["path"] = call["path"].replace("{id}", ":id")
        call["params"] = {"id": identifier}
    if tool.body is not None:
        call["body"] = tool.body(identifier, action, item)
    return call


def _target(tool: Tool, action: Item, state: State) -> tuple[str, Item]:
    if tool.candidates is None:
        return "", {}
    found = tool.candidates(state)
    given = action.get("id")
    if given is not None:
        if not isinstance(given, str):
            raise ToolError(f"{tool.name}: id must be a string")
        return given, next((item for item in found if item["id"] == given), {})
    by = action.get("by")
    if by is not None and (not isinstance(by, str) or by not in _ORDERS):
        raise ToolError(f"{tool.name}: by must be one of {', '.join(_ORDERS)}")
    if not found:
        raise ToolError(f"{tool.name}: nothing to apply it to")
    item = found[0] if by is None else min(found, key=_ORDERS[by])
    return item["id"], item
