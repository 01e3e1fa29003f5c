"""What every group of routes has: the server's worlds, and the table of what answers what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skyfall_morpheus.local.routing import Handler, Request, Router
    from skyfall_morpheus.local.worlds import World, Worlds

__all__ = ["Handlers"]


class Handlers(ABC):
    """Handlers over a server's worlds.

    Args:
        worlds: The worlds.
    """

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds

    @abstractmethod
    def routes(self) -> Iterable[tuple[str, Handler]]:
        """Method and path of every route, with what answers it."""

    def add_routes(self, router: Router) -> None:
        """Register the routes."""
        for route, handler in self.routes():
            router.add(route, handler)

    def _world(self, request: Request) -> World:
        return self.worlds.find(request.params["w"])
