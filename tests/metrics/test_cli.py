"""The commands as a user runs them."""

import csv
import io
import json
import os
import signal
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from skyfall_metrics.cli import compare, score

REWARDS = [0, 1, 1, 1, 0, 0, 0.5, 1, 0.5, 1, 1, 1]
PLAIN = ("--window", "1", "--hold", "1", "--settled-fraction", "0.5")


def write(path, *, family="a", seed=0, scale=1.0, rows=12, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for t, (reward, label) in enumerate(zip(REWARDS[:rows], "AAAABBBBAAAA", strict=False)):
            row = {"trace_version": 1, "run_id": f"{family}{seed}", "algorithm_id": family, "task": "t"}
            row |= {"seed": seed, "step": t, "reward": scale * reward, "regime_id": label, **more}
            file.write(json.dumps(row | {"boundary": t in {4, 8}}) + "\n")
    return path


@pytest.fixture
def trace(tmp_path):
    return write(tmp_path / "runs" / "a0" / "traces.jsonl")


@pytest.fixture
def sweep(tmp_path):
    for family, scale in (("a", 1.0), ("b_1", 2.0)):
        for seed in range(3):
            write(
                tmp_path / "sweep" / family / str(seed) / "traces.jsonl",
                family=family,
                seed=seed,
                scale=scale,
            )
    return tmp_path / "sweep"


@pytest.fixture
def invoke(monkeypatch):
    """Run a command as `skyfall` would: registered by name on another application."""
    monkeypatch.setenv("COLUMNS", "80")
    app = typer.Typer()
    app.command("score")(score)
    app.command("compare")(compare)

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


def squeezed(text):
    return " ".join(text.split())


def test_score_prints_the_six_metrics(invoke, trace):
    done = invoke("score", trace, *PLAIN)
    assert (done.exit_code, done.stderr) == (0, "")
    for line in (
        "Reward per configuration 0.5938 reward higher",
        "Adaptation speed 0.5 0 to 1 higher",
        "Forgetting 0.5 reward lower",
        "Recovery time 2 rows lower",
        "Stability (spread) 0.08333 reward lower",
        "Performance gap —ᵃ reward lower",
        "ᵃ no bound for 'A'; no bound for 'B'",
    ):
        assert line in squeezed(done.stdout)


def test_score_tells_a_life_with_a_revisit_segment_by_segment(invoke, trace):
    text = squeezed(invoke("score", trace, *PLAIN).stdout)
    assert "Segment From Rows Mean Opening Settled" in text
    assert "A 0 4 0.75 0 1 B 4 4 0.375 0 0.75 A 8 4 0.875 0.5 1" in text


def test_tables_fit_eighty_columns(invoke, trace, sweep):
    for arguments in (("score", trace), ("score", sweep), ("compare", sweep), ("compare", sweep, "--all")):
        assert max(map(len, invoke(*arguments).stdout.splitlines())) <= 80


def test_narrow_terminal_cuts_no_number(invoke, sweep, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert "0.08333" in invoke("score", sweep, *PLAIN).stdout
    assert "0.1667" in invoke("score", sweep, *PLAIN).stdout


def test_score_of_several_runs_is_a_line_each(invoke, sweep):
    done = invoke("score", sweep, *PLAIN)
    assert "b_1 · t" in done.stdout
    assert "a1 · seed 1 0.5938 0.5 0.5 2 0.08333" in squeezed(done.stdout)


def test_score_prints_json(invoke, trace):
    document = json.loads(invoke("score", trace.parent, "--json", *PLAIN).stdout)
    card = document["scorecards"][0]
    assert document["schema_version"] == 1
    assert card["run"] == {"run_id": "a0", "algorithm_id": "a", "task": "t", "seed": 0, "path": str(trace)}
    assert card["measures"]["adaptation_speed"] == {"value": 0.5, "reason": None}


def test_json_of_a_file_whose_name_is_no_text(invoke, trace):
    odd = trace.with_name("odd\udcff.jsonl")
    trace.rename(odd)
    card = json.loads(invoke("score", odd, "--json", *PLAIN).stdout)["scorecards"][0]
    assert card["run"]["path"] == str(trace.with_name("odd?.jsonl"))
    assert card["measures"]["adaptation_speed"] == {"value": 0.5, "reason": None}


def test_score_prints_csv_with_reasons(invoke, trace):
    rows = list(csv.DictReader(io.StringIO(invoke("score", trace, "--csv", *PLAIN).stdout)))
    found = {row["measure"]: (row["value"], row["reason"]) for row in rows}
    assert found["reward"] == ("0.59375", "")
    assert found["gap"] == ("", "no bound for 'A'; no bound for 'B'")


def test_score_prints_latex(invoke, trace):
    text = invoke("score", trace, "--latex", *PLAIN).stdout
    assert "Reward per configuration & 0.5938 & reward & higher \\\\" in text
    assert "Performance gap & ---\\textsuperscript{a} & reward & lower \\\\" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3


def test_bounds_file_and_observed_bounds(invoke, sweep, tmp_path):
    bounds = tmp_path / "bounds.yaml"
    bounds.write_text("A: 2\nB: 2\nC: 1\n")
    done = invoke("score", sweep / "a" / "0", "--bounds", bounds, *PLAIN)
    assert "Performance gap 1.125" in squeezed(done.stdout)
    assert done.stderr == (f"warning: {bounds}: bound for 'C': no such configuration; known: 'A', 'B'\n")
    done = invoke("score", sweep / "a" / "0", "--bounds", "observed", *PLAIN)
    assert "bound observed: the best settled level among these runs" in done.stdout


def test_forward_transfer_from_reference_runs(invoke, trace, tmp_path):
    alone = write(tmp_path / "alone.jsonl", rows=4)
    done = invoke("score", trace, "--reference", alone, "--csv")
    row = next(r for r in csv.DictReader(io.StringIO(done.stdout)) if r["measure"] == "forward_transfer")
    assert float(row["value"]) == 0


def test_compare_puts_families_beneath_each_other(invoke, sweep):
    text = squeezed(invoke("compare", sweep, *PLAIN).stdout)
    assert "Reward per configuration ↑ a 3 0.5938 0 0.5938 0.5938 – 0.5938 b_1 3 1.188 0 1.188" in text
    assert "a over b_1 Reward per configuration 0 0 – 0 Adaptation speed 0.5 0.5 – 0.5" in text
    assert "percentile bootstrap of the IQM, 2,000 resamples, seed 0" in text


def test_compare_prints_json_csv_and_latex(invoke, sweep):
    document = json.loads(invoke("compare", sweep, "--json").stdout)
    assert document["families"] == ["a", "b_1"]
    rows = list(csv.DictReader(io.StringIO(invoke("compare", sweep, "--csv", *PLAIN).stdout)))
    assert [r["mean"] for r in rows if r["measure"] == "reward"] == ["0.59375", "1.1875"]
    assert r"b\_1 & 3 & 1.188" in invoke("compare", sweep, "--latex", *PLAIN).stdout


def test_compare_refuses_unequal_lengths_until_told(invoke, sweep):
    write(sweep / "a" / "short" / "traces.jsonl", seed=7, rows=9)
    refused = invoke("compare", sweep)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: task 't': ")
    allowed = invoke("compare", sweep, "--allow-unequal")
    assert allowed.exit_code == 0
    assert "short/traces.jsonl (9 rows in 3 segments) did not live the schedule" in allowed.stderr


def test_foreign_keys_are_options(invoke, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps({"return": t, "env": "AB"[t // 2]}) + "\n" for t in range(4)))
    done = invoke("score", path, "--reward-key", "return", "--regime-key", "env", "--step-key", "", "--json")
    assert json.loads(done.stdout)["scorecards"][0]["measures"]["reward"]["value"] == 1.5


def test_damaged_lines_are_skipped_on_request(invoke, trace):
    trace.write_text(trace.read_text().replace('{"trace_version": 1, "run_id": "a0"', "#", 1))
    assert invoke("score", trace).exit_code == 2
    done = invoke("score", trace, "--damaged-lines", "skip")
    assert done.stderr == f"warning: {trace}: 1 damaged line left out, the first is line 1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--settled-fraction", "2"), "settled_fraction is 2.0: expected a share above 0 and at most 1"),
        (("--json", "--csv"), "--json and --csv: choose one"),
        (("--reward-key", "step"), "key 'step' cannot be both step and reward: name two different keys"),
        (("--jobs", "-1"), "jobs is -1: expected at least 1 process"),
    ],
)
def test_wrong_option_is_one_line_and_status_two(invoke, trace, arguments, message):
    done = invoke("score", trace, *arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"error: {message}\n")


def test_absent_path_is_one_line_and_status_two(invoke, tmp_path):
    done = invoke("score", tmp_path / "gone")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"error: {tmp_path / 'gone'}: no such file or directory\n"


def test_interrupt_is_status_130(invoke, trace, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("skyfall_metrics.cli.gathering.find_all_traces", interrupt)
    done = invoke("score", trace)
    assert (done.exit_code, done.stderr) == (130, "interrupted\n")


def standalone(*arguments, **options):
    source = "from skyfall_metrics.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", source, *map(str, arguments)],
        capture_output=True,
        check=False,
        timeout=60,
        **options,
    )


def test_stands_alone_and_writes_where_the_encoding_is_poor(trace):
    with trace.open("a") as file:
        file.write('{"step":12,"rew')
    done = standalone("score", trace, env={"PYTHONIOENCODING": "ascii", "NO_COLOR": "1"})
    assert done.returncode == 0
    assert b"Reward per configuration" in done.stdout
    assert b"line 13 was cut off while it was being written; left out" in done.stderr


WHILE_STARTING = """
import signal, sys
if "--multiprocessing-fork" in sys.orig_argv:
    signal.raise_signal(signal.SIGINT)
"""


def test_interrupt_while_processes_start_prints_no_traceback(sweep, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WHILE_STARTING)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    done = standalone("score", sweep, "--jobs", 2, "--csv", env=environment)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_interrupt_ends_every_process_with_one_word(tmp_path):
    pipes = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for pipe in pipes:
        os.mkfifo(pipe)
    source = "from skyfall_metrics.cli import main; main()"
    command = [sys.executable, "-c", source, "score", *map(str, pipes), "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        held = [pipe.open("wb") for pipe in pipes]  # opens once a process reads at the other end
        os.killpg(process.pid, signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        for pipe in held:
            pipe.close()
    assert (process.returncode, errors) == (130, b"interrupted\n")


def test_reader_of_the_output_may_leave(trace):
    process = subprocess.Popen(
        [sys.executable, "-c", "from skyfall_metrics.cli import main; main()", "score", str(trace), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert b"Traceback" not in errors
    assert process.returncode in {0, 141}


def test_commands_load_nothing_heavy():
    source = "import json, sys, skyfall_metrics.cli; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, check=True, timeout=60)
    assert not {"numpy", "msgspec", "rich"} & set(json.loads(done.stdout))
