"""Reading and scoring many traces, on several processors where it pays."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from skyfall_metrics.errors import ParameterError, ScoringFailedError
from skyfall_metrics.parameters import Parameters
from skyfall_metrics.reader import DamagedLines, read_trace
from skyfall_metrics.rows import Keys
from skyfall_metrics.scorecard import Scorecard
from skyfall_metrics.scoring import score

__all__ = ["Job", "score_files", "worthwhile_jobs"]

_BYTES_PER_PROCESS = 48 << 20
"""A further process pays for its start from about this much text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """How every trace of a batch is read and scored."""

    parameters: Parameters = field(default_factory=Parameters)
    keys: Keys = field(default_factory=Keys)
    damaged_lines: DamagedLines = DamagedLines.STOP


def score_files(paths: Sequence[Path], job: Job, *, jobs: int = 1) -> Iterator[Scorecard]:
    """The scorecard of each trace, in the order of `paths`, as they are done.

    Args:
        paths: Traces.
        job: How to read and score them.
        jobs: Processes; with more than one, a script needs the usual `if __name__ == "__main__":`.

    Raises:
        MetricsError: At the first trace that cannot be read or scored.
        ScoringFailedError: A worker process died.
    """
    if jobs < 1:
        raise ParameterError(f"jobs is {jobs!r}: expected at least 1 process")
    work = partial(_score_file, job=job)
    if jobs == 1 or len(paths) < 2:
        yield from map(work, paths)
        return
    jobs = min(jobs, len(paths))
    try:
        with ProcessPoolExecutor(
            jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_end_when_interrupted
        ) as pool:
            with _interrupts_ignored():
                cards = pool.map(work, paths, chunksize=max(1, len(paths) // (8 * jobs)))
            yield from cards
    except BrokenProcessPool:
        raise ScoringFailedError("a worker process died, perhaps for lack of memory; try --jobs 1") from None


def worthwhile_jobs(paths: Sequence[Path]) -> int:
    """How many processes pay for themselves: one for little text, at most one a processor."""
    text = sum(path.stat().st_size for path in paths if path.exists())
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(processors, len(paths), text // _BYTES_PER_PROCESS))


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Start processes deaf to Ctrl-C, so that one that is still importing does not print a traceback."""
    if threading.current_thread() is not threading.main_thread():  # only there can signals be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_when_interrupted() -> None:
    """Let Ctrl-C end this process without a word; the one that started it tells the user."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _score_file(path: Path, job: Job) -> Scorecard:
    trace = read_trace(path, keys=job.keys, damaged_lines=job.damaged_lines)
    return score(trace, job.parameters)
