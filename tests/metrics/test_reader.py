"""Reading: what a trace becomes, and what is said about one that cannot be read."""

import gzip
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from backports import zstd

from skyfall_metrics import reader
from skyfall_metrics.errors import MissingExtraError, TraceError
from skyfall_metrics.reader import DamagedLines, read_trace
from skyfall_metrics.rows import Keys
from skyfall_metrics.streams import read_blocks


def row(step, reward=0.0, regime="A", **more):
    return {"trace_version": 1, "run_id": "r", "step": step, "reward": reward, "regime_id": regime, **more}


def line(*args, **more):
    return json.dumps(row(*args, **more)).encode() + b"\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "traces.jsonl"


def written(path: Path, *lines: bytes):
    path.write_bytes(b"".join(lines))
    return path


def problem(path: Path, **options):
    with pytest.raises(TraceError) as caught:
        read_trace(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def notes(path: Path, **options):
    return {note.code: note.message for note in read_trace(path, **options).notes}


# what a trace becomes


def test_columns_and_metadata_come_apart(path):
    written(
        path,
        line(0, 1, seed=3, action=[1], value=0.5, observation=[0.1], boundary=False),
        line(
            1, None, "B", seed=3, action=[2], value=0.5, observation=[0.1], boundary=True, origin="A", price=1
        ),
    )
    trace = read_trace(path)
    assert trace.step.tolist() == [0, 1]
    np.testing.assert_array_equal(trace.reward, [1.0, np.nan])
    assert [trace.labels[code] for code in trace.regime] == ["A", "B"]
    assert trace.origin.tolist() == [-1, trace.labels.index("A")]
    assert trace.boundary.tolist() == [False, True]
    assert trace.metadata == {"trace_version": 1, "run_id": "r", "seed": 3}
    assert trace.effective_rank is None
    assert trace.notes == ()


def test_column_that_begins_late_is_filled_with_absence(path):
    written(path, line(0), line(1), line(2, effective_rank=4.5), line(3), line(4, effective_rank=None))
    trace = read_trace(path)
    np.testing.assert_array_equal(trace.effective_rank, [np.nan, np.nan, 4.5, np.nan, np.nan])


def test_world_that_begins_late_makes_two_worlds(path):
    trace = read_trace(written(path, line(0), line(0, world=1), line(1, world=1), line(1)))
    assert trace.worlds == (None, 1)
    assert trace.world.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("block_bytes", [1, 7, 100, 1 << 20])
def test_block_size_changes_nothing(path, block_bytes, monkeypatch):
    lines = [line(t, t / 7, "AB"[t % 2], boundary=t % 5 == 0) for t in range(40)]
    lines[30] = line(30, 1.0, "C", effective_rank=2.0)
    whole = read_trace(written(path, *lines))
    monkeypatch.setattr(reader, "read_blocks", lambda file: read_blocks(file, block_bytes=block_bytes))
    parts = read_trace(path)
    for name in ("step", "reward", "regime", "origin", "boundary", "world", "effective_rank"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    assert (whole.labels, whole.notes, whole.metadata) == (parts.labels, parts.notes, parts.metadata)


def test_last_line_without_newline_counts_when_it_is_whole(path):
    assert len(read_trace(written(path, line(0), line(1).rstrip()))) == 2


def test_blank_lines_and_carriage_returns_are_passed_over(path):
    written(path, b"\n", line(0).replace(b"\n", b"\r\n"), b"  \n", line(1))
    assert read_trace(path).step.tolist() == [0, 1]


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".zst", zstd.compress)])
def test_compressed_traces_read_the_same(path, suffix, compress):
    lines = b"".join(line(t, t % 3) for t in range(500))
    packed = written(path.with_name(path.name + suffix), compress(lines))
    np.testing.assert_array_equal(read_trace(packed).reward, read_trace(written(path, lines)).reward)


def test_zst_without_its_extra_says_what_to_install(path, monkeypatch):
    packed = written(path.with_name("traces.jsonl.zst"), zstd.compress(line(0)))
    monkeypatch.setitem(__import__("sys").modules, "backports.zstd", None)
    monkeypatch.setitem(__import__("sys").modules, "compression.zstd", None)
    with pytest.raises(MissingExtraError) as caught:
        read_trace(packed)
    assert str(caught.value) == f"{packed}: reading .zst needs: pip install 'skyfall-metrics[zstd]'"


# logs of other tools


def test_foreign_keys_are_mapped(path):
    rows = [{"t": 5, "ret": 1.5, "env": 3, "algo": "dqn"}, {"t": 6, "ret": 2, "env": "3", "algo": "dqn"}]
    written(path, *(json.dumps(each).encode() + b"\n" for each in rows))
    trace = read_trace(path, keys=Keys(step="t", reward="ret", regime="env", algorithm_id="algo"))
    assert trace.reward.tolist() == [1.5, 2.0]
    assert trace.labels == ("3",)
    assert trace.metadata["algorithm_id"] == "dqn"


def test_without_a_step_key_rows_are_numbered(path):
    written(
        path, *(json.dumps({"step": t % 2, "reward": 0, "regime_id": "A"}).encode() + b"\n" for t in range(4))
    )
    assert read_trace(path, keys=Keys(step=None)).step.tolist() == [0, 1, 2, 3]


def test_label_that_is_also_the_task_is_no_contradiction(path):
    written(path, *(json.dumps({"step": t, "reward": 0, "task": f"T{t}"}).encode() + b"\n" for t in range(2)))
    trace = read_trace(path, keys=Keys(regime="task"))
    assert trace.labels == ("T0", "T1")
    assert "task" not in trace.metadata


def test_trace_without_labels_is_one_configuration_and_says_so(path):
    written(path, b'{"step":0,"reward":1}\n{"step":1,"reward":2}\n')
    assert read_trace(path).labels == ("baseline",)
    assert notes(path) == {
        "no_regime": "no row has 'regime_id': the run counts as one configuration, 'baseline'"
    }


def test_missing_keys_name_the_nearest_and_the_option(path):
    written(path, b'{"step":0,"rewards":1}\n')
    assert problem(path) == (
        "line 1 (byte 0): no 'reward' in the first row "
        "(did you mean 'rewards'? known: 'rewards', 'step'); name yours with --reward-key"
    )


# bad input, each with its exact message


def test_empty_file(path):
    assert problem(written(path)) == "empty file"


def test_only_blank_lines(path):
    assert problem(written(path, b"\n \n")) == "no row: the file holds blank lines only"


def test_header_less_garbage(path):
    assert problem(written(path, b"PK\x03\x04 garbage\nmore\n")) == (
        "line 1 (byte 0): not a JSON object (JSON is malformed: invalid character (byte 0)): "
        "'PK\\x03\\x04 garbage'"
    )


def test_json_that_is_no_object(path):
    assert problem(written(path, line(0), b"[1, 2]\n")) == (
        f"line 2 (byte {len(line(0))}): not a JSON object but `array`; a trace has one object a line"
    )


def test_torn_last_line_is_left_out_and_noted(path):
    written(path, line(0), line(1), line(2)[:20])
    assert len(read_trace(path)) == 2
    assert notes(path) == {"torn_line": "line 3 was cut off while it was being written; left out"}


def test_nothing_but_a_torn_line(path):
    assert problem(written(path, line(0)[:20])) == (
        "no whole row: the only line was cut off while it was being written"
    )


def test_line_cut_in_the_middle_of_the_file(path):
    cut = line(1)[:40] + b"\n"
    assert problem(written(path, line(0), cut, line(2))) == (
        f"line 2 (byte {len(line(0))}): not a JSON object (Input data was truncated): "
        """'{"trace_version": 1, "run_id": "r", "ste'"""
    )


def test_damage_in_the_middle_is_skipped_and_counted_on_request(path):
    written(path, line(0), b"#\n", line(1), b"\xff\xfe\n", line(2))
    trace = read_trace(path, damaged_lines=DamagedLines.SKIP)
    assert trace.step.tolist() == [0, 1, 2]
    assert [note.message for note in trace.notes] == ["2 damaged lines left out, the first is line 2"]


def test_nothing_but_damage_is_an_error_even_on_request(path):
    written(path, b"#\n#\n")
    assert problem(path, damaged_lines=DamagedLines.SKIP) == "no whole row: 2 damaged lines left out"


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400])
def test_number_that_json_does_not_know_is_a_missing_reward(path, token):
    written(path, line(0, 1.0), line(1, 7.25).replace(b"7.25", token.encode()), line(2, 1.0))
    np.testing.assert_array_equal(read_trace(path).reward, [1.0, np.nan, 1.0])
    assert notes(path) == {"odd_numbers": "1 row with a bare NaN or Infinity, read as missing"}


def test_bare_nan_in_a_skipped_field_loses_nothing_else(path):
    written(path, line(0, 2.0, value=7.25).replace(b"7.25", b"NaN"))
    assert read_trace(path).reward.tolist() == [2.0]


def test_reward_as_a_string(path):
    assert problem(written(path, line(0), line(1, "0.5"))) == (
        f'line 2 (byte {len(line(0))}): reward is "0.5", expected a number or null'
    )


@pytest.mark.parametrize(
    ("step", "shown"),
    [(-1, "-1"), (1.5, "1.5"), (True, "true"), (2**63, "9223372036854775808"), (None, "null")],
)
def test_step_that_is_no_whole_number(path, step, shown):
    assert (
        problem(written(path, line(step)))
        == f"line 1 (byte 0): step is {shown}, expected a whole number from 0"
    )


def test_row_without_a_reward(path):
    bare = b'{"trace_version":1,"run_id":"r","step":1,"regime_id":"A"}\n'
    assert problem(written(path, line(0), bare)) == (
        f"line 2 (byte {len(line(0))}): no 'reward' in this row; every row needs one"
    )


def test_label_missing_halfway(path):
    assert problem(written(path, line(0), line(1, 0.0, None))) == (
        f"line 2 (byte {len(line(0))}): regime_id is null, expected a string"
    )


def test_label_that_begins_halfway(path):
    written(path, b'{"step":0,"reward":0}\n', b'{"step":1,"reward":0,"regime_id":"A"}\n')
    assert problem(path) == (
        "line 2 (byte 22): regime_id is 'A' here and missing in the first row: every row needs one, or none"
    )


def test_an_identity_that_was_asked_for_by_name_must_be_there(path):
    written(path, line(0, agent="dqn"), line(1, agent="dqn"))
    assert problem(path, keys=Keys(algorithm_id="agnt")) == (
        "line 1 (byte 0): no 'agnt' in the first row (did you mean 'agent'? known: 'agent', 'regime_id', "
        "'reward', 'run_id', 'step', 'trace_version'); "
        "correct --algorithm-key or leave it out"
    )
    assert read_trace(path, keys=Keys(algorithm_id="agent")).metadata["algorithm_id"] == "dqn"


@pytest.mark.parametrize("steps", [(0, 1, 1), (0, 5, 4)])
def test_steps_duplicated_or_out_of_order(path, steps):
    written(path, *(line(step) for step in steps))
    assert problem(path) == (
        f"line 3: step {steps[2]} follows step {steps[1]}: steps must increase within a world. "
        'A resumed run marks its first row with "resumed": true; '
        "to number rows in file order instead, read without a step key: --step-key ''"
    )


def test_rows_that_a_resumed_run_lived_again_replace_the_old_ones(path):
    written(path, *(line(t, 0.0) for t in range(5)), line(3, 1.0, resumed=True), line(4, 1.0), line(5, 1.0))
    trace = read_trace(path)
    assert trace.step.tolist() == [0, 1, 2, 3, 4, 5]
    assert trace.reward.tolist() == [0, 0, 0, 1, 1, 1]
    assert notes(path) == {"resumed": "resumed at step 3, line 6: 2 rows lived again, left out"}


def test_run_resumed_twice_keeps_what_was_lived_last(path):
    steps = [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (3, 1), (2, 2), (3, 2)]
    written(path, *(line(s, life, resumed=life > 0) for s, life in steps))
    trace = read_trace(path)
    assert list(zip(trace.step.tolist(), trace.reward.tolist(), strict=True)) == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 2),
    ]
    assert notes(path) == {
        "resumed": "resumed 2 times, first at step 1, line 4: 4 rows lived again, left out"
    }


def test_every_world_of_a_resumed_run_goes_back(path):
    lived = [(0, 0), (0, 1), (1, 0), (1, 1)]
    again = [(1, 0, True), (1, 1, False), (2, 0, False), (2, 1, False)]
    written(
        path,
        *(line(s, 0.0, world=w) for s, w in lived),
        *(line(s, 1.0, world=w, resumed=mark) for s, w, mark in again),
    )
    trace = read_trace(path)
    assert trace.step.tolist() == [0, 0, 1, 1, 2, 2]
    assert trace.reward.tolist() == [0, 0, 1, 1, 1, 1]


def test_gaps_are_noted_and_nothing_is_invented(path):
    written(path, *(line(step) for step in (0, 1, 2, 10, 11, 12, 15)))
    assert len(read_trace(path)) == 7
    assert notes(path) == {"step_gaps": "2 gaps in the steps, 9 rows missing (first: steps 2 to 10)"}


def test_log_of_every_tenth_step_says_what_times_count(path):
    written(path, *(line(step) for step in (0, 10, 20, 30)))
    assert notes(path) == {"stride": "rows are 10 steps apart; windows and times count rows"}


def test_boundary_flag_without_a_label_change(path):
    written(path, *(line(t, boundary=t == 2) for t in range(4)))
    assert notes(path) == {
        "flag_without_change": "1 boundary flag without a change of label (first at step 2); cut there"
    }


def test_label_change_without_a_boundary_flag(path):
    written(path, *(line(t, 0.0, "AABB"[t], boundary=False) for t in range(4)))
    assert notes(path) == {
        "silent_change": "1 change of label without a boundary flag (first at step 2); cut there"
    }


def test_rows_of_two_runs(path):
    written(path, line(0), line(1, run_id="s"))
    assert problem(path) == (
        f"line 2 (byte {len(line(0))}): run_id is 's' here and 'r' in the first row: "
        "a trace holds one run; split the file"
    )


def test_seeds_that_differ_are_two_runs(path):
    written(path, b'{"step":0,"reward":0,"seed":0}\n{"step":1,"reward":0,"seed":1}\n')
    assert problem(path) == (
        "seed is 0 in the first row and 1 in the last: a trace holds one run; split the file"
    )


def test_mixed_trace_version(path):
    written(path, line(0), line(1, trace_version=2))
    assert problem(path) == (
        f"line 2 (byte {len(line(0))}): trace_version is 2 here and 1 in the first row: "
        "a trace holds one version; split the file"
    )


def test_newer_trace_version(path):
    assert problem(written(path, line(0, trace_version=2))) == (
        "line 1 (byte 0): trace_version 2: this release reads version 1; upgrade skyfall-metrics"
    )


def test_line_of_two_hundred_megabytes_is_refused_without_being_held(path):
    with path.open("wb") as file:
        file.write(line(0))
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + line(1))
    assert problem(path) == f"line 2 (byte {len(line(0))}): longer than 16 MiB; a trace has one row a line"
    assert read_trace(path, damaged_lines=DamagedLines.SKIP).step.tolist() == [0, 1]


def test_invalid_utf8(path):
    written(path, line(0), line(1, 0.0, "B").replace(b'"B"', b'"\xff"'))
    assert problem(path) == (
        f"line 2 (byte {len(line(0))}): not UTF-8 (invalid start byte): "
        """'{"trace_version": 1, "run_id": "r", "st…'"""
    )


def test_invalid_utf8_where_nothing_is_read(path):
    written(path, line(0), line(1, note="n").replace(b'"n"', b'"\xff"'))
    assert problem(path).startswith(f"line 2 (byte {len(line(0))}): not UTF-8 (invalid start byte): ")
    trace = read_trace(path, damaged_lines=DamagedLines.SKIP)
    assert trace.step.tolist() == [0]
    assert [note.code for note in trace.notes] == ["damaged_lines"]


def test_byte_order_mark(path):
    written(path, b"\xef\xbb\xbf" + line(0), line(1))
    assert problem(path) == (
        "line 1 (byte 0): begins with a byte order mark; save the file as UTF-8 without one"
    )


def test_seed_that_is_nan_is_no_seed(path):
    written(path, line(0, seed=float("nan")), line(1, seed=float("nan")))
    assert "seed" not in read_trace(path).metadata


@pytest.mark.parametrize("last", [1.0, float("nan")], ids=["read as a block", "read line by line"])
def test_row_without_a_run_id_is_of_the_run(path, last):
    lines = [line(0), line(1).replace(b'"run_id": "r", ', b""), line(2, last)]
    assert read_trace(written(path, *lines)).step.tolist() == [0, 1, 2]


def test_nesting_without_end(path):
    written(path, line(0), line(1, deep=0).replace(b'"deep": 0', b'"deep": ' + b"[" * 50_000 + b"]" * 50_000))
    assert problem(path) == (
        f"line 2 (byte {len(line(0))}): nested too deeply: "
        """'{"trace_version": 1, "run_id": "r", "st…'"""
    )


def test_gz_cut_short(path):
    packed = gzip.compress(b"".join(line(t) for t in range(2000)))
    cut = written(path.with_name("traces.jsonl.gz"), packed[: len(packed) // 2])
    assert problem(cut) == (
        "the compressed file ends in the middle: it was cut short, and how many rows are missing "
        "cannot be known; copy it again, or decompress what is left and score that"
    )


def test_zst_cut_short(path):
    packed = zstd.compress(b"".join(line(t) for t in range(2000)))
    cut = written(path.with_name("traces.jsonl.zst"), packed[: len(packed) // 2])
    assert problem(cut).startswith("the compressed file ends in the middle")


@pytest.mark.parametrize(
    ("suffix", "why"),
    [
        (".gz", "Not a gzipped file (b'no')"),
        (".zst", "Unable to decompress Zstandard data: Unknown frame descriptor"),
    ],
)
def test_suffix_that_promises_what_the_bytes_are_not(path, suffix, why):
    liar = written(path.with_name(path.name + suffix), b"not compressed at all")
    assert problem(liar) == f"cannot decompress: {why}"


def test_damaged_gz_stream(path):
    packed = bytearray(gzip.compress(os.urandom(5000)))
    packed[200] ^= 0xFF
    broken = written(path.with_name("traces.jsonl.gz"), bytes(packed))
    with pytest.raises(TraceError):
        read_trace(broken)


def test_no_read_permission(path, unprivileged):
    written(path, line(0)).chmod(0)
    with unprivileged():
        assert problem(path) == "cannot read: Permission denied"


def test_number_too_large_to_average(path):
    assert problem(written(path, line(0), line(1, 1e200))) == (
        "line 2: reward is 1e+200: beyond ±1e+100 double precision cannot average; rescale it"
    )


def test_one_row(path):
    assert len(read_trace(written(path, line(7)))) == 1


def test_unhashable_run_id(path):
    assert (
        problem(written(path, line(0, run_id=["r"]))) == "line 1 (byte 0): run_id is ['r'], expected a string"
    )


def test_error_keeps_its_place_across_processes(path):
    error = TraceError("bad", path=path, line=3, offset=99)
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - what a worker process does
    assert (str(back), back.line, back.offset) == (f"{path}: line 3 (byte 99): bad", 3, 99)
