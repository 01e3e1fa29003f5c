"""Numbered things of one kind, found by number and by status, with the finished ones bounded.

Every look-up the API offers per status must cost what it returns, not what the world has ever seen;
and a world that runs for weeks must not grow.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

__all__ = ["Shelf"]


class _Thing(Protocol):
    number: int
    status: str
    touched: float


Thing = TypeVar("Thing", bound=_Thing)


def _nothing(_: Any) -> bool:
    return False


class Shelf(Generic[Thing]):
    """Things by number and by status.

    Args:
        finished: Statuses that nothing leaves any more.
        retention: How many finished things are kept; of older ones only the count remains.
        needed: Whether something unfinished still refers to a finished thing, which is then kept.
    """

    def __init__(
        self, finished: frozenset[str], retention: int, needed: Callable[[Thing], bool] = _nothing
    ) -> None:
        self.finished = finished
        self.retention = retention
        self.needed = needed
        self.things: dict[int, Thing] = {}
        self.by_status: dict[str, dict[int, Thing]] = {}
        self.forgotten: Counter[str] = Counter()
        self._done: deque[int] = deque()
        self._added = 0

    def add(self, thing: Thing) -> None:
        """Take in a new thing under its status."""
        self._added += 1
        self.things[thing.number] = thing
        self.by_status.setdefault(thing.status, {})[thing.number] = thing

    @property
    def next_number(self) -> int:
        """The number of the next thing; never one that was given before."""
        return self._added + 1

    def get(self, number: int | None) -> Thing | None:
        """The thing, or None when it never was or is forgotten."""
        return None if number is None else self.things.get(number)

    def move(self, thing: Thing, status: str, now: float) -> None:
        """Give a thing another status, and forget the oldest finished ones when there are too many."""
        was_finished = thing.status in self.finished
        del self.by_status[thing.status][thing.number]
        thing.status = status
        thing.touched = now
        self.by_status.setdefault(status, {})[thing.number] = thing
        if status in self.finished and not was_finished:
            self._done.append(thing.number)
            self._trim()

    def remove(self, thing: Thing) -> None:
        """Drop a thing as if it had never been."""
        del self.by_status[thing.status][thing.number]
        del self.things[thing.number]
        if thing.status in self.finished:
            self._done.remove(thing.number)

    def of(self, *statuses: str) -> list[Thing]:
        """Every kept thing in one of `statuses`, oldest number first within a status."""
        return [thing for status in statuses for thing in self.by_status.get(status, {}).values()]

    def count(self, *statuses: str) -> int:
        """How many things have one of `statuses`, the forgotten ones included."""
        held, forgotten = self.by_status, self.forgotten
        total = 0
        for status in statuses:
            total += len(held.get(status, ())) + forgotten.get(status, 0)
        return total

    def counts(self) -> dict[str, int]:
        """Things by status, the forgotten ones included; statuses nothing has are left out."""
        names = {**dict.fromkeys(self.by_status), **dict.fromkeys(self.forgotten)}
        return {name: total for name in sorted(names) if (total := self.count(name))}

    @property
    def unfinished(self) -> int:
        """How many things are not finished."""
        return len(self.things) - len(self._done)

    def total(self) -> int:
        """How many things there are and were."""
        return len(self.things) + sum(self.forgotten.values())

    def state(self) -> dict[str, Any]:
        """Everything the shelf holds, as plain JSON values; `load` takes it back."""
        return {
            "things": msgspec.to_builtins(list(self.things.values())),
            "by_status": {status: list(held) for status, held in self.by_status.items()},
            "forgotten": dict(self.forgotten),
            "done": list(self._done),
            "added": self._added,
        }

    def load(self, state: Mapping[str, Any], kind: type[Thing]) -> None:
        """Become what `state` described, order within each status included.

        Args:
            state: What `state` returned.
            kind: Dataclass of the things.
        """
        things: list[Thing] = [msgspec.convert(one, kind) for one in state["things"]]
        self.things = {thing.number: thing for thing in things}
        self.by_status = {
            status: {number: self.things[number] for number in numbers}
            for status, numbers in state["by_status"].items()
        }
        self.forgotten = Counter(state["forgotten"])
        self._done = deque(state["done"])
        self._added = state["added"]

    def _trim(self) -> None:
        """Forget the oldest finished things above the retention, all but those still needed."""
        spared: list[int] = []
        while self._done and len(self._done) + len(spared) > self.retention:
            number = self._done.popleft()
            if self.needed(self.things[number]):
                spared.append(number)
            else:
                self._forget(number)
        self._done.extendleft(reversed(spared))

    def _forget(self, number: int) -> None:
        thing: Any = self.things.pop(number)
        del self.by_status[thing.status][number]
        self.forgotten[thing.status] += 1
