"""The company's books: three balances and the journal every change of them goes through."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

__all__ = ["Entry", "Ledger"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One booking; the three deltas are what it changed."""

    number: int
    time: float
    source_type: str
    source_id: str
    partner: int | None
    cash: float
    receivables: float
    payables: float


class Ledger:
    """Cash, receivables and payables; `cash + receivables - payables` is the net position.

    Args:
        cash: Opening cash.
        retention: Journal entries kept.

    Attributes:
        incoming: Cash ever received by payments.
        outgoing: Cash ever paid.
        totals: Sum of every booking's deltas by source type, forgotten entries included.
    """

    def __init__(self, cash: float, retention: int) -> None:
        self.opening = cash
        self.cash = cash
        self.receivables = 0.0
        self.payables = 0.0
        self.incoming = 0.0
        self.outgoing = 0.0
        self.transactions = 0
        self.entries: deque[Entry] = deque(maxlen=retention)
        self.totals: dict[str, list[float]] = {}
        self._count = 0

    @property
    def net(self) -> float:
        """The net position."""
        return self.cash + self.receivables - self.payables

    def book(  # three balances and where they come from
        self,
        time: float,
        source: tuple[str, str],
        *,
        cash: float = 0.0,
        receivables: float = 0.0,
        payables: float = 0.0,
        partner: int | None = None,
    ) -> Entry:
        """Change the balances and write it down.

        Args:
            time: When.
            source: Source type and id (`("invoice", "I7")`).
            cash: Added to cash.
            receivables: Added to receivables.
            payables: Added to payables.
            partner: The trading partner, when there is one.
        """
        self._count += 1
        entry = Entry(self._count, time, source[0], source[1], partner, cash, receivables, payables)
        self.entries.append(entry)
        self.cash += cash
        self.receivables += receivables
        self.payables += payables
        self.transactions += cash != 0
        self.incoming += max(cash, 0.0)
        self.outgoing += max(-cash, 0.0)
        total = self.totals.setdefault(source[0], [0.0, 0.0, 0.0])
        for position, delta in enumerate((cash, receivables, payables)):
            total[position] += delta
        return entry

    def state(self) -> dict[str, Any]:
        """The books as plain JSON values; `load` takes them back."""
        balances = {name: getattr(self, name) for name in _BALANCES}
        entries = msgspec.to_builtins(list(self.entries))
        totals = {source: list(total) for source, total in self.totals.items()}
        return {**balances, "entries": entries, "totals": totals, "count": self._count}

    def load(self, state: Mapping[str, Any]) -> None:
        """Become what `state` described."""
        for name in _BALANCES:
            setattr(self, name, state[name])
        self.entries.clear()
        self.entries.extend(msgspec.convert(state["entries"], list[Entry]))
        self.totals = {source: list(total) for source, total in state["totals"].items()}
        self._count = state["count"]


_BALANCES = ("opening", "cash", "receivables", "payables", "incoming", "outgoing", "transactions")
