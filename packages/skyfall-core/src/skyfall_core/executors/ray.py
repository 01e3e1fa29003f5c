"""Cells as Ray tasks: on a cluster that is there, or on a Ray instance started for the sweep.

Ray decides where a cell runs; `executor.resources` is what it is told that one takes. Every cell gets
a process of its own with as many threads as it has cores. The cells' directories must be reachable
under the same path on every machine.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skyfall_core.errors import ConfigError
from skyfall_core.executors.base import (
    Cell,
    CellBegan,
    CellOutcome,
    CellProgress,
    CellStatus,
    Resources,
    Tell,
    needed,
)
from skyfall_core.executors.local import SECONDS_TO_CHECKPOINT, THREAD_VARIABLES
from skyfall_core.executors.worker import SECONDS_TO_STOP

__all__ = ["RayExecutor"]

SECONDS_BETWEEN_LOOKS = 0.5
"""How often the board with the cells' progress is read."""

SECONDS_TO_CONNECT = 5.0
"""How long a cluster may take to answer."""


class RayExecutor:
    """Runs cells as Ray tasks.

    Args:
        address: `host:port` of a cluster's head, `auto` for the one this machine belongs to, or None:
            the one that `RAY_ADDRESS` names, else an instance started here and stopped afterwards. A
            process that is connected already stays so.
        jobs: Cells at a time at most; None leaves it to the resources.
        resources: What Ray is told one cell takes; a core where `cpus` is not given.
        seconds_to_stop: How long an interrupted cell may take to close its environment.

    Raises:
        MissingExtraError: If Ray is not installed.
        ConfigError: If no cluster answers at `address`.
    """

    def __init__(
        self,
        *,
        address: str | None = None,
        jobs: int | None = None,
        resources: Resources = Resources(),  # noqa: B008 - frozen
        seconds_to_stop: float = SECONDS_TO_STOP,
    ) -> None:
        self._ray = needed("ray", "ray", "ray")
        self._address, self._jobs, self._resources = address, jobs, resources
        self._seconds_to_stop = seconds_to_stop
        if address is not None and not self._ray.is_initialized():
            _check_answers(address)

    def run(self, cells: Sequence[Cell], tell: Tell) -> None:
        """Run every cell once; see `skyfall_core.executors.base.Executor.run`."""
        with self._connected():
            self._check_fits()
            tasks = _Tasks(self._ray, cells, self._jobs, self._resources, tell)
            try:
                tasks.work()
            except KeyboardInterrupt:
                tasks.stop(self._seconds_to_stop)
                raise
            finally:
                tasks.close()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        if self._ray.is_initialized():
            yield
            return
        try:
            self._ray.init(address=self._address, include_dashboard=False, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _no_cluster(self._address, str(error)) from error
        try:
            yield
        finally:
            self._ray.shutdown()

    def _check_fits(self) -> None:
        """Refuse what no machine of the cluster could ever run, which Ray would wait for forever."""
        asked = {"CPU": self._resources.cpus or 1, "GPU": self._resources.gpus}
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(all(node.get(kind, 0) >= count for kind, count in asked.items()) for node in nodes):
            has = {kind: max((node.get(kind, 0) for node in nodes), default=0) for kind in asked}
            problem = f"a cell takes {_listed(asked)}, and the largest machine has {_listed(has)}"
            raise ConfigError.at("executor.resources", f"{problem}; ask for less, or add such a machine")


class _Tasks:
    """The cells of one sweep as tasks, and those that wait for their turn."""

    def __init__(
        self, ray: Any, cells: Sequence[Cell], jobs: int | None, resources: Resources, tell: Tell
    ) -> None:
        self._ray, self._waiting, self._tell = ray, deque(cells), tell
        self._at_most = jobs or len(cells)
        self._running: dict[Any, tuple[Cell, float]] = {}
        self._steps: dict[str, int] = {}
        cpus = resources.cpus or 1
        threads = {"env_vars": dict.fromkeys(THREAD_VARIABLES, str(cpus))}
        options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": resources.gpus, "runtime_env": threads}
        if resources.memory_mb is not None:
            options["memory"] = resources.memory_mb * 1024 * 1024
        # one process a cell: what one leaves behind in it reaches no other
        self._task = ray.remote(max_calls=1, max_retries=0, **options)(_run_task)
        self._board = ray.remote(num_cpus=0)(_Board).remote()

    def work(self) -> None:
        """Run until no cell is left."""
        while self._waiting or self._running:
            while self._waiting and len(self._running) < self._at_most:
                cell = self._waiting.popleft()
                self._running[self._task.remote(cell, self._board)] = (cell, time.monotonic())
            self._listen()

    def stop(self, seconds: float) -> None:
        """Ask every running cell to stop at its window's end, then at once, which may take `seconds`."""
        for limit in (SECONDS_TO_CHECKPOINT, seconds):
            deadline = time.monotonic() + limit
            with contextlib.suppress(KeyboardInterrupt):  # asked again: no longer so patiently
                for reference in self._running:
                    self._ray.cancel(reference, force=False)
                while self._running and time.monotonic() < deadline:
                    self._listen()

    def close(self) -> None:
        """Leave no task behind."""
        for reference, (cell, _) in self._running.items():
            self._ray.cancel(reference, force=True)
            error = "killed, because it did not stop in time; steps since its checkpoint are taken again"
            self._tell(
                CellOutcome(cell.name, CellStatus.INTERRUPTED, self._steps.get(cell.name, 0), error=error)
            )
        self._ray.kill(self._board)

    def _listen(self) -> None:
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=SECONDS_BETWEEN_LOOKS)
        for event in self._ray.get(self._board.take.remote()):
            if isinstance(event, CellProgress):
                self._steps[event.name] = event.steps
            self._tell(event)
        for reference in done:
            cell, began = self._running.pop(reference)
            self._tell(self._outcome(reference, cell, time.monotonic() - began))

    def _outcome(self, reference: Any, cell: Cell, seconds: float) -> CellOutcome:
        errors = self._ray.exceptions
        steps = self._steps.get(cell.name, 0)
        try:
            outcome: CellOutcome = self._ray.get(reference)
        except errors.TaskCancelledError:
            return CellOutcome(cell.name, CellStatus.INTERRUPTED, steps, seconds)
        except errors.OutOfMemoryError as error:
            remedy = "give fewer --jobs, or executor.resources.memory_mb what a cell needs"
            problem = f"killed by Ray, because memory ran out; {remedy}"
            return CellOutcome(cell.name, CellStatus.FAILED, steps, seconds, problem, str(error))
        except errors.WorkerCrashedError as error:
            problem = "its process crashed or was killed, as the system does when memory runs out"
            return CellOutcome(cell.name, CellStatus.FAILED, steps, seconds, problem, str(error))
        except errors.RayError as error:
            problem = f"Ray could not run it: {type(error).__name__}"
            return CellOutcome(cell.name, CellStatus.FAILED, steps, seconds, problem, str(error))
        return outcome


class _Board:
    """Where the cells, wherever they are, write down how far they are."""

    def __init__(self) -> None:
        self._events: dict[tuple[type, str], CellBegan | CellProgress] = {}

    def put(self, event: CellBegan | CellProgress) -> None:
        """Keep the latest of each kind and cell."""
        self._events[type(event), event.name] = event

    def take(self) -> list[CellBegan | CellProgress]:
        """What has been put since the last time."""
        events, self._events = list(self._events.values()), {}
        return events


def _run_task(cell: Cell, board: Any) -> CellOutcome:
    """One cell, in a Ray worker."""
    from skyfall_core.executors.cell import run_cell, stoppable  # noqa: PLC0415 - after the threads are set

    board.put.remote(CellBegan(cell.name))
    with stoppable() as should_stop:
        return run_cell(cell, board.put.remote, should_stop)


def _check_answers(address: str) -> None:
    """See whether anything listens at `address`, before Ray tries for a minute."""
    if address in {"auto", "local"}:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        problem = f"{address!r} is not of the form 'host:port'"
        raise ConfigError.at("executor.params.address", f"{problem}; it is what 'ray start --head' prints")
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, getattr(error, "strerror", None) or str(error)) from None


def _no_cluster(address: str | None, why: str) -> ConfigError:
    where = address or os.environ.get("RAY_ADDRESS") or "this machine"
    remedy = "start one with 'ray start --head', or leave the address out for one on this machine"
    return ConfigError.at("executor.params.address", f"no Ray cluster answers at {where!r}: {why}; {remedy}")


def _listed(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{count:g} {kind}" for kind, count in counts.items())
