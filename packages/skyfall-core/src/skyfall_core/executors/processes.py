"""One worker process, seen from the executor that started it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from skyfall_core.executors.base import Cell, CellEvent, CellOutcome, CellProgress, CellStatus, Remark
from skyfall_core.executors.worker import order

__all__ = ["Worker", "describe_end"]

LINES_KEPT = 40
"""How much of what a cell printed is shown when it could not say what went wrong."""

SECONDS_TO_END = 5.0
"""How long a worker whose cell was killed may take to notice."""

_BLOCK = 1 << 16


class Worker:
    """A process that runs one cell after another, each in a fork.

    Args:
        environment: Its environment variables.

    Attributes:
        cell: What it is running, or None.
        steps: How far that cell is.
        memory_mb: Largest resident size of that cell so far, in MiB.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._messages, write = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and a module of ours
                [
                    sys.executable,
                    "-P",
                    "-X",
                    "faulthandler",
                    "-m",
                    "skyfall_core.executors.worker",
                    str(write),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env={**environment, "PYTHONUNBUFFERED": "1"},
                pass_fds=(write,),
                start_new_session=True,  # Ctrl-C goes to the executor, which tells the cells
            )
        finally:
            os.close(write)
        assert self._process.stdout is not None  # noqa: S101 - piped
        self._output = self._process.stdout.fileno()
        for stream in self.streams:
            os.set_blocking(stream, False)
        self._partial = dict.fromkeys(self.streams, b"")
        self._free(None)

    def _free(self, cell: Cell | None) -> None:
        self.cell, self.steps, self.memory_mb = cell, 0, 0
        self._pid: int | None = None
        self._outcome: CellOutcome | None = None
        self._printed: deque[str] = deque(maxlen=LINES_KEPT)
        self._interrupted = False
        self._began = time.monotonic()

    @property
    def streams(self) -> tuple[int, int]:
        """The descriptors to listen to."""
        return self._messages, self._output

    @property
    def gone(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def begin(self, cell: Cell) -> None:
        """Run `cell` next."""
        self._free(cell)
        assert self._process.stdin is not None  # noqa: S101 - piped
        with contextlib.suppress(BrokenPipeError):  # told by `gone`
            self._process.stdin.write(order(cell))

    def interrupt(self) -> None:
        """Ask the running cell to stop, as Ctrl-C does; one that has not begun yet never will."""
        self._interrupted = True
        if self._pid is None:
            self._process.kill()
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGINT)

    def kill(self) -> None:
        """End the process and whatever its cell has started, and see both gone."""
        for _ in self.read(self._messages):  # a cell may have begun that was not heard of yet
            pass
        if self._pid is None:
            self._process.kill()
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            assert self._process.stdin is not None  # noqa: S101 - piped
            self._process.stdin.close()  # it ends by itself, once it has seen its cell's end
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_END)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        os.close(self._messages)

    def read(self, stream: int) -> Iterator[CellEvent]:
        """What has come in on one of `streams`, as events."""
        try:
            block = os.read(stream, _BLOCK)
        except BlockingIOError:
            return
        *lines, self._partial[stream] = (self._partial[stream] + block).split(b"\n")
        for line in lines:
            if stream == self._messages:
                yield from self._message(line)
            else:
                yield from self._print(line.decode(errors="replace"))

    def last_words(self) -> Iterator[CellEvent]:
        """Everything still unread of a worker that is gone, and its cell's outcome."""
        for stream in self.streams:
            while block := _read(stream):
                self._partial[stream] += block
            for line in self._partial[stream].split(b"\n"):
                yield from (
                    self._message(line)
                    if stream == self._messages
                    else self._print(line.decode(errors="replace"))
                )
        if self.cell is not None:
            yield self._ended(self._process.wait(), 0)

    def _print(self, line: str) -> Iterator[CellEvent]:
        if line and self.cell is not None:
            self._printed.append(line)
            yield Remark(f"{self.cell.name}: {line}")

    def _message(self, line: bytes) -> Iterator[CellEvent]:
        try:
            message: dict[str, Any] = json.loads(line)
        except ValueError:  # empty, or torn when its writer was killed
            return
        if self.cell is None:
            return
        self.memory_mb = max(self.memory_mb, message.get("peak_mb", 0))
        match message:
            case {"began": pid}:
                self._pid = pid
                if self._interrupted:
                    self.interrupt()
            case {"progress": progress}:
                self.steps = progress["steps"]
                yield CellProgress(**progress)
            case {"outcome": outcome}:
                self._outcome = CellOutcome(**outcome | {"status": CellStatus(outcome["status"])})
            case {"ended": status}:
                yield self._ended(status, self.memory_mb)

    def _ended(self, status: int, peak_mb: int) -> CellOutcome:
        """The cell's own account of its end, or what its process's end says about it."""
        cell, told = self.cell, self._outcome
        assert cell is not None  # noqa: S101 - asked only while there is one
        seconds = time.monotonic() - self._began
        if told is None and self._interrupted:
            told = CellOutcome(cell.name, CellStatus.INTERRUPTED, self.steps)
        elif told is not None and told.status is CellStatus.INTERRUPTED and not self._interrupted:
            told = None if status else _stopped_from_outside(told)
        if told is None:
            error, printed = describe_end(status, peak_mb), "\n".join(self._printed) or None
            told = CellOutcome(cell.name, CellStatus.FAILED, self.steps, error=error, detail=printed)
        peak, interrupted = self.memory_mb, self._interrupted
        self._free(None)
        self.memory_mb, self._interrupted = peak, interrupted
        return CellOutcome(told.name, told.status, told.steps, seconds, told.error, told.detail)


def _stopped_from_outside(told: CellOutcome) -> CellOutcome:
    """Nobody asked the sweep to stop, so for it the cell has failed."""
    return dataclasses.replace(told, status=CellStatus.FAILED, error="a signal from outside stopped it")


def _read(stream: int) -> bytes:
    try:
        return os.read(stream, _BLOCK)
    except BlockingIOError:  # something the cell started still holds it open
        return b""


def describe_end(number: int, peak_mb: int) -> str:
    """What a process's exit status says about a cell that could not say it itself."""
    if number == -signal.SIGKILL:
        took = f"; it had taken {peak_mb:,} MiB" if peak_mb else ""
        problem = f"killed by SIGKILL, as the system does when memory runs out{took}"
        return f"{problem}; give fewer --jobs, or executor.resources.memory_mb what a cell needs"
    if number < 0:
        return f"its process crashed with {signal.Signals(-number).name}"
    return f"its process ended with status {number} before the run did"
