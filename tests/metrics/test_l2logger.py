"""Runs recorded with l2logger 1.8.2 (`data/l2logger`), as traces."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from skyfall_metrics.errors import TraceError
from skyfall_metrics.l2logger import Blocks, convert_l2logger
from skyfall_metrics.reader import read_trace
from skyfall_metrics.scoring import score

RECORDED = Path(__file__).parent / "data" / "l2logger" / "scenario"


@pytest.fixture
def log(tmp_path):
    return Path(shutil.copytree(RECORDED, tmp_path / "scenario"))


def problem(*arguments, **options):
    with pytest.raises(TraceError) as caught:
        convert_l2logger(*arguments, **options)
    return str(caught.value)


def test_training_blocks_become_one_life(log, tmp_path):
    output = tmp_path / "run" / "traces.jsonl"
    assert convert_l2logger(log, output, metadata={"algorithm_id": "dqn", "seed": 1}) == 10
    trace = read_trace(output)
    np.testing.assert_array_equal(trace.reward, [0, 1, 1, 1, 0, np.nan, 0.5, np.nan, 0.75, 1])
    assert [trace.labels[code] for code in trace.regime] == [
        *["cart"] * 4,
        *['cart {"gravity": 20}'] * 3,
        *["cart"] * 3,
    ]
    assert trace.metadata == {"trace_version": 1, "run_id": "scenario", "algorithm_id": "dqn", "seed": 1}
    card = score(trace)
    assert (card.segments, card.revisits, card.missing_rewards) == (3, 1, 2)


def test_evaluation_blocks_on_request(log, tmp_path):
    assert convert_l2logger(log, tmp_path / "test.jsonl", blocks=Blocks.TEST) == 1
    assert convert_l2logger(log, tmp_path / "all.jsonl", blocks=Blocks.ALL) == 11


def test_workers_become_worlds(log, tmp_path):
    shutil.copytree(log / "worker-default", log / "worker-2")
    convert_l2logger(log, tmp_path / "t.jsonl")
    assert read_trace(tmp_path / "t.jsonl").worlds == ("worker-2", "worker-default")


def test_trace_that_is_there_is_not_overwritten(log, tmp_path):
    (tmp_path / "t.jsonl").write_text("precious")
    assert problem(log, tmp_path / "t.jsonl") == (
        f"{tmp_path}/t.jsonl: exists already; remove it or name another file"
    )
    assert (tmp_path / "t.jsonl").read_text() == "precious"


@pytest.mark.parametrize(
    "info", ['{"metrics_columns": 5}', '{"metrics_columns": [1]}', "null", "[" * 100_000], ids=range(4)
)
def test_description_that_names_no_columns(tmp_path, info):
    (tmp_path / "logger_info.json").write_text(info)
    assert problem(tmp_path, tmp_path / "t.jsonl") == (
        f"{tmp_path}: no l2logger run: logger_info.json with 'metrics_columns' is not there or not readable"
    )


def test_directory_of_something_else(tmp_path):
    assert problem(tmp_path, tmp_path / "t.jsonl") == (
        f"{tmp_path}: no l2logger run: logger_info.json with 'metrics_columns' is not there or not readable"
    )


def test_unknown_metric_names_those_there_are(log, tmp_path):
    assert problem(log, tmp_path / "t.jsonl", metric="rewards") == (
        f"{log}/logger_info.json: no metric 'rewards' (did you mean 'reward'? known: 'reward'); name one"
    )


def test_only_metric_is_taken_whatever_its_name(log, tmp_path):
    for file in log.glob("*/*/data-log.tsv"):
        file.write_text(file.read_text().replace("reward", "score", 1))
    (log / "logger_info.json").write_text(json.dumps({"metrics_columns": ["score"]}))
    assert convert_l2logger(log, tmp_path / "t.jsonl") == 10


def test_metric_that_is_no_number(log, tmp_path):
    file = log / "worker-default" / "0-train" / "data-log.tsv"
    file.write_text(file.read_text().replace("\t1.0\n", "\tfine\n", 1))
    assert problem(log, tmp_path / "t.jsonl") == f"{file}: line 3: reward is 'fine', expected a number"
    assert not (tmp_path / "t.jsonl").exists()


def test_run_without_such_blocks(log, tmp_path):
    shutil.rmtree(log / "worker-default" / "1-test")
    assert problem(log, tmp_path / "t.jsonl", blocks=Blocks.TEST) == (
        f"{log}: no data-log.tsv with rows of 'test' blocks"
    )
