"""What a world writes down about itself: service logs and audit entries, both bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

__all__ = ["AuditEntry", "Journal", "LogEntry"]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of a service's log."""

    number: int
    time: float
    service: str
    level: str
    message: str
    metadata: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change of one thing; `before` is None for a creation."""

    number: int
    time: float
    model: str
    document_id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    reason: str | None


class Journal:
    """The latest entries of both logs.

    Args:
        retention: How many of each are kept.
    """

    def __init__(self, retention: int) -> None:
        self.logs: deque[LogEntry] = deque(maxlen=retention)
        self.errors: deque[LogEntry] = deque(maxlen=retention)
        self.audits: deque[AuditEntry] = deque(maxlen=retention)
        self.logged = 0
        self.audited = 0

    def log(
        self, time: float, source: tuple[str, str], message: str, metadata: dict[str, Any] | None = None
    ) -> None:
        """Add a log line of a source, given by service and level."""
        self.logged += 1
        service, level = source
        entry = LogEntry(self.logged, time, service, level, message, metadata)
        self.logs.append(entry)
        if level == "error":
            self.errors.append(entry)

    def audit(
        self,
        time: float,
        thing: tuple[str, str],
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
        reason: str | None = None,
    ) -> None:
        """Add an audit entry about a thing, given by model and id."""
        self.audited += 1
        self.audits.append(AuditEntry(self.audited, time, *thing, before, after, reason))

    def state(self) -> dict[str, Any]:
        """Both logs as plain JSON values; `load` takes them back."""
        return {
            "logs": msgspec.to_builtins(list(self.logs)),
            "errors": msgspec.to_builtins(list(self.errors)),
            "audits": msgspec.to_builtins(list(self.audits)),
            "logged": self.logged,
            "audited": self.audited,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Become what `state` described."""
        self.logs.clear()
        self.errors.clear()
        self.audits.clear()
        self.logs.extend(msgspec.convert(state["logs"], list[LogEntry]))
        self.errors.extend(msgspec.convert(state["errors"], list[LogEntry]))
        self.audits.extend(msgspec.convert(state["audits"], list[AuditEntry]))
        self.logged = state["logged"]
        self.audited = state["audited"]
