"""Typed results of the API calls this package makes.

Field names follow the API with its camelCase turned into snake_case. Unknown keys are ignored, and
vocabularies are open strings: the filter and record values of one field differ on the real server.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "ActResult",
    "FinanceSummary",
    "LedgerBalance",
    "LogRecord",
    "Page",
    "TicketRecord",
    "Verification",
    "WorldRecord",
]


class WorldRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A world. `chaos` stays open: servers show it in two shapes."""

    id: str = msgspec.field(name="_id")
    name: str = ""
    layout: str | None = None
    description: str | None = None
    real_hours_per_sim_day: float | None = None
    updated_at: str | None = None
    chaos: Any = None
    personas: Any = None
    ticket_creation_enabled: bool | None = None


class TicketRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An ITSM ticket."""

    id: str = msgspec.field(name="_id")
    title: str
    description: str
    status: str
    priority: str
    created_at: str
    updated_at: str
    assigned_to: str | None = None
    metadata: dict[str, Any] = {}  # msgspec copies it


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One service log line."""

    id: str = msgspec.field(name="_id")
    timestamp: str
    service_type: str
    level: str
    msg: str
    metadata: Any = None


class Verification(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Outcome of a verification."""

    passed: bool
    ticket_id: str | None = None
    total_checks: int
    passed_checks: int
    failed_checks: int
    failure_reason: str | None = None


class LedgerBalance(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The company's balances; `net_position` is the server's own sum."""

    cash: float
    total_receivables: float
    total_payables: float
    net_position: float


class FinanceSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Cash in and out."""

    total_incoming: float
    total_outgoing: float
    net_balance: float
    transaction_count: int
    avg_transaction_amount: float = 0.0


class Page(msgspec.Struct, frozen=True):
    """One page of a list, and how to go on.

    Attributes:
        items: Records as the server sent them.
        total: How many there are in all, when the server says so.
        cursor: Cursor of the next page, None at the end.
    """

    items: list[dict[str, Any]]
    total: int | None
    cursor: str | None


class ActResult(msgspec.Struct, frozen=True):
    """What an action led to.

    Attributes:
        status: The inner call's status: the outer one, or the one an outer 200 reports inside.
        body: The forwarded body, whatever it is.
    """

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        """Whether the inner call succeeded."""
        return 200 <= self.status < 300
