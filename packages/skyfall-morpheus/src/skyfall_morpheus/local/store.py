"""A server's worlds kept on disk, so that a server that is stopped or killed goes on where it was.

Worlds are deterministic: they follow from their last saved state and the requests since. So the folder
holds `worlds.json`, a snapshot of everything, and `requests.jsonl`, every request since that may have
changed something, written before it is carried out. Opening the folder restores the one and repeats
the other. From time to time, and when the server ends, the snapshot is renewed and the journal begins
anew. All of it is JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from skyfall_morpheus.errors import WorldConfigError
from skyfall_morpheus.local.snapshot import SnapshotError

if TYPE_CHECKING:
    from skyfall_morpheus.local.api import LocalApi
    from skyfall_morpheus.local.routing import Request

__all__ = ["JOURNAL", "SNAPSHOT", "Store"]

SNAPSHOT = "worlds.json"
JOURNAL = "requests.jsonl"


class Store:
    """The folder behind one server.

    Args:
        folder: Made if it is not there. One server at a time.
        api: The server, without worlds yet; it is given those of the folder.
        renew_after: Journaled requests after which the snapshot is renewed.

    Raises:
        WorldConfigError: The folder cannot be used, or was written under other rules.
    """

    def __init__(self, folder: Path, api: LocalApi, renew_after: int = 10_000) -> None:
        self.folder = folder
        self._api = api
        self._renew_after = renew_after
        self._journaled = 0
        self._sequence = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._restore()
            self._file = (folder / JOURNAL).open("ab", buffering=0)
            self.renew()
        except OSError as failure:
            raise WorldConfigError(f"{folder}: cannot keep worlds here: {failure.strerror}") from None
        api.journal = self.note

    def note(self, request: Request) -> None:
        """Write a request down before it is carried out."""
        if self._journaled >= self._renew_after:
            self.renew()
        self._sequence += 1
        self._journaled += 1
        line = [self._sequence, request.method, request.path, dict(request.query), request.body]
        self._file.write(msgspec.json.encode(line) + b"\n")

    def renew(self) -> None:
        """Write a snapshot of everything and begin the journal anew."""
        whole = {"rules": asdict(self._api.worlds.rules), "sequence": self._sequence}
        whole["worlds"] = self._api.worlds.state()
        fresh = self.folder / f"{SNAPSHOT}.new"
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(whole))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.folder / SNAPSHOT)
        self._file.truncate(0)
        self._journaled = 0

    def close(self) -> None:
        """Save what there is and let go of the folder."""
        self._api.journal = None
        self.renew()
        self._file.close()

    def _restore(self) -> None:
        path = self.folder / SNAPSHOT
        if path.exists():
            whole = self._decoded(path.read_bytes(), path)
            rules = msgspec.json.decode(msgspec.json.encode(self._api.worlds.rules))
            for name, kept in whole["rules"].items():
                if rules.get(name) != kept:
                    raise WorldConfigError(
                        f"{path}: its worlds follow {name} {kept!r}, this server {rules.get(name)!r}; "
                        "start it with the same, or with an empty folder"
                    )
            self._sequence = whole["sequence"]
            try:
                self._api.worlds.load(whole["worlds"])
            except SnapshotError as failure:
                raise WorldConfigError(f"{path}: {failure}; restore it or use an empty folder") from None
        for sequence, method, path_, query, body in self._requests():
            if sequence > self._sequence:  # older ones are in the snapshot, whose journal was not yet cut
                self._sequence = sequence
                self._api.dispatch(method, path_, query, body)

    def _requests(self) -> Iterator[tuple[int, str, str, dict[str, str], Any]]:
        """Journaled requests; a torn last line, as a killed server leaves it, was never carried out."""
        path = self.folder / JOURNAL
        if not path.exists():
            return
        *lines, _ = path.read_bytes().split(b"\n")
        for line in lines:
            sequence, method, address, query, body = self._decoded(line, path)
            yield sequence, method, address, query, body

    @staticmethod
    def _decoded(raw: bytes, path: Path) -> Any:
        try:
            return msgspec.json.decode(raw)
        except msgspec.DecodeError as failure:
            raise WorldConfigError(f"{path}: damaged: {failure}; restore it or use an empty folder") from None
