"""The local API as an ASGI application, and a server for it.

The application takes HTTP as ASGI hands it over, decodes and checks it, and asks `LocalApi`. Any ASGI
server can run it; `serve` uses uvicorn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from skyfall_morpheus.local.answers import error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skyfall_morpheus.local.api import LocalApi
    from skyfall_morpheus.local.routing import Reply

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

__all__ = ["LARGEST_BODY", "LocalApp", "serve"]

LARGEST_BODY = 1 << 20
"""Bytes a request body may have."""


class LocalApp:
    """ASGI application around a `LocalApi`.

    Args:
        api: The worlds to serve.
    """

    def __init__(self, api: LocalApi) -> None:
        self.api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request; lifespan events are acknowledged."""
        if scope["type"] == "lifespan":
            await _acknowledge_lifespan(receive, send)
        elif scope["type"] == "http":
            reply = self._reply(scope, await _body_of(receive))
            await (_stream(send, reply) if _asks_for_stream(scope) else _answer(send, reply))

    def _reply(self, scope: Scope, raw: bytes | None) -> Reply:
        if raw is None:
            return error(413, f"body: larger than {LARGEST_BODY} bytes")
        try:
            body = msgspec.json.decode(raw) if raw.strip() else None
            query = dict(parse_qsl(scope.get("query_string", b"").decode("ascii"), keep_blank_values=True))
            path = (scope.get("raw_path") or scope["path"].encode()).decode("ascii")
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
            return error(400, "the request is no valid JSON, query or path")
        return self.api.dispatch(scope["method"], path, query, body)


async def _body_of(receive: Receive) -> bytes | None:
    """The whole body; None when it is larger than allowed."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size <= LARGEST_BODY:
            parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts) if size <= LARGEST_BODY else None


async def _answer(send: Send, reply: Reply) -> None:
    payload = msgspec.json.encode(reply.body)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(payload)).encode())]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": payload})


def _asks_for_stream(scope: Scope) -> bool:
    """Whether the call is `POST /world?stream=true`, the one that streams."""
    query = dict(parse_qsl(scope.get("query_string", b"").decode("ascii", "replace")))
    return bool(scope["method"] == "POST" and scope["path"] == "/world" and query.get("stream") == "true")


async def _stream(send: Send, reply: Reply) -> None:
    """The creation of a world as server-sent events; what went wrong is an event too."""
    kind = "complete" if reply.status == 200 else "error"
    events: tuple[tuple[str, Any], ...] = (
        ("connected", {}),
        ("progress", {"percent": 100}),
        (kind, reply.body),
    )
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for name, data in events:
        frame = b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data))
        await send({"type": "http.response.body", "body": frame, "more_body": name != kind})


async def _acknowledge_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def serve(api: LocalApi, host: str, port: int, *, quiet: bool = False) -> None:
    """Serve until interrupted.

    Args:
        api: The worlds to serve.
        host: Address to listen on.
        port: Port to listen on.
        quiet: Whether to log nothing but errors.
    """
    import uvicorn  # noqa: PLC0415  # only a server needs it

    uvicorn.run(
        LocalApp(api),
        host=host,
        port=port,
        access_log=False,
        log_level="error" if quiet else "info",
        timeout_graceful_shutdown=2,
    )
