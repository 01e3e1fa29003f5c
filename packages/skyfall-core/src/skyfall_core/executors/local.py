"""Cells on this machine: `jobs` of them at a time, each in a process of its own.

The processors are shared fairly: with `jobs` cells at a time each may use cores // jobs threads for
its linear algebra, which it is told through the environment before NumPy or torch is loaded. A further
cell does not begin while memory is short. Whatever happens to a cell happens to it alone.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from collections import deque
from collections.abc import Iterator, Sequence

from skyfall_core.errors import ConfigError
from skyfall_core.executors.base import Cell, CellBegan, CellOutcome, CellStatus, Remark, Resources, Tell
from skyfall_core.executors.memory import available_mb
from skyfall_core.executors.processes import Worker
from skyfall_core.executors.worker import SECONDS_TO_STOP

__all__ = ["LocalExecutor", "thread_budget"]

LEAST_MB = 256
"""What a cell is expected to take as long as none has been measured."""

SECONDS_TO_CHECKPOINT = 10.0
"""How long an interrupted cell may take to end its window and write a checkpoint."""

SECONDS_BETWEEN_LOOKS = 0.2
"""How often processes that say nothing are looked after."""

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def thread_budget(jobs: int, cpus: int | None = None) -> dict[str, str]:
    """Environment variables that give a cell its share of the processors.

    Args:
        jobs: How many cells run at a time.
        cpus: Threads a cell asked for; None gives it cores // jobs, at least one.

    Returns:
        A number for every library that starts threads. One that the user set lower is left, and
        `OMP_NUM_THREADS` bounds the others too: a library with more threads than its neighbor spins.
    """
    share = max(_cores() // jobs, 1) if cpus is None else cpus
    given = {name: int(text) for name in THREAD_VARIABLES if (text := os.environ.get(name, "")).isdigit()}
    bound = min(share, given.get("OMP_NUM_THREADS") or share)
    return {name: str(min(bound, given.get(name) or bound)) for name in THREAD_VARIABLES}


def _cores() -> int:
    """The processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalExecutor:
    """Runs cells in processes on this machine.

    Args:
        jobs: Cells at a time; 1 when None, and still in a process of its own.
        resources: `cpus` is how many threads a cell may use, `memory_mb` what must be available before
            one begins beside others; without it the largest peak of a cell so far is taken. Accelerators
            are shared by all cells as they come.
        seconds_to_stop: How long an interrupted cell may take to close its environment.

    Raises:
        ConfigError: If `jobs` is less than 1.
    """

    def __init__(
        self,
        *,
        jobs: int | None = None,
        resources: Resources = Resources(),  # noqa: B008 - frozen
        seconds_to_stop: float = SECONDS_TO_STOP,
    ) -> None:
        if jobs is not None and jobs < 1:
            raise ConfigError.at("executor.jobs", f"{jobs!r} cells at a time run nothing; give at least 1")
        self._jobs, self._resources, self._seconds_to_stop = jobs or 1, resources, seconds_to_stop

    def run(self, cells: Sequence[Cell], tell: Tell) -> None:
        """Run every cell once; see `skyfall_core.executors.base.Executor.run`."""
        jobs = max(min(self._jobs, len(cells)), 1)
        with _pool(cells, jobs, self._resources, tell) as pool:
            try:
                pool.work()
            except KeyboardInterrupt:
                pool.stop(self._seconds_to_stop)
                raise


@contextlib.contextmanager
def _pool(cells: Sequence[Cell], jobs: int, resources: Resources, tell: Tell) -> Iterator[_Pool]:
    pool = _Pool(cells, jobs, resources, tell)
    try:
        yield pool
    finally:
        pool.close()


class _Pool:
    """The workers of one sweep, and the cells that wait for one."""

    def __init__(self, cells: Sequence[Cell], jobs: int, resources: Resources, tell: Tell) -> None:
        self._waiting, self._jobs, self._tell = deque(cells), jobs, tell
        self._needs_mb, self._largest_mb = resources.memory_mb, LEAST_MB
        self._environment = {**os.environ, **thread_budget(jobs, resources.cpus)}
        self._workers: list[Worker] = []
        self._selector = selectors.DefaultSelector()
        self._told_to_wait = False

    @property
    def _busy(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.cell is not None]

    def work(self) -> None:
        """Run until no cell is left."""
        while self._waiting or self._busy:
            while self._waiting and self._may_begin():
                self._begin(self._waiting.popleft())
            self._listen()

    def stop(self, seconds: float) -> None:
        """Ask every running cell to stop at its window's end, then at once, which may take `seconds`.

        A further interruption goes on to the next of the two.
        """
        for limit in (SECONDS_TO_CHECKPOINT, seconds):
            deadline = time.monotonic() + limit
            with contextlib.suppress(KeyboardInterrupt):  # asked again: no longer so patiently
                for worker in self._busy:
                    worker.interrupt()
                while self._busy and time.monotonic() < deadline:
                    self._listen()

    def close(self) -> None:
        """Leave no process behind."""
        for worker in self._workers:
            cell = worker.cell
            worker.kill()
            if cell is not None:
                error = "killed, because it did not stop in time; steps since its checkpoint are taken again"
                self._tell(CellOutcome(cell.name, CellStatus.INTERRUPTED, worker.steps, error=error))
        self._selector.close()

    def _may_begin(self) -> bool:
        busy = self._busy
        if not busy:
            return True
        if len(busy) >= self._jobs:
            return False
        free = available_mb()
        needs = self._largest_mb if self._needs_mb is None else self._needs_mb
        reserved = sum(max(needs - worker.memory_mb, 0) for worker in busy)
        if free is None or free - reserved >= needs:
            return True
        if not self._told_to_wait:
            self._told_to_wait = True
            available = f"{free:,} MiB are available, {reserved:,} MiB of them reserved for running cells"
            self._tell(Remark(f"memory is short: a cell needs {needs:,} MiB and {available}; waiting"))
        return False

    def _begin(self, cell: Cell) -> None:
        worker = next((worker for worker in self._workers if worker.cell is None), None)
        if worker is None:
            worker = Worker(self._environment)
            self._workers.append(worker)
            for stream in worker.streams:
                self._selector.register(stream, selectors.EVENT_READ, worker)
        self._tell(CellBegan(cell.name))
        worker.begin(cell)

    def _listen(self) -> None:
        """Take in what the workers say, and see whether one is gone."""
        for key, _ in self._selector.select(SECONDS_BETWEEN_LOOKS):
            worker: Worker = key.data
            for event in worker.read(key.fd):
                self._tell(event)
        for worker in list(self._workers):
            self._largest_mb = max(self._largest_mb, worker.memory_mb)
            if worker.gone:
                for stream in worker.streams:
                    self._selector.unregister(stream)
                self._workers.remove(worker)
                for event in worker.last_words():
                    self._tell(event)
                worker.kill()
