"""How far a run's record is, seen from outside: the last row of its trace says so."""

from __future__ import annotations

import os
from enum import Enum

import msgspec

from skyfall_core.config import ExperimentConfig
from skyfall_core.trace import TRACE_FILE

__all__ = ["RunState", "run_state"]

_FIRST_LOOK = 1 << 13


class RunState(str, Enum):
    """How far a run's record is."""

    ABSENT = "absent"
    UNFINISHED = "unfinished"
    FINISHED = "finished"


class _Row(msgspec.Struct):
    step: int


_decoder = msgspec.json.Decoder(_Row)


def run_state(config: ExperimentConfig) -> RunState:
    """Whether a run is recorded to its step budget, in part, or not at all.

    Raises:
        OSError: If the trace is there and cannot be read.
    """
    if config.run.output_dir is None:
        return RunState.ABSENT
    try:
        file = open(f"{config.run.output_dir}{os.sep}{config.run.name}{os.sep}{TRACE_FILE}", "rb")  # noqa: PTH123, SIM115 - for thousands
    except (FileNotFoundError, NotADirectoryError):
        return RunState.ABSENT
    with file:
        line = _last_line(file.fileno())
    try:
        step = _decoder.decode(line).step
    except msgspec.DecodeError:  # empty, torn or damaged: not to its end
        return RunState.UNFINISHED
    return RunState.FINISHED if step >= config.rollout.total_steps - 1 else RunState.UNFINISHED


def _last_line(descriptor: int) -> bytes:
    """The last line of a file, without its end; empty where it has none."""
    size, look = os.fstat(descriptor).st_size, _FIRST_LOOK
    while True:
        block = os.pread(descriptor, look, max(size - look, 0))
        if not block.endswith(b"\n"):
            return b""
        start = block.rfind(b"\n", 0, -1)
        if start >= 0 or look >= size:
            return block[start + 1 : -1]
        look *= 8
