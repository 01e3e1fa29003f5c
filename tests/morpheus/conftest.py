"""A real HTTP server on loopback whose answers can be spoiled, one request at a time."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from skyfall_morpheus.local.api import LocalApi

Fault = Callable[["Handler", int, bytes], None]


@dataclass
class Rule:
    """Spoil the next `times` requests that match."""

    method: str
    part: str
    fault: Fault
    times: int = 1
    execute: bool = True


@dataclass
class FaultyServer:
    """A local world server with rules for spoiling answers.

    Attributes:
        api: The worlds behind it.
        rules: Tried in order; the first that matches and is not used up applies.
        seen: Method and path of every request.
        headers: Headers of the latest request.
    """

    api: LocalApi = field(default_factory=LocalApi)
    rules: list[Rule] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def spoil(self, method: str, part: str, fault: Fault, times: int = 1, *, execute: bool = True) -> None:
        """Answer the next matching requests with `fault`, carried out before or not at all."""
        self.rules.append(Rule(method, part, fault, times, execute))

    def rule_for(self, method: str, path: str) -> Rule | None:
        for rule in self.rules:
            if rule.times > 0 and rule.method in {method, "*"} and rule.part in path:
                rule.times -= 1
                return rule
        return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    faulty: FaultyServer

    def log_message(self, *args: Any) -> None:
        """Keep the test's output clean."""

    def answer(self) -> None:
        parts = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.faulty.seen.append((self.command, parts.path))
        self.faulty.headers = {key.lower(): value for key, value in self.headers.items()}
        rule = self.faulty.rule_for(self.command, self.path)
        status, payload = 500, b"{}"
        if rule is None or rule.execute:
            body = json.loads(raw) if raw else None
            reply = self.faulty.api.dispatch(self.command, parts.path, dict(parse_qsl(parts.query)), body)
            status, payload = reply.status, json.dumps(reply.body).encode()
        if rule is None:
            send(self, status, payload)
        else:
            rule.fault(self, status, payload)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815


def send(
    handler: Handler, status: int, payload: bytes, kind: str = "application/json", **headers: str
) -> None:
    """A whole answer in one packet."""
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(payload)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    handler.wfile.write("\r\n".join([*lines, "", ""]).encode() + payload)


def status_only(status: int, **headers: str) -> Fault:
    def fault(handler: Handler, _status: int, _payload: bytes) -> None:
        body = {"success": False, "status": status, "error": f"injected {status}", "meta": {}}
        send(handler, status, json.dumps(body).encode(), **headers)

    return fault


def html(status: int) -> Fault:
    def fault(handler: Handler, _status: int, _payload: bytes) -> None:
        send(handler, status, b"<html><body>Bad gateway</body></html>", "text/html")

    return fault


def reset(handler: Handler, _status: int, _payload: bytes) -> None:
    """Tear the connection down with an RST."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RD)
    handler.connection.close()


def truncated(handler: Handler, status: int, payload: bytes) -> None:
    """Whole headers, half a body, then nothing more: a body cut off on the way."""
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(payload)}\r\n\r\n"
    handler.wfile.write(head.encode() + payload[: len(payload) // 2])
    handler.close_connection = True


def half_json(handler: Handler, status: int, payload: bytes) -> None:
    """A complete HTTP answer whose JSON is not."""
    send(handler, status, payload[: len(payload) // 2])


def silent(handler: Handler, _status: int, _payload: bytes) -> None:
    """Never answer; the client has to give up by itself."""
    handler.faulty_release.wait(10)
    handler.close_connection = True


def trickling(handler: Handler, status: int, payload: bytes) -> None:
    """A few bytes, and then silence in the middle of the headers."""
    handler.wfile.write(f"HTTP/1.1 {status} X\r\ncontent-".encode())
    handler.faulty_release.wait(10)
    handler.close_connection = True


@pytest.fixture
def faulty() -> Iterator[FaultyServer]:
    """A spoilable server; `faulty.url` is where it listens."""
    holder = FaultyServer()
    release = threading.Event()
    kind = type("BoundHandler", (Handler,), {"faulty": holder, "faulty_release": release})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # torn connections are the point
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    holder.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield holder
    release.set()
    server.shutdown()
    server.server_close()
    thread.join(5)


class Faults:
    """The ways to spoil an answer, for tests."""

    status = staticmethod(status_only)
    html = staticmethod(html)
    reset = staticmethod(reset)
    truncated = staticmethod(truncated)
    half_json = staticmethod(half_json)
    silent = staticmethod(silent)
    trickling = staticmethod(trickling)


@pytest.fixture
def faults() -> Faults:
    """The ways to spoil an answer."""
    return Faults()
