"""The trace is a file format, not shared code: what the core writes byte for byte, the metrics read.

`data/golden_v1.jsonl` is version 1 of the format. A change of the writer that alters it needs a new
version and a reader that still reads this file.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from skyfall_core.base import Transition
from skyfall_core.steps import Recorder
from skyfall_core.trace import TraceWriter
from skyfall_metrics.api import read_trace

GOLDEN = Path(__file__).parent / "data" / "golden_v1.jsonl"

META = {
    "run_id": "golden",
    "algorithm_id": "ppo",
    "task": "cart",
    "seed": 7,
    "reward_upper_bounds": {"calm": 1.0},
}


def step(number: int, reward: float, regime: str, **more: Any) -> Transition:
    return Transition(
        number,
        more.pop("observation", np.array([0.5, -1.0])),
        more.pop("action", np.int64(1)),
        reward,
        more.pop("terminated", False),
        more.pop("truncated", False),
        regime,
        more.pop("boundary", False),
        **more,
    )


def record(path: Path) -> None:
    """Every kind of row the writer knows."""
    with TraceWriter(path, META) as writer:
        write = Recorder(writer)
        write(step(0, 0.25, "calm"), world=0)
        write(step(0, -1.0, "calm", action={"tool": "close", "ticket": 3}, terminated=True), world=1)
        write(step(1, math.nan, "calm", logprob=-0.5, value=0.125), effective_rank=2.5, world=0)
        write(step(1, 0.5, "calm", reward_components={"profit": 0.75, "delay": -0.25}), world=1)
        write(step(2, 1.0, "storm", boundary=True, truncated=True), world=0)
        ledger = {"trace": {"ledger": {"balance": math.inf}, "step": 99, "note": "größer"}}
        write(step(2, 1.0, "storm", boundary=True, info=ledger), world=1)
        with_observation = Recorder(writer, record_observations=True)
        with_observation(step(3, 0.0, "calm again", boundary=True, action="wait"), origin="calm", world=0)
        with_observation(step(3, 0.0, "calm again", boundary=True), origin="calm", world=1)


def refuse(constant: str) -> None:
    raise AssertionError(f"a bare {constant} stands in the trace")


def test_the_writer_still_writes_version_1_byte_for_byte(tmp_path: Path) -> None:
    record(tmp_path / "traces.jsonl")
    assert (tmp_path / "traces.jsonl").read_bytes() == GOLDEN.read_bytes()


def test_every_row_is_strict_json_with_the_keys_that_are_always_there() -> None:
    always = {"trace_version", "step", "reward", "terminated", "truncated", "regime_id", "boundary", *META}
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        row = json.loads(line, parse_constant=refuse)
        assert always <= row.keys()
        assert row["trace_version"] == 1


def test_the_metrics_read_what_the_core_wrote() -> None:
    trace = read_trace(GOLDEN)
    assert trace.step.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [trace.worlds[code] for code in trace.world] == [0, 1] * 4
    assert trace.reward.tolist()[:2] == [0.25, -1.0]
    assert math.isnan(trace.reward[2])
    assert trace.reward.tolist()[3:] == [0.5, 1.0, 1.0, 0.0, 0.0]
    assert [trace.labels[code] for code in trace.regime] == ["calm"] * 4 + ["storm"] * 2 + ["calm again"] * 2
    assert trace.boundary.tolist() == [False] * 4 + [True] * 4
    assert [trace.labels[code] if code >= 0 else None for code in trace.origin] == [None] * 6 + ["calm"] * 2
    assert trace.effective_rank is not None
    assert trace.effective_rank[2] == 2.5
    assert {key: trace.metadata[key] for key in META} == META
