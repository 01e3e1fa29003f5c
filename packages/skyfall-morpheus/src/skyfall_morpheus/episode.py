"""What an episode adds up to, and what a step's reward is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Episode", "counts"]


@dataclass(slots=True)
class Episode:
    """What is counted from one reset to the next.

    Attributes:
        steps: Steps since the reset.
        shipped: Orders shipped since the last truncation.
        on_time: Those of them that were in time.
        kinds: Kinds of action that succeeded since the last truncation.
    """

    steps: int = 0
    shipped: int = 0
    on_time: int = 0
    kinds: set[str] = field(default_factory=set)

    def truncate(self) -> None:
        """Begin counting anew, steps excepted."""
        self.shipped = self.on_time = 0
        self.kinds = set()

    def inputs(
        self,
        before: Mapping[str, float],
        after: Mapping[str, float],
        kind: str,
        *,
        succeeded: bool,
        invalid: bool,
    ) -> dict[str, float]:
        """What one step's reward is computed from; the step is counted.

        Args:
            before: `counts` before the action.
            after: `counts` after it.
            kind: What kind of action it was.
            succeeded: Whether the server carried it out.
            invalid: Whether it was denied or refused.
        """
        shipped = max(0.0, after["shipped"] - before["shipped"])
        on_time = min(shipped, max(0.0, after["on_time"] - before["on_time"]))
        self.shipped += int(shipped)
        self.on_time += int(on_time)
        given_up = after["given_up"] - before["given_up"]
        novel = succeeded and kind not in self.kinds
        if novel:
            self.kinds.add(kind)
        return {
            "net_delta": round(after["net"] - before["net"], 2),
            "on_time": on_time,
            "late": shipped - on_time,
            "tickets_closed": max(0.0, after["closed"] - before["closed"]),
            "edi_recovered": max(0.0, before["errored"] - after["errored"] - given_up),
            "invalid": float(invalid),
            "novel": float(novel),
            "episode_on_time": float(self.on_time),
            "episode_shipped": float(self.shipped),
        }

    def state(self) -> dict[str, Any]:
        """The counts as plain JSON values."""
        return {
            "steps": self.steps,
            "shipped": self.shipped,
            "on_time": self.on_time,
            "kinds": sorted(self.kinds),
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Episode:
        """The episode that `state` described."""
        return cls(**{**state, "kinds": set(state["kinds"])})


def counts(overview: Mapping[str, Any]) -> dict[str, float]:
    """The numbers in an overview that rewards are made of."""
    ledger = overview.get("ledger") or {}
    metrics = overview.get("metrics") or {}
    return {
        "net": float(ledger.get("netPosition") or 0.0),
        "shipped": float(metrics.get("completedOrders") or 0),
        "on_time": float(metrics.get("onTimeShipments") or 0),
        "closed": float(overview["tickets"]["closed"]["totalCount"]),
        "given_up": float(metrics.get("documentsGivenUp") or 0),
        "errored": float(overview["edi"]["ERRORED"]["totalCount"]),
    }
