"""A process that runs cells for `LocalExecutor`, each in a fresh fork of itself.

Importing NumPy and Gymnasium takes half a second, forking a few milliseconds, so one worker imports
once and forks for every cell. A cell that crashes takes its fork along and nothing else. The worker is
started as a program of its own, with one thread, which is what makes forking it safe.

Orders come on standard input, messages go to the descriptor named on the command line: one JSON
object a line. The end of standard input means that the executor is gone, however it went: the running
cell is then asked to stop, and killed with everything it started if it does not. If the worker itself
is killed, Linux tells the cell.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import gc
import json
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from skyfall_core import envs, plugins, regime  # noqa: F401 - imported once here, so that no fork has to
from skyfall_core.executors.base import Cell, CellProgress
from skyfall_core.executors.cell import run_cell, stoppable
from skyfall_core.executors.memory import peak_mb
from skyfall_core.plugins import Group

__all__ = ["SECONDS_TO_STOP", "main", "order"]

SECONDS_TO_STOP = 30.0
"""How long a cell may take to close its environment after it was asked to stop."""

_HEADER = struct.Struct("!Q")
_PR_SET_PDEATHSIG = 1


def order(cell: Cell) -> bytes:
    """`cell` as a worker takes it; the executor's import path goes along."""
    content = pickle.dumps((sys.path, pickle.dumps(cell)))
    return _HEADER.pack(len(content)) + content


def main() -> None:
    """Serve orders until standard input ends."""
    messages = int(sys.argv[1])
    os.set_inheritable(messages, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = os.getpid()
    for group in Group:
        plugins.catalogue(group)  # read once here, so that no fork reads them again
    gc.freeze()  # what was imported is never collected, so its memory stays shared with every fork
    with _wakened_by_children() as wakened:
        content = _next_fork(messages, wakened)
    if content is None:
        return
    _become_cell(worker)
    _run(content, messages)
    atexit._run_exitfuncs()  # noqa: SLF001 - as the interpreter does at its end, whose clearing up takes longer
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _next_fork(messages: int, wakened: int) -> bytes | None:
    """Fork for every order: an order in the fork that is to run it, None in the worker at the end."""
    for content in _orders(sys.stdin.buffer):
        pid = os.fork()
        if pid == 0:
            return content
        _serve(pid, messages, wakened)
    return None


def _orders(stream: BinaryIO) -> Iterator[bytes]:
    while len(header := stream.read(_HEADER.size)) == _HEADER.size:
        (size,) = _HEADER.unpack(header)
        yield stream.read(size)


def _serve(pid: int, messages: int, wakened: int) -> None:
    """Watch over a cell's process until it has ended, and say how."""
    with contextlib.suppress(OSError):  # the child does the same; whoever comes first
        os.setpgid(pid, pid)
    _tell(messages, {"began": pid})
    status, usage = _ended(pid, wakened)
    _kill_group(pid, signal.SIGKILL)  # what the cell started and left behind
    ended = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError):
        _tell(messages, {"ended": ended, "peak_mb": peak_mb(usage.ru_maxrss)})


def _ended(pid: int, wakened: int) -> tuple[int, resource.struct_rusage]:
    """Wait for a process; should the executor be gone meanwhile, make it stop."""
    poller = select.poll()
    poller.register(wakened, select.POLLIN)
    poller.register(sys.stdin.fileno(), 0)  # its end is always told
    deadline: float | None = None
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return status, usage
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0) * 1000
        for descriptor, _ in poller.poll(left):
            if descriptor == wakened:
                os.read(wakened, 4096)
            elif deadline is None:
                poller.unregister(descriptor)
                deadline = time.monotonic() + SECONDS_TO_STOP
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        if deadline is not None and time.monotonic() >= deadline:
            _kill_group(pid, signal.SIGKILL)


@contextlib.contextmanager
def _wakened_by_children() -> Iterator[int]:
    """A descriptor that can be read from whenever a child has ended."""
    wakened, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wakened, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing is written
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        yield wakened
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(wake)
        os.close(wakened)


def _become_cell(worker: int) -> None:
    """Make this fork a process of its own right."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != worker:  # it went before we asked to be told
            sys.exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    np.random.seed()  # noqa: NPY002 - else everything drawn from the global state would be equal in all cells


def _run(content: bytes, messages: int) -> None:
    """Run the cell that was ordered, and say how it ended."""

    def report(progress: CellProgress) -> None:
        peak = peak_mb(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        _tell(messages, {"progress": dataclasses.asdict(progress), "peak_mb": peak})

    path, pickled = pickle.loads(content)  # noqa: S301 - written by the executor that started this process
    sys.path[:] = path
    with stoppable() as should_stop:
        outcome = run_cell(pickle.loads(pickled), report, should_stop)  # noqa: S301
    with contextlib.suppress(BrokenPipeError):
        _tell(messages, {"outcome": dataclasses.asdict(outcome)})


def _tell(messages: int, message: Mapping[str, Any]) -> None:
    """Write one line; the empty line before it ends what a killed cell may have left half-written."""
    line = b"\n" + json.dumps(message).encode() + b"\n"
    while line:
        line = line[os.write(messages, line) :]


def _kill_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


if __name__ == "__main__":
    main()
