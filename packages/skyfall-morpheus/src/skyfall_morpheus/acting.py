"""Carrying actions out: from what a policy said to what became of it. Nothing it says raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from skyfall_morpheus.errors import MorpheusError, ResponseError, TransportError
from skyfall_morpheus.guard import Call, DeniedError, admit
from skyfall_morpheus.tools import ToolError, call_of, tool_of

if TYPE_CHECKING:
    from skyfall_morpheus.client import MorpheusClient

__all__ = ["Actor", "Outcome"]

VERIFIED_KEPT = 1000
"""Tickets remembered as verified, the latest: of those that expire unsettled nobody is told."""

RESULT_LIMIT = 400
"""Characters of an action's answer that the next observation shows."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an action.

    Attributes:
        kind: What kind of action it was: a tool, or method and route.
        last: What the next observation says about it: `tool`, `status`, `error`, `result`.
        invalid: Whether it was denied, or refused by the server.
        overview: The world after it where the server told it along; None where it has to be asked for.
    """

    kind: str
    last: dict[str, Any]
    invalid: bool
    overview: dict[str, Any] | None

    @property
    def succeeded(self) -> bool:
        """Whether the server carried it out."""
        return 200 <= int(self.last["status"]) < 300


class Actor:
    """Acts in one world at a time, through the allow-list.

    Args:
        client: Of the world's server.

    Attributes:
        verified: Tickets whose verification has passed, oldest first; only these may be settled.
    """

    def __init__(self, client: MorpheusClient) -> None:
        self._client = client
        self.verified: dict[str, None] = {}

    def perform(self, action: Any, world_id: str, state: Mapping[str, Any]) -> Outcome:
        """Carry an action out, or let time pass where it cannot be.

        Args:
            action: `{"tool": …}`, `{"path": …, "method": …}`, the same as JSON text, or a tool's name.
            world_id: Where.
            state: The latest observation's state, which tools pick their targets from.
        """
        name = "invalid"
        try:
            name, call = self._admitted(action, world_id, state)
        except (ToolError, DeniedError) as refusal:
            idle = {"path": f"/{world_id}/od/schedules/status", "method": "GET"}
            _, _, overview = self._send(world_id, idle)
            last = {"tool": name, "status": 403, "error": str(refusal)[:200], "result": ""}
            return Outcome(name, last, invalid=True, overview=overview)
        status, body, overview = self._send(world_id, call.request)
        last = {"tool": name, "status": status, "error": _explanation(status, body), "result": ""}
        if call.route.method == "GET" and name == "call":
            last["result"] = msgspec.json.encode(body).decode()[:RESULT_LIMIT]
        self._note_verification(call, status, body)
        kind = name if name != "call" else f"{call.route.method} {'/'.join(call.route.pattern)}"
        return Outcome(kind, last, invalid=400 <= status < 500 and status != 429, overview=overview)

    def _admitted(self, action: Any, world_id: str, state: Mapping[str, Any]) -> tuple[str, Call]:
        if isinstance(action, str):
            action = _parsed(action)
        if not isinstance(action, Mapping):
            raise ToolError("an action is a tool's name, or an object with tool or path")
        verified = frozenset(self.verified)
        if "tool" in action:
            call = call_of(action, state)
            return tool_of(action["tool"]).name, admit(call, world_id, verified)
        return "call", admit(action, world_id, verified)

    def _send(self, world_id: str, request: Mapping[str, Any]) -> tuple[int, Any, dict[str, Any] | None]:
        """Status, body and, where told along, the overview; status 0 when the answer was lost."""
        try:
            if "step" in self._client.extensions():
                result, overview = self._client.step(world_id, request)
                return result.status, result.body, overview
            result = self._client.act(request)
        except TransportError:
            return 0, None, None
        except ResponseError as failure:
            return failure.status, failure.body, None
        except MorpheusError as failure:
            return 502, {"error": type(failure).__name__}, None
        return result.status, result.body, None

    def _note_verification(self, call: Call, status: int, body: Any) -> None:
        """Remember which tickets may be settled, and forget those that are closed for good."""
        given = call.body or {}
        if call.route.pattern == ("verification", "verify-ticket"):
            self.verified.pop(ticket := str(given.get("ticketId")), None)
            if isinstance(body, Mapping) and body.get("passed") is True:
                self.verified[ticket] = None
            if len(self.verified) > VERIFIED_KEPT:
                del self.verified[next(iter(self.verified))]
        closed = call.route.pattern == ("tickets", "*", "status") and given.get("status") == "closed"
        if closed and 200 <= status < 300:
            self.verified.pop(call.ids[0], None)


def _parsed(text: str) -> Any:
    """The action in a text: JSON, or a bare tool name."""
    stripped = text.strip()
    if stripped.startswith("{"):
        try:
            return msgspec.json.decode(stripped)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise ToolError("the action is no JSON") from None
    return {"tool": stripped}


def _explanation(status: int, body: Any) -> str:
    if 200 <= status < 300:
        return ""
    if status == 0:
        return "the answer was lost"
    found = body.get("error") if isinstance(body, Mapping) else None
    return found[:200] if isinstance(found, str) else f"HTTP {status}"
