"""Routes around the trade: logs, schedules, and the compact overview."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import views
from skyfall_morpheus.local.answers import body_of, in_period, number, ok, show, text
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.handlers import Handlers
from skyfall_morpheus.local.overview import overview
from skyfall_morpheus.local.routing import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skyfall_morpheus.local.routing import Handler

__all__ = ["DESCRIPTOR", "Service", "overview"]

DESCRIPTOR = "od-inbound-edi"
LEVELS = ("trace", "debug", "info", "warn", "error", "fatal")


class Service(Handlers):
    """Routes around the trade: logs, schedules, and the compact overview."""

    def routes(self) -> Iterable[tuple[str, Handler]]:
        """What answers what."""
        return (
            ("GET /{w}/logs", self.logs),
            ("GET /{w}/audit-logs", self.audit_logs),
            ("PUT /{w}/od/schedules/pause", self.pause),
            ("PUT /{w}/od/schedules/resume", self.resume),
            ("GET /{w}/od/schedules/status", self.schedule_state),
            ("GET /{w}/od/descriptors", self.descriptors),
            ("GET /{w}/od/descriptors/{od}", self.descriptor),
            ("GET /{w}/od/descriptors/{od}/schedules", self.schedules),
            ("POST /{w}/od/descriptors/{od}/schedule", self.schedule),
            ("GET /{w}/overview", self.overview),
        )

    def logs(self, request: Request) -> Reply:
        """Service logs, newest first."""
        world = self._world(request)
        query = request.query
        level = query.get("level")
        if level and level not in LEVELS:
            raise RefusalError(400, f"level: {level[:40]!r} is none of {', '.join(LEVELS)}")
        wanted = in_period(query)
        found = [
            entry
            for entry in world.simulation.journal.logs
            if (not level or entry.level == level)
            and wanted(entry.time)
            and query.get("serviceType", entry.service) == entry.service
            and query.get("searchText", "") in entry.message
        ]
        shown, facts = show(found, query, lambda one: views.log(world.id, one), (100, 500), newest=True)
        return ok({"items": shown, **facts}, "log.list", world.now)

    def audit_logs(self, request: Request) -> Reply:
        """What changed, oldest first."""
        world = self._world(request)
        query = request.query
        wanted = in_period(query)
        shown = [
            views.audit(entry)
            for entry in world.simulation.journal.audits
            if query.get("model", entry.model) == entry.model
            and query.get("documentId", entry.document_id) == entry.document_id
            and wanted(entry.time)
        ]
        return ok(shown, "audit.list", world.now)

    def pause(self, request: Request) -> Reply:
        """Stop what runs on a schedule: no order arrives."""
        world = self._world(request)
        world.simulation.paused = True
        return ok({"message": "schedules paused", "count": 1}, "schedule.paused", world.now)

    def resume(self, request: Request) -> Reply:
        """Let schedules run again."""
        world = self._world(request)
        world.simulation.paused = False
        return ok({"message": "schedules resumed", "count": 1}, "schedule.resumed", world.now)

    def schedule_state(self, request: Request) -> Reply:
        """Whether schedules run."""
        world = self._world(request)
        state = "paused" if world.simulation.paused else "operational"
        return ok({"status": state}, "schedule.status", world.now)

    def descriptors(self, request: Request) -> Reply:
        """The one operational descriptor."""
        world = self._world(request)
        facts = {"totalCount": 1, "limit": 50, "hasMore": False, "nextCursor": None}
        return ok([_descriptor()], "od.list", world.now, pagination=facts)

    def descriptor(self, request: Request) -> Reply:
        """The operational descriptor by id."""
        world = self._world(request)
        _require_descriptor(request)
        return ok(_descriptor(), "od.get", world.now)

    def schedules(self, request: Request) -> Reply:
        """When orders come in."""
        world = self._world(request)
        _require_descriptor(request)
        entry: dict[str, Any] = {
            "jobId": "job-inbound-edi",
            "nextRunAt": views.stamp(world.now + world.simulation.edi_interval),
            "lastRunAt": None,
            "interval": f"{world.simulation.edi_interval:g} minutes",
            "isRecurring": True,
            "lastRunResult": None,
            "data": {},
        }
        return ok([entry], "od.schedules", world.now)

    def schedule(self, request: Request) -> Reply:
        """Set how often orders come in (`interval: "20 minutes"`)."""
        world = self._world(request)
        _require_descriptor(request)
        given = body_of(request.body, "type")
        if given["type"] != "recurring":
            raise RefusalError(400, "type: inbound EDI is recurring")
        words = text(given.get("interval", ""), "interval", 40).split()
        try:
            minutes = float(words[0])
        except (IndexError, ValueError):
            minutes = float("nan")
        if len(words) != 2 or words[1] not in {"minute", "minutes"} or not 2 <= minutes <= 1e6:
            raise RefusalError(400, "interval: 'N minutes' with N from 2 on is required")
        world.simulation.edi_interval = number(minutes, "interval")
        data = {
            "jobId": "job-inbound-edi",
            "nextRunAt": views.stamp(world.now + minutes),
            "type": "recurring",
        }
        return ok(data, "od.scheduled", world.now, 201)

    def overview(self, request: Request) -> Reply:
        """Everything a compact observation needs, in one answer. An extension of this server."""
        world = self._world(request)
        return ok(overview(world), "overview.get", world.now)


def _descriptor() -> dict[str, Any]:
    return {
        "_id": DESCRIPTOR,
        "odId": DESCRIPTOR,
        "name": "Inbound EDI",
        "type": "background_job",
        "steps": ["receive", "translate", "create-order"],
        "inputs": [],
        "runPolicy": {},
    }


def _require_descriptor(request: Request) -> None:
    if request.params["od"] != DESCRIPTOR:
        raise RefusalError(404, f"descriptor {request.params['od'][:64]!r} not found")
