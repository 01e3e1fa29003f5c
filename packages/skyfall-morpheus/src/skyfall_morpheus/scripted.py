"""Scripted policies that know how the local world works: controls, demonstrators, measured bounds.

A playbook ranks tools; the policy takes the first that has something sensible to do. There is one for
each canonical configuration, found by random search over rankings, and the best level that any of
them holds there is the measured upper bound. They read the observation alone, as a learner does, but
are told which configuration they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skyfall_core.errors import ConfigError, suggestion
from skyfall_morpheus.brief import settled_tickets, unasked_permissions
from skyfall_morpheus.tools import TOOLS

__all__ = ["PLAYBOOKS", "Play", "ScriptedPolicy"]

State = Mapping[str, Any]


def _always(_: State) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Play:
    """A tool, how its target is chosen, and when it makes sense.

    Attributes:
        tool: Name of the tool.
        by: `due`, `value`, `cheapest` or None for the tool's own first choice.
        when: Whether the play makes sense in a state.
    """

    tool: str
    by: str | None = None
    when: Callable[[State], bool] = _always


def _settled_ticket(state: State) -> bool:
    return settled_tickets(state) > 0


def _permission_needed(state: State) -> bool:
    return unasked_permissions(state) > 0


def _short_queue(state: State) -> bool:
    return bool(state["orders"]["allocated"] < 2)


def _backlog(state: State) -> bool:
    return bool(state["orders"]["pending"] > 3)


def _overdrawn(state: State) -> bool:
    return bool(state["ledger"]["cash"] < 0)


_VERIFY = Play("verify_ticket", when=_settled_ticket)
_ASSIGN = Play("assign_ticket", when=_permission_needed)

PLAYBOOKS: Mapping[str, Sequence[Play]] = {
    "baseline": (
        Play("correct_edi", "value"),
        _VERIFY,
        Play("close_ticket"),
        Play("ship_order", "due"),
        Play("requeue_edi"),
        Play("apply_payment"),
        Play("archive_edi"),
        Play("allocate_order", "value", _short_queue),
        Play("send_invoice"),
        _ASSIGN,
    ),
    # Two of three stuck documents are repeats, one call each; what is allocated must not swallow the day.
    "edi_spike": (
        Play("requeue_edi"),
        _VERIFY,
        Play("ship_order", "value"),
        Play("allocate_order", "value", _short_queue),
        _ASSIGN,
        Play("archive_edi"),
        Play("apply_payment"),
        Play("correct_edi"),
        Play("send_invoice"),
        Play("close_ticket"),
    ),
    # Nothing can be corrected: a document goes through at the first try after its outage.
    "infra_degradation": (
        Play("requeue_edi", "value"),
        Play("archive_edi"),
        _ASSIGN,
        Play("ship_order", "due"),
        Play("apply_payment"),
        Play("correct_edi"),
        Play("allocate_order", "due", _short_queue),
        Play("close_ticket"),
        _VERIFY,
        Play("send_invoice", "value"),
    ),
    # Every hour in debt costs more than a discount does.
    "financial_pressure": (
        Play("correct_edi", "value"),
        _VERIFY,
        Play("close_ticket"),
        Play("ship_order", "due"),
        Play("requeue_edi"),
        Play("apply_payment"),
        Play("discount_invoice", "value", _overdrawn),
        Play("archive_edi"),
        Play("allocate_order", "value", _short_queue),
        Play("send_invoice"),
        _ASSIGN,
    ),
    # One worker cannot serve everybody: giving the smallest orders up early costs less than being late.
    "workforce_constrained": (
        Play("correct_edi", "value"),
        _VERIFY,
        Play("close_ticket"),
        Play("ship_order", "due"),
        Play("cancel_order", "cheapest", _backlog),
        Play("requeue_edi"),
        Play("apply_payment"),
        Play("archive_edi"),
        Play("allocate_order", "value", _short_queue),
        Play("send_invoice"),
        _ASSIGN,
    ),
}
"""What to do first, by configuration."""


class ScriptedPolicy:
    """Acts by a playbook.

    Args:
        configuration: Which one; `baseline_revisit` is `baseline`.

    Raises:
        ConfigError: There is no such playbook.
    """

    def __init__(self, configuration: str = "baseline") -> None:
        name = configuration.removesuffix("_revisit")
        if name not in PLAYBOOKS:
            raise ConfigError(
                f"configuration: {configuration!r} has no playbook; {suggestion(name, PLAYBOOKS)}"
            )
        self.playbook = PLAYBOOKS[name]

    def act(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """The first play that makes sense; `wait` when none does."""
        state = observation["state"]
        for play in self.playbook:
            tool = TOOLS[play.tool]
            if tool.candidates is None or not tool.candidates(state) or not play.when(state):
                continue
            action: dict[str, Any] = {"tool": play.tool}
            if play.by is not None:
                action["by"] = play.by
            return action
        return {"tool": "wait"}

    def act_batch(self, observations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """One action a world."""
        return [self.act(observation) for observation in observations]
