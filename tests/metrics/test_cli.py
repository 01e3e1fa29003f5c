"""The commands as a user runs them."""

import json
import subprocess
import sys

import pytest

ROWS = [
    {"trace_version": 1, "run_id": "r", "algorithm_id": "a", "task": "t", "seed": 0, "step": t, "reward": r}
    | {"terminated": False, "truncated": False, "regime_id": label, "boundary": t in {4, 8}, "origin": None}
    for t, (r, label) in enumerate(zip([0, 1, 1, 1, 0, 0, 0.5, 1, 0.5, 1, 1, 1], "AAAABBBBAAAA", strict=True))
]


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", "from skyfall_metrics.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", **options},
    )


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "run" / "traces.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_score_prints_the_six_metrics_to_standard_output(trace):
    done = run("score", trace, "--window", 1, "--hold", 1, "--settled-fraction", 0.5)
    assert (done.returncode, done.stderr) == (0, "")
    for line in ("Reward per configuration 0.5938 reward", "Adaptation speed 0.5 0 to 1", "Forgetting 0.5"):
        assert line in " ".join(done.stdout.split())
    assert "no bound for 'A'; no bound for 'B'" in done.stdout


def test_score_prints_json(trace):
    done = run("score", trace.parent, "--json", "--window", 1, "--hold", 1, "--settled-fraction", 0.5)
    document = json.loads(done.stdout)
    card = document["scorecards"][0]
    assert document["schema_version"] == 1
    assert card["run"] == {"run_id": "r", "algorithm_id": "a", "task": "t", "seed": 0, "path": str(trace)}
    assert card["measures"]["adaptation_speed"] == {"value": 0.5, "reason": None}


def test_tables_fit_eighty_columns(trace):
    done = run("score", trace, COLUMNS="80")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_wrong_input_is_one_line_and_status_two(tmp_path):
    done = run("score", tmp_path / "absent")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {tmp_path / 'absent'}: no such file or directory\n"


def test_parameter_out_of_range_is_status_two(trace):
    done = run("score", trace, "--settled-fraction", 2)
    assert done.returncode == 2
    assert done.stderr == "error: settled_fraction is 2.0: expected a share above 0 and at most 1\n"


def test_notes_go_to_standard_error(trace):
    with trace.open("a") as file:
        file.write('{"step":12,"rew')
    done = run("score", trace)
    assert done.returncode == 0
    assert done.stderr == f"warning: {trace}: line 13 was cut off while it was being written; left out\n"


def test_commands_load_nothing_heavy():
    source = "import json, sys, skyfall_metrics.cli; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"numpy", "msgspec", "rich"} & set(json.loads(done.stdout))
