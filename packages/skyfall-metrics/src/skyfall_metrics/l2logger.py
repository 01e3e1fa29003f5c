"""Logs of l2logger as traces, so that runs recorded for L2M metrics can be scored here.

l2logger writes a directory a run: `scenario/worker/NUMBER-TYPE/data-log.tsv`, a row an experience (usually
an episode), and `logger_info.json` with the names of the metric columns. Here an experience becomes a row, a
worker a world, and a task with its parameters a configuration. Evaluation (`test`) blocks are no part of the
agent's life unless asked for; training blocks of one task that only an evaluation parted are one segment.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from skyfall_metrics.errors import TraceError, suggestion
from skyfall_metrics.rows import TRACE_VERSION

__all__ = ["Blocks", "convert_l2logger"]

_LOG_NAME = "data-log.tsv"


class Blocks(str, Enum):
    """Which of a log's blocks become rows."""

    TRAIN = "train"
    TEST = "test"
    ALL = "all"


def convert_l2logger(
    directory: Path,
    output: Path,
    *,
    metric: str | None = None,
    blocks: Blocks = Blocks.TRAIN,
    metadata: Mapping[str, Any] | None = None,
) -> int:
    """Write one l2logger run as a trace.

    An experience that is marked incomplete, or whose metric is empty or not finite, gets a missing reward.

    Args:
        directory: The scenario's directory, with `logger_info.json`.
        output: The trace to write; nothing may be there yet.
        metric: The column that becomes the reward; None takes `reward`, or the only column there is.
        blocks: Which blocks to take.
        metadata: `algorithm_id`, `task`, `seed`; the directory's name is the `run_id`.

    Returns:
        How many rows were written.

    Raises:
        TraceError: The directory is no l2logger run, has no such metric, or `output` exists.
    """
    column = _metric_column(directory, metric)
    run = {"trace_version": TRACE_VERSION, "run_id": directory.resolve().name, **(metadata or {})}
    encode = msgspec.json.Encoder().encode
    rows = _rows(directory, column, blocks)
    first = next(rows, None)
    if first is None:
        raise TraceError(f"no {_LOG_NAME} with rows of {blocks.value!r} blocks", path=directory)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        return _write(output, (encode(run | row) for row in chain([first], rows)))
    except FileExistsError:
        raise TraceError("exists already; remove it or name another file", path=output) from None
    except OSError as error:
        raise TraceError(f"cannot write: {error.strerror}", path=output) from None


def _write(output: Path, lines: Iterable[bytes]) -> int:
    """Write lines to a new file; nothing stays of one that could not be finished."""
    with output.open("xb") as file, ExitStack() as undo:
        undo.callback(output.unlink)
        count = 0
        for line in lines:
            file.write(line + b"\n")
            count += 1
        undo.pop_all()
    return count


def _metric_column(directory: Path, metric: str | None) -> str:
    info = directory / "logger_info.json"
    try:
        found = json.loads(info.read_text(encoding="utf-8"))["metrics_columns"]
        columns = msgspec.convert(found, list[str])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # a ValidationError is a ValueError
        raise TraceError(
            "no l2logger run: logger_info.json with 'metrics_columns' is not there or not readable",
            path=directory,
        ) from None
    if metric is None:
        metric = "reward" if "reward" in columns or len(columns) != 1 else columns[0]
    if metric not in columns:
        raise TraceError(f"no metric {metric!r} ({suggestion(metric, columns)}); name one", path=info)
    return metric


def _rows(directory: Path, column: str, blocks: Blocks) -> Iterator[dict[str, Any]]:
    """Rows of all workers, each worker's in the order of its blocks."""
    workers = sorted({log.parent.parent for log in directory.glob(f"*/*/{_LOG_NAME}")})
    for worker in workers:
        step = 0
        for log in sorted(worker.glob(f"*/{_LOG_NAME}"), key=_block_order):
            if blocks is not Blocks.ALL and not log.parent.name.endswith(f"-{blocks.value}"):
                continue
            for row in _log_rows(log, column):
                world = {"world": worker.name} if len(workers) > 1 else {}
                yield {"step": step, **world, **row}
                step += 1


def _block_order(log: Path) -> tuple[int, str]:
    number, _, kind = log.parent.name.partition("-")
    return (int(number) if number.isdigit() else -1, kind)


def _log_rows(log: Path, column: str) -> Iterator[dict[str, Any]]:
    try:
        with log.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file, delimiter="\t"), start=2):
                if row.get(column) is None or row.get("task_name") is None:
                    raise TraceError(f"no {column!r} or 'task_name' in this row", path=log, line=number)
                yield {"reward": _reward(row, column, log, number), "regime_id": _configuration(row)}
    except OSError as error:
        raise TraceError(f"cannot read: {error.strerror}", path=log) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"no TSV text: {error}", path=log) from None


def _reward(row: Mapping[str, str], column: str, log: Path, number: int) -> float | None:
    text = row[column].strip()
    if not text or row.get("exp_status") == "incomplete":
        return None
    try:
        value = float(text)
    except ValueError:
        raise TraceError(f"{column} is {text!r}, expected a number", path=log, line=number) from None
    return value if math.isfinite(value) else None


def _configuration(row: Mapping[str, str]) -> str:
    parameters = row.get("task_params") or ""
    return row["task_name"] if parameters in {"", "{}"} else f"{row['task_name']} {parameters}"
