"""Cells as a SLURM job array, through submitit.

One array holds all cells, `jobs` of them at a time; the scheduler decides when each begins. A cell
whose time runs out is put back into the queue and goes on from its checkpoint. The sweep's command
waits and tells how cells end; interrupting it cancels the jobs, which close their environments. The
cells' directories must be reachable under the same path on every node.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from skyfall_core.errors import ConfigError
from skyfall_core.executors.base import (
    Cell,
    CellBegan,
    CellOutcome,
    CellStatus,
    Remark,
    Resources,
    Tell,
    needed,
)
from skyfall_core.executors.local import THREAD_VARIABLES
from skyfall_core.executors.worker import SECONDS_TO_STOP

__all__ = ["Cluster", "SlurmCell", "SlurmExecutor"]

FOLDER = "jobs"
"""Where the jobs' own files go, inside the sweep's directory; no cell can have that name."""

SECONDS_BETWEEN_LOOKS = 1.0
"""How often the jobs are looked at."""


class Cluster(str, Enum):
    """Where submitit takes the jobs: to SLURM, to processes of this machine, or into this process."""

    SLURM = "slurm"
    LOCAL = "local"
    DEBUG = "debug"


class SlurmCell:
    """What a job calls: one cell.

    Args:
        cell: What to run.
        threads: For its linear algebra.
    """

    def __init__(self, cell: Cell, threads: int) -> None:
        self._cell, self._threads = cell, threads
        self._requeued = False

    def __call__(self) -> CellOutcome:
        """Run it; NumPy is loaded only now, with the threads the cell has."""
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(self._threads)))
        from skyfall_core.executors.cell import run_cell, stoppable  # noqa: PLC0415

        with stoppable() as should_stop:
            outcome = run_cell(self._cell, should_stop=should_stop)
        if self._requeued:  # how submitit ends a job that is to begin again
            sys.exit(-1)
        return outcome

    def checkpoint(self) -> Any:
        """What submitit puts back into the queue when the job's time runs out."""
        self._requeued = True
        submitit = needed("submitit", "slurm", "slurm")
        cell = dataclasses.replace(self._cell, mode="resume")
        return submitit.helpers.DelayedSubmission(SlurmCell(cell, self._threads))


class SlurmExecutor:
    """Runs cells as one job array.

    Args:
        output_dir: The sweep's directory; the jobs' files go into `jobs` in it.
        cluster: `slurm`; `local` and `debug` try a document out on a machine without it.
        minutes: Time limit of one job.
        options: Further options of `sbatch`, such as `{partition: gpu, account: lab}`.
        jobs: Cells at a time at most; None leaves it to the scheduler.
        resources: What one job asks for.
        seconds_to_stop: How long an interrupted cell may take to close its environment.

    Raises:
        MissingExtraError: If submitit is not installed.
        ConfigError: If there is no SLURM here, or it cannot be asked for these resources.
    """

    def __init__(
        self,
        *,
        output_dir: Path,
        cluster: str = Cluster.SLURM.value,
        minutes: int = 60,
        options: Mapping[str, Any] | None = None,
        jobs: int | None = None,
        resources: Resources = Resources(),  # noqa: B008 - frozen
        seconds_to_stop: float = SECONDS_TO_STOP,
    ) -> None:
        submitit = needed("submitit", "slurm", "slurm")
        known = [kind.value for kind in Cluster]
        if cluster not in known:
            raise ConfigError.at(
                "executor.params.cluster", f"{cluster!r} is none of {', '.join(map(repr, known))}"
            )
        if resources.gpus != int(resources.gpus):
            problem = f"{resources.gpus!r} accelerators; SLURM gives whole ones"
            raise ConfigError.at("executor.resources.gpus", f"{problem}, so give an integer")
        self._threads, self._seconds_to_stop = resources.cpus or 1, seconds_to_stop
        try:
            self._submitit = submitit.AutoExecutor(folder=output_dir / FOLDER, cluster=cluster)
            self._submitit.update_parameters(**_parameters(resources, minutes, jobs, options or {}))
        except RuntimeError as error:
            problem = f"{error}; run this on a login node, or give cluster: local"
            raise ConfigError.at("executor.params.cluster", f"{problem}") from None
        except (NameError, TypeError, ValueError) as error:
            raise ConfigError.at("executor.params", f"submitit refuses them: {error}") from None

    def run(self, cells: Sequence[Cell], tell: Tell) -> None:
        """Run every cell once; see `skyfall_core.executors.base.Executor.run`."""
        with self._submitit.batch():
            submitted = [self._submitit.submit(SlurmCell(cell, self._threads)) for cell in cells]
        tell(
            Remark(f"submitted {len(cells)} jobs: {', '.join(str(job.job_id) for job in submitted[:3])} ...")
        )
        jobs = _Jobs(cells, submitted, tell)
        try:
            while jobs.left:
                jobs.look()
        except KeyboardInterrupt:
            jobs.cancel(self._seconds_to_stop)
            raise


class _Jobs:
    """Jobs that were submitted, and the cells they run."""

    def __init__(self, cells: Sequence[Cell], submitted: Sequence[Any], tell: Tell) -> None:
        self.left = dict(enumerate(zip(cells, submitted, strict=True)))
        self._tell = tell
        self._began: dict[int, float] = {}

    def look(self) -> None:
        """Tell which jobs have begun and which have ended."""
        for number, (cell, job) in list(self.left.items()):
            ended = job.done()
            if number not in self._began and (ended or job.state == "RUNNING"):
                self._began[number] = time.monotonic()
                self._tell(CellBegan(cell.name))
            if ended:
                del self.left[number]
                self._tell(_outcome(cell, job))
        if self.left:
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def cancel(self, seconds: float) -> None:
        """Cancel every job, and wait for those that run to say how they ended."""
        for _, job in self.left.values():
            job.cancel(check=False)
        for number in list(self.left):
            if number not in self._began:
                del self.left[number]
        deadline = time.monotonic() + seconds
        while self.left and time.monotonic() < deadline:
            self.look()
        for cell, _ in self.left.values():
            error = "cancelled, and its job has not said how it ended"
            self._tell(CellOutcome(cell.name, CellStatus.INTERRUPTED, error=error))


def _outcome(cell: Cell, job: Any) -> CellOutcome:
    """A job's result, or what its end says about a cell that left none."""
    failure = job.exception()
    if failure is None:
        outcome: CellOutcome = job.result()
        return outcome
    state = str(job.state)
    if state.startswith("CANCELLED"):
        return CellOutcome(cell.name, CellStatus.INTERRUPTED)
    error = f"its job {job.job_id} ended as {state}"
    if state.startswith("OUT_OF_ME"):
        error = f"killed by SLURM, because memory ran out (job {job.job_id})"
        error += "; give executor.resources.memory_mb what a cell needs"
    return CellOutcome(
        cell.name, CellStatus.FAILED, error=f"{error}; see {job.paths.stderr}", detail=str(failure)
    )


def _parameters(
    resources: Resources, minutes: int, jobs: int | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """What submitit is asked for, in its own words."""
    parameters: dict[str, Any] = {
        "name": "skyfall",
        "timeout_min": minutes,
        "cpus_per_task": resources.cpus or 1,
        "gpus_per_node": int(resources.gpus),
    }
    if resources.memory_mb is not None:
        parameters["mem_gb"] = resources.memory_mb / 1024
    if jobs is not None:
        parameters["slurm_array_parallelism"] = jobs
    return parameters | {f"slurm_{name}": value for name, value in options.items()}
