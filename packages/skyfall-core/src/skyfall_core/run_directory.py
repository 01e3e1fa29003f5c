"""What a run leaves in its directory, and what it finds there.

config.yaml        the document with everything filled in
environment.json   versions, platform, git revision and seeds; no variable, host name or secret
spaces.json        the observation and the action space
traces.jsonl       every step
windows.jsonl      every update
checkpoints/       where the run can go on from
scorecard.json     the six metrics, where skyfall-metrics is installed
result.json        written last, so that its presence means that the run is finished
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from skyfall_core import plugins
from skyfall_core.atomic import write_whole
from skyfall_core.config import ExperimentConfig
from skyfall_core.errors import ConfigError, TraceError
from skyfall_core.plugins import Group
from skyfall_core.provenance import ENVIRONMENT_FILE, environment_json
from skyfall_core.trace import TRACE_FILE, plain

__all__ = [
    "CONFIG_FILE",
    "ENVIRONMENT_FILE",
    "RESULT_FILE",
    "SCORECARD_FILE",
    "SPACES_FILE",
    "WINDOWS_FILE",
    "Result",
    "RunState",
    "check_document",
    "cut_back",
    "forget_results",
    "read_result",
    "read_windows",
    "run_state",
    "trace_path_for",
    "window_line",
    "write_document",
    "write_environment",
    "write_result",
    "write_scorecard",
    "write_spaces",
]

CONFIG_FILE = "config.yaml"
"""Name of the resolved document inside a run's directory."""

RESULT_FILE = "result.json"
"""Name of the file that is written when a run is finished."""

SCORECARD_FILE = "scorecard.json"
"""Name of the file that holds the metrics."""

SCORER = "scorecard"
"""Name of the scorer, of the group `skyfall.scorers`, whose result is the scorecard."""

SPACES_FILE = "spaces.json"
"""Name of the file that holds the observation and action space."""

WINDOWS_FILE = "windows.jsonl"
"""Name of the file with one line an update."""

RESOLVED = "# Written by a run: its document with everything filled in.\n"
"""The resolved document's first line, by which a run knows that it may be replaced."""

_log = logging.getLogger(__name__)


class RunState(str, Enum):
    """How far the run that a document describes is."""

    ABSENT = "absent"
    UNFINISHED = "unfinished"
    FINISHED = "finished"


class Result(msgspec.Struct):
    """What a finished run wrote about itself; `config` is its document."""

    steps: int
    regimes: list[str]
    provenance: dict[str, Any]
    config: dict[str, Any]


class _Steps(msgspec.Struct):
    steps: int


def trace_path_for(config: ExperimentConfig) -> Path | None:
    """Where the run's trace belongs, or None when the document names no `output_dir`."""
    if config.run.output_dir is None:
        return None
    return config.run.output_dir / str(config.run.name) / TRACE_FILE


def run_state(config: ExperimentConfig) -> RunState:
    """How far the run is, from one small file. A run whose budget was raised since is unfinished."""
    trace = trace_path_for(config)
    if trace is None:
        return RunState.ABSENT
    try:
        done = msgspec.json.decode(trace.with_name(RESULT_FILE).read_bytes(), type=_Steps)
    except (OSError, msgspec.MsgspecError):
        return RunState.UNFINISHED if trace.exists() else RunState.ABSENT
    return RunState.FINISHED if done.steps >= config.rollout.total_steps else RunState.UNFINISHED


def check_document(trace: Path) -> None:
    """Make sure that the resolved document will replace nobody's own file.

    Raises:
        ConfigError: If it would.
    """
    document, mark = trace.with_name(CONFIG_FILE), RESOLVED.encode()
    if not document.exists():
        return
    with document.open("rb") as file:
        begin = file.read(len(mark))
    if not mark.startswith(begin):  # a run that was killed or had no room left a part of the mark
        problem = f"{document} was written by no run and would be replaced by the resolved document"
        raise ConfigError(f"run.output_dir: {problem}; rename it, or choose another run.name or output_dir")


def write_document(trace: Path, config: ExperimentConfig) -> None:
    """Write the resolved document beside the trace.

    Raises:
        TraceError: If it cannot be written.
    """
    document = trace.with_name(CONFIG_FILE)
    try:
        document.write_text(RESOLVED + config.to_yaml(), encoding="utf-8")
    except OSError as error:
        if not trace.stat().st_size:  # begun for this run, which cannot begin
            trace.unlink()
        problem = f"{document}: cannot be written: {error.strerror}"
        raise TraceError(f"{problem}; choose another output_dir") from error


def write_environment(trace: Path, config: ExperimentConfig) -> None:
    """Write what the run runs on beside its trace.

    Raises:
        TraceError: If it cannot be written.
    """
    _write(trace.with_name(ENVIRONMENT_FILE), environment_json(config))


def write_spaces(trace: Path, content: bytes) -> None:
    """Write the spaces beside the trace, so that a finished run is exported without its environment.

    Raises:
        TraceError: If they cannot be written.
    """
    _write(trace.with_name(SPACES_FILE), content)


def write_result(trace: Path, result: Result) -> None:
    """Say that the run is finished; nothing is written after this.

    Raises:
        TraceError: If it cannot be written.
    """
    _write(trace.with_name(RESULT_FILE), msgspec.json.encode(result, enc_hook=_plain_or_text) + b"\n")


def read_result(trace: Path) -> tuple[Result, list[dict[str, float]]]:
    """What a finished run wrote, and what each of its updates reported.

    Raises:
        TraceError: If a file is missing or damaged.
    """
    path = trace.with_name(RESULT_FILE)
    try:
        result = msgspec.json.decode(path.read_bytes(), type=Result)
    except (OSError, msgspec.MsgspecError) as error:
        raise TraceError(f"{path}: cannot be read ({error}); run again with --overwrite") from error
    return result, read_windows(trace.with_name(WINDOWS_FILE))


def read_windows(path: Path) -> list[dict[str, float]]:
    """What each update reported, in order; null is NaN.

    Raises:
        TraceError: If the file is missing or damaged.
    """
    try:
        reported = [json.loads(line)["metrics"] for line in path.read_bytes().splitlines()]
        return [
            {name: float("nan") if value is None else value for name, value in metrics.items()}
            for metrics in reported
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(f"{path}: cannot be read ({error}); run again with --overwrite") from error


def cut_back(path: Path, length: int) -> None:
    """Take from a record what lies behind `length` bytes.

    Raises:
        TraceError: If the system refuses.
    """
    try:
        if length or path.exists():
            os.truncate(path, length)
    except OSError as error:
        raise TraceError(f"{path}: cannot be cut back: {error.strerror}") from error


def write_scorecard(trace: Path) -> None:
    """Write what the scorer called `scorecard` makes of the trace; without one, nothing is written.

    A scorer takes the trace's path and returns a mapping. A trace that cannot be scored is said and stops
    nothing: the trace is what counts.
    """
    if SCORER not in plugins.catalogue(Group.SCORERS):
        return
    try:
        card = plugins.load(plugins.find(Group.SCORERS, SCORER))(trace)
        content = json.dumps(card, indent=2, allow_nan=False, default=str)
        _write(trace.with_name(SCORECARD_FILE), content.encode() + b"\n")
    except Exception as error:  # noqa: BLE001 - foreign code, after the run
        _log.warning("no scorecard.json: %s: %s", type(error).__name__, error)


def _plain_or_text(value: Any) -> Any:
    try:
        return plain(value)
    except TypeError:
        return str(value)


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror}") from error


def forget_results(trace: Path) -> None:
    """Remove what an earlier run said at its end, because another one begins."""
    for name in (RESULT_FILE, SCORECARD_FILE):
        trace.with_name(name).unlink(missing_ok=True)


def window_line(report: Mapping[str, Any]) -> bytes:
    """One line of `windows.jsonl`; a number that is not finite becomes null."""
    return msgspec.json.encode(report, enc_hook=_plain_or_text) + b"\n"
