"""Requests, replies, and finding the handler of a path.

Literal segments win over placeholders, as on the real server: `/world/layouts` before `/world/{w}`,
and `/world`, `/chaos`, `/docs` before `/{w}/…`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

__all__ = ["Handler", "Reply", "Request", "Router"]


@dataclass(slots=True)
class Request:
    """One call of the API, decoded.

    Attributes:
        method: Upper-case HTTP method.
        path: Path below the root, percent-encoded as received.
        query: Query parameters; of a repeated one the last.
        body: Decoded JSON body, or None without one.
        params: What the path's placeholders matched, decoded.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    params: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Reply:
    """Status and JSON body of an answer."""

    status: int
    body: Any


Handler = Callable[[Request], Reply]


class _Node:
    __slots__ = ("handlers", "literals", "name", "wild")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.wild: _Node | None = None
        self.name = ""
        self.handlers: dict[str, Handler] = {}


class Router:
    """Handlers by method and path pattern, such as `GET /{w}/edi/{id}`."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, route: str, handler: Handler) -> None:
        """Have `handler` answer `route` (`METHOD /pattern`)."""
        method, _, pattern = route.partition(" ")
        node = self._root
        for segment in pattern.strip("/").split("/"):
            if segment.startswith("{"):
                if node.wild is None:
                    node.wild = _Node()
                    node.wild.name = segment[1:-1]
                node = node.wild
            else:
                node = node.literals.setdefault(segment, _Node())
        node.handlers[method] = handler

    def routes(self) -> list[tuple[str, str]]:
        """Method and pattern of everything there is a handler for, by pattern."""
        found: list[tuple[str, str]] = []
        waiting = [("", self._root)]
        while waiting:
            path, node = waiting.pop()
            found.extend((method, path or "/") for method in node.handlers)
            waiting.extend((f"{path}/{name}", child) for name, child in node.literals.items())
            if node.wild is not None:
                waiting.append((f"{path}/{{{node.wild.name}}}", node.wild))
        return sorted(found, key=lambda route: (route[1], route[0]))

    def find(self, request: Request) -> tuple[Handler | None, frozenset[str]]:
        """The handler, with the request's `params` filled; else None and the methods the path has."""
        segments = request.path.strip("/").split("/")
        allowed: set[str] = set()
        handler = self._match(self._root, segments, 0, request, allowed)
        return handler, frozenset(allowed)

    def _match(
        self, node: _Node, segments: list[str], position: int, request: Request, allowed: set[str]
    ) -> Handler | None:
        if position == len(segments):
            allowed.update(node.handlers)
            return node.handlers.get(request.method)
        segment = segments[position]
        child = node.literals.get(segment)
        if child is not None:
            found = self._match(child, segments, position + 1, request, allowed)
            if found is not None:
                return found
        if node.wild is not None and segment:
            found = self._match(node.wild, segments, position + 1, request, allowed)
            if found is not None:
                request.params[node.wild.name] = unquote(segment)
                return found
        return None
