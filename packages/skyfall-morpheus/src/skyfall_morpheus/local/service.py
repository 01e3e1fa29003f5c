"""Routes around the trade: tickets, verification, logs, schedules, and the compact overview."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import desk, views
from skyfall_morpheus.local.answers import body_of, number, ok, show, text
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.model import TICKET_STATUSES, Document, Order, Ticket
from skyfall_morpheus.local.routing import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from skyfall_morpheus.local.routing import Router
    from skyfall_morpheus.local.shelf import Shelf
    from skyfall_morpheus.local.worlds import World, Worlds

__all__ = ["DESCRIPTOR", "Service", "overview"]

DESCRIPTOR = "od-inbound-edi"
LEVELS = ("trace", "debug", "info", "warn", "error", "fatal")
ENTITY_TYPES = ("ORDER", "SHIPMENT", "TASK", "WAVE", "INVENTORY")
OVERVIEW_ITEMS = 8
OVERVIEW_ERRORS = 3


class Service:
    """Handlers over a server's worlds.

    Args:
        worlds: The worlds.
    """

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds

    def add_routes(self, router: Router) -> None:
        """Register the routes of this module."""
        for route, handler in (
            ("GET /{w}/tickets", self.tickets),
            ("POST /{w}/tickets", self.create_ticket),
            ("GET /{w}/tickets/{id}", self.ticket),
            ("PUT /{w}/tickets/{id}", self.update_ticket),
            ("DELETE /{w}/tickets/{id}", self.delete_ticket),
            ("PATCH /{w}/tickets/{id}/status", self.ticket_status),
            ("PATCH /{w}/tickets/{id}/work-notes", self.work_notes),
            ("POST /{w}/verification/verify-ticket", self.verify_ticket),
            ("POST /{w}/verification/verify-entity", self.verify_entity),
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
        ):
            router.add(route, handler)

    def _world(self, request: Request) -> World:
        return self.worlds.find(request.params["w"])

    def _ticket(self, world: World, identifier: Any) -> Ticket | None:
        name = identifier if isinstance(identifier, str) else ""
        digits = name[1:]
        plausible = name.startswith("T") and digits.isascii() and digits.isdigit() and len(digits) < 16
        return world.simulation.tickets.get(int(digits)) if plausible else None

    def _required_ticket(self, world: World, request: Request) -> Ticket:
        ticket = self._ticket(world, request.params["id"])
        if ticket is None:
            raise RefusalError(404, f"{request.params['id'][:64]!r} not found")
        return ticket

    def tickets(self, request: Request) -> Reply:
        """Tickets, filtered."""
        world = self._world(request)
        query = request.query
        status = query.get("status")
        if status and status not in TICKET_STATUSES:
            raise RefusalError(400, f"status: {status[:40]!r} is none of {', '.join(TICKET_STATUSES)}")
        shelf = world.simulation.tickets
        found = sorted(shelf.of(status), key=_number) if status else list(shelf.things.values())
        if query.get("priority"):
            found = [one for one in found if one.priority == query["priority"]]
        if query.get("assignedTo"):
            found = [one for one in found if one.assigned == query["assignedTo"]]
        total = shelf.count(status) if status and not query.keys() & {"priority", "assignedTo"} else None
        shown, facts = show(found, query, lambda one: views.ticket(world.id, one), (100, 100), total=total)
        return ok({"items": shown, **facts}, "ticket.list", world.now)

    def create_ticket(self, request: Request) -> Reply:
        """Open a ticket by hand; it stands for no document."""
        world = self._world(request)
        given = body_of(request.body, "title", "description", "requester")
        simulation = world.simulation
        ticket = Ticket(
            number=simulation.tickets.next_number,
            title=text(given["title"], "title", 300),
            description=text(given["description"], "description"),
            requester=text(given["requester"], "requester", 200),
            created=simulation.now,
            priority=_choice(
                given.get("priority", "medium"), "priority", ("low", "medium", "high", "critical")
            ),
            kind=_choice(
                given.get("type", "incident"), "type", ("incident", "service_request", "problem", "change")
            ),
            touched=simulation.now,
        )
        simulation.tickets.add(ticket)
        simulation.audit("WorldItsmTicket", f"T{ticket.number}", None, "new")
        simulation.schedule(3 * simulation.rules.patience, "give_up", ticket.number)
        return ok(views.ticket(world.id, ticket), "ticket.created", world.now, 201)

    def ticket(self, request: Request) -> Reply:
        """One ticket."""
        world = self._world(request)
        return ok(views.ticket(world.id, self._required_ticket(world, request)), "ticket.get", world.now)

    def update_ticket(self, request: Request) -> Reply:
        """Change a ticket's text, priority, assignee or status."""
        world = self._world(request)
        ticket = self._required_ticket(world, request)
        given = body_of(request.body)
        fields = {
            name: text(given[name], name)
            for name in ("title", "description", "assignedTo", "resolutionNotes")
            if name in given
        }
        priority = given.get("priority", ticket.priority)
        _choice(priority, "priority", ("low", "medium", "high", "critical"))
        if "status" in given:
            desk.set_ticket_status(world.simulation, ticket, text(given["status"], "status"))
        ticket.priority = priority
        ticket.title = fields.get("title", ticket.title)
        ticket.description = fields.get("description", ticket.description)
        ticket.assigned = fields.get("assignedTo", ticket.assigned)
        ticket.resolution = fields.get("resolutionNotes", ticket.resolution)
        ticket.touched = world.now
        return ok(views.ticket(world.id, ticket), "ticket.updated", world.now)

    def delete_ticket(self, request: Request) -> Reply:
        """Drop a ticket."""
        world = self._world(request)
        world.simulation.tickets.remove(self._required_ticket(world, request))
        return ok({"success": True}, "ticket.deleted", world.now)

    def ticket_status(self, request: Request) -> Reply:
        """Move a ticket along its flow."""
        world = self._world(request)
        ticket = self._required_ticket(world, request)
        desk.set_ticket_status(
            world.simulation, ticket, text(body_of(request.body, "status")["status"], "status")
        )
        return ok(views.ticket(world.id, ticket), "ticket.status", world.now)

    def work_notes(self, request: Request) -> Reply:
        """Add notes to a ticket, at most fifty."""
        world = self._world(request)
        ticket = self._required_ticket(world, request)
        notes = body_of(request.body, "workNotes")["workNotes"]
        if not isinstance(notes, list) or len(ticket.notes) + len(notes) > 50:
            raise RefusalError(400, "workNotes: a list is required, and a ticket holds at most 50")
        now = views.stamp(world.now)
        checked = [
            {
                "author": text(body_of(note, "author", "note")["author"], "author", 200),
                "note": text(note["note"], "note"),
                "isPublic": note.get("isPublic") is True,
                "createdAt": now,
                "updatedAt": now,
            }
            for note in notes
        ]
        ticket.notes.extend(checked)
        ticket.touched = world.now
        return ok(views.ticket(world.id, ticket), "ticket.notes", world.now)

    def verify_ticket(self, request: Request) -> Reply:
        """Look at the world again: is the failure behind the ticket gone?"""
        world = self._world(request)
        try:
            identifier = body_of(request.body, "ticketId")["ticketId"]
        except RefusalError as refusal:
            return Reply(refusal.status, {"error": str(refusal)})
        ticket = self._ticket(world, identifier)
        if ticket is None:
            return Reply(404, {"error": f"ticket {str(identifier)[:64]!r} not found"})
        passed = desk.verify(world.simulation, ticket)
        document = world.simulation.documents.get(ticket.document)
        actual = "GONE" if document is None else document.status
        return Reply(
            200,
            _verdict(
                world, (f"T{ticket.number}", f"E{ticket.document}"), actual, ticket.failure, passed=passed
            ),
        )

    def verify_entity(self, request: Request) -> Reply:
        """Check an order without a ticket."""
        world = self._world(request)
        try:
            given = body_of(request.body, "odId")
            kind = _choice(given.get("entityType", "ORDER"), "entityType", ENTITY_TYPES)
        except RefusalError as refusal:
            return Reply(refusal.status, {"error": str(refusal)})
        identifier = str(given.get("entityId", ""))
        digits = identifier[1:]
        order = None
        if kind == "ORDER" and digits.isascii() and digits.isdigit() and len(digits) < 16:
            order = world.simulation.orders.get(int(digits))
        if order is None:
            return Reply(404, {"error": f"{kind} {identifier[:64]!r} not found"})
        return Reply(
            200,
            _verdict(
                world, ("", identifier), order.status, "late" if order.late else None, passed=not order.late
            ),
        )

    def logs(self, request: Request) -> Reply:
        """Service logs, newest first."""
        world = self._world(request)
        query = request.query
        level = query.get("level")
        if level and level not in LEVELS:
            raise RefusalError(400, f"level: {level[:40]!r} is none of {', '.join(LEVELS)}")
        found = [
            entry
            for entry in world.simulation.journal.logs
            if (not level or entry.level == level)
            and query.get("serviceType", entry.service) == entry.service
            and query.get("searchText", "") in entry.message
        ]
        shown, facts = show(found, query, lambda one: views.log(world.id, one), (100, 500), newest=True)
        return ok({"items": shown, **facts}, "log.list", world.now)

    def audit_logs(self, request: Request) -> Reply:
        """What changed, oldest first."""
        world = self._world(request)
        query = request.query
        shown = [
            views.audit(entry)
            for entry in world.simulation.journal.audits
            if query.get("model", entry.model) == entry.model
            and query.get("documentId", entry.document_id) == entry.document_id
            and query.get("dateStart", "") <= views.stamp(entry.time)
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


def overview(world: World) -> dict[str, Any]:
    """The world in one mapping: of each list the oldest, with the fields an observation reads."""
    simulation = world.simulation
    errors = list(simulation.journal.errors)[: -OVERVIEW_ERRORS - 1 : -1]
    found: dict[str, Any] = {
        "time": views.stamp(simulation.now),
        "ledger": views.ledger(world.id, simulation.ledger),
        "metrics": {
            "completedOrders": simulation.orders.count("SHIPPED"),
            "onTimeShipments": simulation.shipped_on_time,
        },
        "fulfillment": views.fulfillment(simulation),
        "errors": [{"msg": one.message} for one in errors],
        "tickets": {"closed": {"items": [], "totalCount": simulation.tickets.count("closed")}},
    }
    for part, shelf, statuses, view in (
        ("edi", simulation.documents, ("ERRORED",), views.brief_document),
        ("orders", simulation.orders, ("PENDING", "ALLOCATED", "PACKED"), views.brief_order),
        ("invoices", simulation.invoices, ("DRAFT", "SENT"), views.brief_invoice),
        ("payments", simulation.payments, ("UNMATCHED",), views.payment),
        ("tickets", simulation.tickets, ("new", "open", "in_progress"), views.brief_ticket),
    ):
        lists = found.setdefault(part, {})
        for status in statuses:
            lists[status] = _oldest(shelf, status, view)
    return found


def _oldest(shelf: Shelf[Any], status: str, view: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    held = shelf.by_status.get(status)
    if not held:
        return {"items": [], "totalCount": shelf.forgotten[status]}
    items = [view(held[number]) for number in sorted(held)[:OVERVIEW_ITEMS]]
    return {"items": items, "totalCount": len(held) + shelf.forgotten[status]}


def _verdict(
    world: World, ids: tuple[str, str], actual: str, failure: str | None, *, passed: bool
) -> dict[str, Any]:
    ticket_id, entity = ids
    expected = ["DELIVERED", "ARCHIVED"] if entity.startswith("E") else ["PENDING", "SHIPPED"]
    verdict: dict[str, Any] = {
        "passed": passed,
        "ticketId": ticket_id,
        "worldId": world.id,
        "timestamp": views.stamp(world.now),
        "totalChecks": 1,
        "passedChecks": int(passed),
        "failedChecks": int(not passed),
        "verificationDurationMs": 0,
        "invariantChecks": [],
        "entityStateChecks": [
            {
                "entityType": "ORDER",
                "entityId": entity,
                "expectedStates": expected,
                "actualState": actual,
                "passed": passed,
            }
        ],
        "constraintChecks": [],
    }
    if not passed:
        verdict["failureReason"] = failure or "unsettled"
    return verdict


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


def _choice(value: Any, name: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise RefusalError(400, f"{name}: {value!r} is none of {', '.join(known)}")
    return str(value)


def _number(one: Document | Order | Ticket) -> int:
    return one.number
