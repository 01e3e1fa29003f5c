"""Threads that run one batch of calls at a time, with less overhead per call than an executor.

`concurrent.futures` pays for a future with its own condition per call, which for cheap worlds costs
more than the step. A batch here shares one lock and one countdown.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Crew"]


class _Batch:
    """One fan-out: the call, where its outcomes go, and the lock that opens when all are in."""

    __slots__ = ("call", "done", "failures", "guard", "left", "results")

    def __init__(self, call: Callable[[int], Any], count: int) -> None:
        self.call = call
        self.results: dict[int, Any] = {}
        self.failures: dict[int, BaseException] = {}
        self.left = count
        self.guard = threading.Lock()
        self.done = threading.Lock()
        if count:
            self.done.acquire()

    def run(self, index: int) -> None:
        try:
            self.results[index] = self.call(index)
        except BaseException as error:  # noqa: BLE001  # handed to the thread that asked
            self.failures[index] = error
        with self.guard:
            self.left -= 1
            if not self.left:
                self.done.release()

    def wait(self) -> None:
        with self.done:
            pass


class Crew:
    """A fixed number of threads, started with the first batch.

    Args:
        size: How many calls may run at the same time.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: SimpleQueue[tuple[_Batch, int] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._latest = _Batch(lambda index: index, 0)

    def run(
        self, call: Callable[[int], Any], indices: Sequence[int]
    ) -> tuple[dict[int, Any], dict[int, Exception]]:
        """Run `call(index)` for every index at once, and wait for all of them.

        A batch that an interrupt left in flight is waited for first, so batches never overlap.

        Returns:
            Results and exceptions by index, each in the order of `indices`.

        Raises:
            BaseException: What a call raised that is no `Exception`; it belongs to the caller.
        """
        self._latest.wait()
        self._start()
        batch = self._latest = _Batch(call, len(indices))
        for index in indices:
            self._jobs.put((batch, index))
        batch.wait()
        failures: dict[int, Exception] = {}
        for index in sorted(batch.failures):
            error = batch.failures[index]
            if not isinstance(error, Exception):
                raise error
            failures[index] = error
        return {index: batch.results[index] for index in indices if index in batch.results}, failures

    def dismiss(self) -> None:
        """End the threads once their work is done; a later `run` starts new ones."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _start(self) -> None:
        if self._threads:
            return
        # Daemons: a program that forgets to close must still be able to end.
        self._threads = [
            threading.Thread(target=self._work, name=f"world-{number}", daemon=True)
            for number in range(self._size)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch, index = job
            batch.run(index)
            del batch, job  # a waiting thread must not keep the last batch's observations alive
