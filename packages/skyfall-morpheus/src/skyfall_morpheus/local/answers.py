"""Envelopes, error shapes and field checks of the API."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from skyfall_morpheus.local import views
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.routing import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skyfall_morpheus.local.shelf import Shelf

__all__ = [
    "body_of",
    "by_status",
    "error",
    "find",
    "in_period",
    "integer",
    "number",
    "ok",
    "only_status",
    "page",
    "require_room",
    "show",
    "text",
]


def ok(data: Any, event: str, now: float = 0.0, status: int = 200, **more: Any) -> Reply:
    """A success envelope."""
    meta = {"event": event, "timestamp": views.stamp(now)}
    return Reply(status, {"success": True, "status": status, "data": data, "meta": meta, **more})


def error(status: int, message: str, now: float = 0.0) -> Reply:
    """The standard error envelope."""
    meta = {"event": "error", "timestamp": views.stamp(now)}
    return Reply(status, {"success": False, "status": status, "error": message, "meta": meta})


def page(
    things: Sequence[Any], query: Mapping[str, str], default: int, most: int, *, newest: bool = False
) -> tuple[list[Any], dict[str, Any]]:
    """A cursor page of things that have a `number`, and its pagination facts.

    Args:
        things: In ascending order of number.
        query: May hold `limit` and `cursor`, the id of the last thing of the page before.
        default: Page size unless asked otherwise.
        most: Largest page size.
        newest: Whether the newest come first.
    """
    limit = min(integer(query.get("limit", default), "limit", 1), most)
    cursor = query.get("cursor")
    rest = list(reversed(things)) if newest else list(things)
    if cursor:
        digits = cursor.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
            raise RefusalError(400, f"cursor: {cursor[:40]!r} is not the id of an item")
        last = int(digits)
        rest = [thing for thing in rest if (thing.number < last if newest else thing.number > last)]
    facts = {"totalCount": len(things), "limit": limit, "hasMore": len(rest) > limit, "nextCursor": None}
    return rest[:limit], facts


def show(
    things: Sequence[Any],
    query: Mapping[str, str],
    view: Callable[[Any], dict[str, Any]],
    sizes: tuple[int, int],
    *,
    total: int | None = None,
    newest: bool = False,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A page in wire shape, its `nextCursor` set when there is more.

    Args:
        things: In ascending order of number.
        query: May hold `limit` and `cursor`.
        view: The wire shape of one thing.
        sizes: Default and largest page size.
        total: `totalCount` where it is more than what is kept.
        newest: Whether the newest come first.
    """
    items, facts = page(things, query, *sizes, newest=newest)
    shown = [view(item) for item in items]
    if facts["hasMore"]:
        facts["nextCursor"] = shown[-1]["_id"]
    if total is not None:
        facts["totalCount"] = total
    return shown, facts


def in_period(query: Mapping[str, str]) -> Callable[[float], bool]:
    """Whether an instant, in simulated minutes, is in the period that a query asks for.

    Args:
        query: May hold `dateStart` and `dateEnd`, ISO-8601; a date alone means its midnight, and an
            instant without a zone is UTC.
    """
    first, last = (_minutes(query, name) for name in ("dateStart", "dateEnd"))
    return lambda time: (first is None or first <= time) and (last is None or time <= last)


def only_status(query: Mapping[str, str]) -> bool:
    """Whether a query narrows a list by status and by nothing else."""
    return query.keys() - {"limit", "cursor"} == {"status"}


def _minutes(query: Mapping[str, str], name: str) -> float | None:
    given = query.get(name)
    if not given:
        return None
    try:
        instant = datetime.fromisoformat(given)
        zoned = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return (zoned - views.EPOCH) / timedelta(minutes=1)
    except (ValueError, OverflowError):
        raise RefusalError(400, f"{name}: {given[:40]!r} is no ISO-8601 date or instant") from None


def body_of(body: Any, *required: str) -> Mapping[str, Any]:
    """The body as a mapping that has every required field, nulls counting as absent."""
    if not isinstance(body, dict):
        raise RefusalError(400, "body: a JSON object is required")
    given = {key: value for key, value in body.items() if value is not None}
    missing = [name for name in required if name not in given]
    if missing:
        raise RefusalError(400, f"body: required and missing: {', '.join(missing)}")
    return given


def text(value: Any, name: str, longest: int = 2000) -> str:
    """A string field."""
    if not isinstance(value, str) or len(value) > longest:
        raise RefusalError(400, f"{name}: a string of at most {longest} characters is required")
    return value


def integer(value: Any, name: str, least: int = 0) -> int:
    """A whole number, also as digits in a query."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least or value > 10**15:
        raise RefusalError(400, f"{name}: a whole number from {least} on is required")
    return value


def number(value: Any, name: str, least: float = -1e12, most: float = 1e12) -> float:
    """A finite number in a range."""
    valid = isinstance(value, int | float) and not isinstance(value, bool)
    if not valid or not math.isfinite(value) or not least <= value <= most:
        raise RefusalError(400, f"{name}: a number from {least:g} to {most:g} is required")
    return float(value)


def find(shelf: Shelf[Any], request: Request, letter: str) -> Any:
    """The thing whose id, such as `O7`, is in the path."""
    identifier = request.params["id"]
    digits = identifier[1:]
    thing = None
    if identifier.startswith(letter) and digits.isascii() and digits.isdigit() and len(digits) < 16:
        thing = shelf.get(int(digits))
    if thing is None:
        raise RefusalError(404, f"{identifier[:64]!r} not found")
    return thing


def require_room(shelf: Shelf[Any], kind: str, most: int) -> None:
    """Refuse to add to a shelf by hand while too much on it is unfinished: only time bounds it else."""
    if shelf.unfinished >= most:
        raise RefusalError(409, f"{kind}: {shelf.unfinished} are unfinished, and no more than {most} may be")


def by_status(shelf: Shelf[Any], query: Mapping[str, str], known: tuple[str, ...]) -> list[Any]:
    """Things in the status a query asks for, or all of them, by number."""
    status = query.get("status")
    if not status:
        return list(shelf.things.values())
    if status not in known:
        raise RefusalError(400, f"status: {status[:40]!r} is none of {', '.join(known)}")
    return sorted(shelf.of(status), key=lambda thing: thing.number)
