"""The whole API of a local server as one function: a request in, a reply out.

`dispatch` answers everything and never raises: what the world refuses, what nobody knows and what is
malformed become the API's own error shapes. Access is serialized, so one instance may be shared by
the threads of a vector environment.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from skyfall_morpheus.local.accounts import Accounts
from skyfall_morpheus.local.answers import body_of, error, ok
from skyfall_morpheus.local.chaos import Chaos
from skyfall_morpheus.local.desk import RefusalError
from skyfall_morpheus.local.lifecycle import Lifecycle
from skyfall_morpheus.local.overview import overview
from skyfall_morpheus.local.routing import Reply, Request, Router
from skyfall_morpheus.local.service import Service
from skyfall_morpheus.local.ticketing import Ticketing
from skyfall_morpheus.local.trade import Trade
from skyfall_morpheus.local.worlds import Worlds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skyfall_morpheus.local.model import Rules

__all__ = ["LocalApi"]

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


class LocalApi:
    """A server's worlds and their routes, with no socket.

    Args:
        rules: The numbers new worlds follow.
        seed: Mixed into the seeds of worlds nobody seeds.
        real_time: Whether time passes by the wall clock instead of by action.
        clock: Seconds, for `real_time`.

    Attributes:
        journal: Told of every request that may change something, before it is carried out.
    """

    def __init__(
        self,
        rules: Rules | None = None,
        seed: int = 0,
        *,
        real_time: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        timing = {} if clock is None else {"clock": clock}
        self.worlds = Worlds(rules, seed, real_time=real_time, **timing)
        self.journal: Callable[[Request], None] | None = None
        self._lock = threading.RLock()
        self._router = Router()
        for part in (Lifecycle, Chaos, Trade, Accounts, Ticketing, Service):
            part(self.worlds).add_routes(self._router)
        self._router.add("POST /world/act", self._act)
        self._router.add("POST /{w}/step", self._step)
        self._router.add("GET /docs", self._docs)
        self._router.add("GET /docs/mesh", self._mesh)
        self._router.add("GET /docs/swagger.json", self._swagger)

    def dispatch(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Any = None
    ) -> Reply:
        """Answer one call.

        Args:
            method: Upper-case HTTP method.
            path: Path below the root, segments percent-encoded.
            query: Query parameters.
            body: Decoded JSON, None for none.
        """
        request = Request(method, path, query or {}, body)
        with self._lock:
            if self.journal is not None and method != "GET":
                self.journal(request)
            return self._answer(request)

    def _answer(self, request: Request) -> Reply:
        handler, allowed = self._router.find(request)
        if handler is None:
            known = f"; it has {', '.join(sorted(allowed))}" if allowed else ""
            missing = f"no route {request.method[:10]} {request.path[:200]}{known}"
            return error(405 if allowed else 404, missing)
        try:
            return handler(request)
        except RefusalError as refusal:
            return error(refusal.status, str(refusal))

    def _act(self, request: Request) -> Reply:
        """Forward the inner call to its own route, mirror its answer, and let time pass."""
        given = body_of(request.body, "path")
        path, params = given["path"], given.get("params", {})
        method = given.get("method", "GET")
        query = given.get("query", {})
        if not isinstance(path, str) or not isinstance(params, dict) or not isinstance(query, dict):
            raise RefusalError(400, "act: path is a string, params and query are objects")
        if method not in METHODS:
            raise RefusalError(400, f"method: {str(method)[:20]!r} is none of {', '.join(sorted(METHODS))}")
        filled = "/".join(_fill(segment, params) for segment in path.split("/"))
        if filled.strip("/") == "world/act":
            raise RefusalError(400, "act: an action cannot act")
        world = self._world_of(filled)
        words = {str(key): str(value) for key, value in query.items() if value is not None}
        reply = self._answer(Request(method, filled, words, given.get("body")))
        if world is not None and world in self.worlds.by_id:
            self.worlds.tick(self.worlds.by_id[world])
        return reply

    def _step(self, request: Request) -> Reply:
        """Act and look in one call: what the action led to, and the overview after it. An extension."""
        world = self.worlds.find(request.params["w"])
        inner = self._act(Request("POST", "/world/act", {}, request.body))
        data = {"status": inner.status, "body": inner.body, "overview": overview(world)}
        return ok(data, "step", world.now)

    def _world_of(self, path: str) -> str | None:
        """The id of the world a path is about, if it is about one."""
        segments = path.strip("/").split("/")
        if segments[0] == "world":
            segments = segments[1:] or [""]
        identifier = unquote(segments[0])
        return identifier if identifier in self.worlds.by_id else None

    def _docs(self, request: Request) -> Reply:  # noqa: ARG002
        """What this server is and what it offers beyond the documented API."""
        return Reply(
            200, {"name": "skyfall-morpheus local world", "extensions": ["overview", "snapshot", "step"]}
        )

    def _mesh(self, request: Request) -> Reply:
        """The routes of one service, by the first segment below the world."""
        service = request.query.get("service")
        if not service:
            raise RefusalError(400, "service: required, such as edi, wms, erp or tickets")
        found = [
            {"method": method, "path": path}
            for method, path in self._router.routes()
            if service in path.split("/")[1:3] and request.query.get("method", method) == method
        ]
        return Reply(200, {"service": service, "count": len(found), "actions": found})

    def _swagger(self, request: Request) -> Reply:  # noqa: ARG002
        """Every route, as an OpenAPI document without schemas."""
        paths: dict[str, dict[str, Any]] = {}
        for method, path in self._router.routes():
            answers = {"default": {"description": "JSON"}}
            paths.setdefault(path, {})[method.lower()] = {"responses": answers}
        title = {"title": "skyfall-morpheus local world", "version": "1"}
        return Reply(200, {"openapi": "3.0.3", "info": title, "paths": paths})


def _fill(segment: str, params: Mapping[str, Any]) -> str:
    if not segment.startswith(":"):
        return segment
    value = params.get(segment[1:])
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise RefusalError(400, f"params: {segment[1:][:64]!r} is missing or no string")
    return quote(str(value), safe="")
