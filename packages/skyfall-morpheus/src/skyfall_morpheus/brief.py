"""A world in one line of counts, for models too small to read.

Every count says how much there is to do of one kind, 9 for nine or more, always in the same place.
Most letters are also the short name of the tool that does it:

| letter | counts |
|---|---|
| `f` | stuck documents to correct |
| `r` | stuck documents that trying again would help now |
| `d` | duplicate documents |
| `p` | documents that wait for a permission nobody was asked for |
| `v` | unverified tickets whose document is no longer stuck |
| `c` | verified tickets to close |
| `o` | orders to allocate |
| `q` | orders that wait for a worker |
| `s` | packed orders to ship |
| `i` | drafted invoices |
| `u` | unpaid invoices without a discount |
| `m` | payments that match no invoice yet |
| `$` | 1 while cash is below zero |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BRIEF_LIMIT", "brief", "settled_tickets", "unasked_permissions"]

BRIEF_LIMIT = 38
"""Characters of the line, all of them ASCII."""


def brief(state: Mapping[str, Any]) -> str:
    """The line, out of an observation's state: `f2 r0 d1 p0 v1 c0 o3 q1 s0 i2 u0 m1 $0`."""
    counts = {
        "f": _targets("correct_edi", state),
        "r": _targets("requeue_edi", state),
        "d": _targets("archive_edi", state),
        "p": unasked_permissions(state),
        "v": settled_tickets(state),
        "c": _targets("close_ticket", state),
        "o": state["orders"]["pending"],
        "q": state["orders"]["allocated"],
        "s": state["orders"]["packed"],
        "i": state["invoices"]["draft"],
        "u": _targets("discount_invoice", state),
        "m": state["payments"]["unmatched"],
        "$": int(state["ledger"]["cash"] < 0),
    }
    return " ".join(f"{letter}{min(count, 9)}" for letter, count in counts.items())


def settled_tickets(state: Mapping[str, Any]) -> int:
    """Unverified tickets about documents that are no longer stuck."""
    stuck = {one["id"] for one in state["edi"]["items"]}
    return sum(not one["verified"] and one["document"] not in stuck for one in state["tickets"]["items"])


def unasked_permissions(state: Mapping[str, Any]) -> int:
    """Unassigned tickets about documents that need a permission."""
    return sum(
        one["failure"] == "permission_denied" and not one["assigned"] for one in state["tickets"]["items"]
    )


def _targets(tool: str, state: Mapping[str, Any]) -> int:
    candidates = TOOLS[tool].candidates
    return 0 if candidates is None else len(candidates(state))
