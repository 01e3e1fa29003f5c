"""Routes of tickets and of verification, which looks at the world again before a ticket counts as done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import desk, views
from skyfall_morpheus.local.answers import body_of, in_period, ok, only_status, require_room, show, text
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.handlers import Handlers
from skyfall_morpheus.local.model import TICKET_STATUSES, Ticket
from skyfall_morpheus.local.routing import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skyfall_morpheus.local.routing import Handler
    from skyfall_morpheus.local.worlds import World

__all__ = ["Ticketing"]

TICKET_FILTERS = ("priority", "impact", "urgency", "department", "assignedTo")
ENTITY_TYPES = ("ORDER", "SHIPMENT", "TASK", "WAVE", "INVENTORY")


class Ticketing(Handlers):
    """Routes of tickets and of verification."""

    def routes(self) -> Iterable[tuple[str, Handler]]:
        """What answers what."""
        return (
            ("GET /{w}/tickets", self.tickets),
            ("POST /{w}/tickets", self.create_ticket),
            ("GET /{w}/tickets/{id}", self.ticket),
            ("PUT /{w}/tickets/{id}", self.update_ticket),
            ("DELETE /{w}/tickets/{id}", self.delete_ticket),
            ("PATCH /{w}/tickets/{id}/status", self.ticket_status),
            ("PATCH /{w}/tickets/{id}/work-notes", self.work_notes),
            ("POST /{w}/verification/verify-ticket", self.verify_ticket),
            ("POST /{w}/verification/verify-entity", self.verify_entity),
        )

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
        wanted = in_period(query)
        asked = [
            name for name in ("priority", "impact", "urgency", "department", "assignedTo") if query.get(name)
        ]
        if asked or query.keys() & {"dateStart", "dateEnd"}:
            found = [one for one in found if wanted(one.created) and _fits(one, query, asked)]
        total = shelf.count(status) if status and only_status(query) else None
        shown, facts = show(found, query, lambda one: views.ticket(world.id, one), (100, 100), total=total)
        return ok({"items": shown, **facts}, "ticket.list", world.now)

    def create_ticket(self, request: Request) -> Reply:
        """Open a ticket by hand; it stands for no document."""
        world = self._world(request)
        given = body_of(request.body, "title", "description", "requester")
        simulation = world.simulation
        require_room(simulation.tickets, "tickets", simulation.rules.backlog)
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


def _choice(value: Any, name: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise RefusalError(400, f"{name}: {value!r} is none of {', '.join(known)}")
    return str(value)


def _number(one: Ticket) -> int:
    return one.number


def _fits(one: Ticket, query: Mapping[str, str], names: list[str]) -> bool:
    shown = views.ticket("", one)
    return all(shown.get(name) == query[name] for name in names)
