"""Many traces, in one process or several."""

import json

import pytest

from skyfall_metrics.batch import Job, score_files, worthwhile_jobs
from skyfall_metrics.errors import ParameterError, TraceError
from skyfall_metrics.parameters import Parameters


@pytest.fixture
def traces(tmp_path):
    paths = []
    for seed in range(4):
        path = tmp_path / f"{seed}.jsonl"
        rows = ({"step": t, "reward": t % (seed + 2), "regime_id": "AB"[t // 5]} for t in range(10))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths.append(path)
    return paths


def test_processes_give_the_same_scorecards_in_the_same_order(traces):
    job = Job(parameters=Parameters(window=2))
    assert list(score_files(traces, job, jobs=2)) == list(score_files(traces, job))


def test_bad_trace_in_a_worker_is_the_same_error(traces):
    traces[2].write_text("#\n")
    messages = []
    for jobs in (1, 2):
        with pytest.raises(TraceError) as caught:
            list(score_files(traces, Job(), jobs=jobs))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith(f"{traces[2]}: line 1 (byte 0): not a JSON object")


def test_little_text_is_not_worth_a_process(traces):
    assert worthwhile_jobs(traces) == 1


def test_jobs_below_one(traces):
    with pytest.raises(ParameterError, match="jobs is 0: expected at least 1 process"):
        list(score_files(traces, Job(), jobs=0))
