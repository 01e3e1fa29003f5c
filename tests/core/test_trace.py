"""The trace writer: whole rows only, readable by anyone, whatever a run throws at it."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core.errors import TraceError, TraceExistsError
from skyfall_core.trace import TRACE_VERSION, TraceMode, TraceWriter, repair_torn_line


def strict_rows(path: Path) -> list[dict[str, Any]]:
    """Every line, read by a parser that refuses bare NaN and keys that stand twice."""

    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is no JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys)), keys
        return dict(pairs)

    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    lines = data.decode("utf-8").split("\n")[:-1]
    return [json.loads(line, parse_constant=refuse, object_pairs_hook=once) for line in lines]


def written(tmp_path: Path, row: dict[Any, Any], record: Any = None) -> dict[str, Any]:
    with TraceWriter(tmp_path / "t.jsonl", {"run_id": "r"}) as writer:
        writer.write(row, record)
    (read,) = strict_rows(tmp_path / "t.jsonl")
    return read


# ---- what a row holds


def test_every_row_carries_version_and_metadata(tmp_path: Path) -> None:
    assert written(tmp_path, {"step": 3}) == {"trace_version": TRACE_VERSION, "run_id": "r", "step": 3}


def test_harness_keys_stand_above_the_environments_record(tmp_path: Path) -> None:
    record = {"step": 99, "run_id": "other", "trace_version": 7, "profit": 1.5}
    expected = {"trace_version": 1, "run_id": "r", "step": 3, "profit": 1.5}
    assert written(tmp_path, {"step": 3}, record) == expected


def test_metadata_cannot_change_the_version(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.jsonl", {"trace_version": 9}) as writer:
        writer.write({"step": 0})
    assert strict_rows(tmp_path / "t.jsonl") == [{"trace_version": 1, "step": 0}]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        (-math.inf, None),
        (np.float32("nan"), None),
        (np.array([1.0, np.nan, np.inf]), [1.0, None, None]),
        ({"deep": [np.float64("inf")]}, {"deep": [None]}),
        (np.float32(1.5), 1.5),
        (np.longdouble(1.5), 1.5),
        (np.int64(-3), -3),
        (np.bool_(True), True),
        (np.str_("ä"), "ä"),
        (np.array(2), 2),
        (np.array([{"a": np.int8(1)}, None], dtype=object), [{"a": 1}, None]),
        (10**30, 10**30),
        ({1, 2}, [1, 2]),
        (b"ab", "YWI="),
        (MappingProxyType({"a": (1, 2)}), {"a": [1, 2]}),
        ({1: "a", np.int64(2): "b"}, {"1": "a", "2": "b"}),
        ("line\nbreak\u2028", "line\nbreak\u2028"),
    ],
    ids=repr,
)
def test_values_have_a_json_form(tmp_path: Path, value: Any, expected: Any) -> None:
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        writer.write({"step": 0, "value": value})
    line, end, rest = (tmp_path / "t.jsonl").read_bytes().partition(b"\n")
    assert (end, rest) == (b"\n", b"")
    assert b"NaN" not in line
    assert b"Infinity" not in line
    assert json.loads(line)["value"] == expected


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    "value",
    [object(), 1j, np.clongdouble(1j), {None: 1}, {(1, 2): 3}, "\ud800", Path("x"), endless()],
    ids=["object", "complex", "clongdouble", "no key", "tuple key", "surrogate", "path", "endless"],
)
def test_a_value_without_json_form_names_step_and_key(tmp_path: Path, value: Any) -> None:
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        writer.write({"step": 6})
        with pytest.raises(TraceError, match=r"t\.jsonl: step 7: 'odd' has no JSON form"):
            writer.write({"step": 7, "odd": value})
        with pytest.raises(TraceError, match="step 7: 'odd'"):
            writer.write({"step": 7}, {"odd": value})
        writer.write({"step": 8})
    assert [row["step"] for row in strict_rows(tmp_path / "t.jsonl")] == [6, 8]


@pytest.mark.parametrize("key", [None, (1, 2), "\ud800"], ids=repr)
def test_a_key_that_is_no_name_is_refused_and_named(tmp_path: Path, key: Any) -> None:
    with TraceWriter(tmp_path / "t.jsonl") as writer, pytest.raises(TraceError) as caught:
        writer.write({"step": 7}, {key: 1})
    assert f"step 7: {key!r} has no JSON form" in str(caught.value)
    assert strict_rows(tmp_path / "t.jsonl") == []


def test_metadata_without_json_form_is_refused_before_the_file_is_made(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="'task' has no JSON form"):
        TraceWriter(tmp_path / "t.jsonl", {"task": object()})
    assert not (tmp_path / "t.jsonl").exists()


numbers = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.floats(width=32).map(np.float32),
    st.integers(0, 255).map(np.uint8),
    st.lists(st.floats()).map(np.array),
)
values = st.recursive(
    numbers, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


def plain(value: Any) -> Any:
    """What a strict reader should see: a slow oracle of its own."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@given(rows=st.lists(st.dictionaries(st.text(), values, max_size=4), max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_row_reads_back_as_it_was(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "t.jsonl"
    kept = [{**row, "trace_version": 1, "step": step} for step, row in enumerate(rows)]
    with TraceWriter(path) as writer:
        for step, row in enumerate(rows):
            writer.write({"step": step}, row)
    assert strict_rows(path) == [plain(row) for row in kept]


# ---- files that are already there


def test_an_existing_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"step":0}\n')
    for attempt in (lambda: TraceWriter(path), lambda: TraceWriter.check(path)):
        with pytest.raises(TraceExistsError, match="--overwrite"):
            attempt()
    assert path.read_text() == '{"step":0}\n'


def test_overwriting_replaces_the_file_and_not_what_others_hold_open(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("old\n")
    with path.open() as reader, TraceWriter(path, mode="overwrite") as writer:
        writer.write({"step": 0})
        assert reader.read() == "old\n"
    assert [row["step"] for row in strict_rows(path)] == [0]


def test_appending_goes_on_behind_whole_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for step in range(2):
        with TraceWriter(path, mode=TraceMode.APPEND) as writer:
            writer.write({"step": step})
            assert writer.repaired_bytes == 0
    assert [row["step"] for row in strict_rows(path)] == [0, 1]


def test_checking_changes_nothing(tmp_path: Path) -> None:
    for mode in TraceMode:
        TraceWriter.check(tmp_path / "new" / "deep" / "t.jsonl", mode)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", list(TraceMode))
def test_a_file_in_the_directorys_place_is_named(tmp_path: Path, mode: TraceMode) -> None:
    (tmp_path / "runs").write_text("")
    path = tmp_path / "runs" / "one" / "t.jsonl"
    for attempt in (lambda: TraceWriter(path, mode=mode), lambda: TraceWriter.check(path, mode)):
        with pytest.raises(TraceError, match="output_dir"):
            attempt()


@pytest.mark.parametrize("mode", list(TraceMode))
def test_a_link_that_leads_nowhere_is_named_and_no_trace(tmp_path: Path, mode: TraceMode) -> None:
    (tmp_path / "runs").symlink_to(tmp_path / "gone")
    path = tmp_path / "runs" / "one" / "t.jsonl"
    with pytest.raises(TraceError, match="runs is not a directory; choose another output_dir"):
        TraceWriter.check(path, mode)
    with pytest.raises(TraceError, match="cannot be written"):
        TraceWriter(path, mode=mode)


@pytest.mark.parametrize("name", ["x" * 300, "nul\0byte"], ids=["long", "nul"])
@pytest.mark.parametrize("mode", list(TraceMode))
def test_a_path_no_system_can_have_is_a_clear_error(tmp_path: Path, name: str, mode: TraceMode) -> None:
    path = tmp_path / name / "t.jsonl"
    for attempt in (lambda: TraceWriter(path, mode=mode), lambda: TraceWriter.check(path, mode)):
        with pytest.raises(TraceError, match="output_dir"):
            attempt()


def test_a_directory_in_the_traces_place_is_a_clear_error(tmp_path: Path) -> None:
    for mode in (TraceMode.OVERWRITE, TraceMode.APPEND):
        with pytest.raises(TraceError, match="cannot be written"):
            TraceWriter(tmp_path, mode=mode)
    assert tmp_path.is_dir()


def test_a_closed_trace_takes_no_row(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t.jsonl")
    writer.close()
    writer.close()
    with pytest.raises(TraceError, match="closed"):
        writer.write({"step": 0})


# ---- systems that refuse


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_names_the_step() -> None:
    refused = pytest.raises(TraceError, match="step 4 could not be written: No space")
    with TraceWriter("/dev/full", mode="append") as writer, refused:
        writer.write({"step": 4})


LIMITED = """
    import resource, sys
    from skyfall_core.errors import TraceError
    from skyfall_core.trace import TraceWriter
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    writer = TraceWriter(sys.argv[1])
    for step in range(100):
        try:
            writer.write({"step": step, "text": "x" * 50})
        except TraceError as error:
            print(error)
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    writer.write({"step": "after"})
"""


def test_a_row_that_fits_only_partly_is_taken_back(tmp_path: Path) -> None:
    path, row = tmp_path / "t.jsonl", 84
    limit = 10 * row + row // 2
    command = [sys.executable, "-c", textwrap.dedent(LIMITED), str(path), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "could not be written" in done.stdout
    steps = [row["step"] for row in strict_rows(path)]
    assert steps == [*range(len(steps) - 1), "after"]
    assert f"step {len(steps) - 1} " in done.stdout
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_row_written_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:7]))
        for step in range(3):
            writer.write({"step": step})
        monkeypatch.undo()
    assert [row["step"] for row in strict_rows(tmp_path / "t.jsonl")] == [0, 1, 2]


@pytest.mark.parametrize("interruption", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_stops_a_row_halfway_leaves_no_piece_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    real, calls = os.write, []

    def stopping(descriptor: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) == 3:
            raise interruption
        return real(descriptor, data[:7])

    with TraceWriter(tmp_path / "t.jsonl") as writer:
        writer.write({"step": 0})
        monkeypatch.setattr(os, "write", stopping)
        with pytest.raises((TraceError, KeyboardInterrupt)):
            writer.write({"step": 1})
        monkeypatch.undo()
        writer.write({"step": 2})
    assert [row["step"] for row in strict_rows(tmp_path / "t.jsonl")] == [0, 2]


def test_a_piece_that_cannot_be_taken_back_closes_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def stopping(descriptor: int, data: bytes) -> int:
        if data.endswith(b"\n") and data.startswith(b"{"):
            return real(descriptor, data[:7])
        raise OSError(5, "Input/output error")

    def refusing(descriptor: int, length: int) -> None:
        raise OSError(5, "Input/output error")

    writer = TraceWriter(tmp_path / "t.jsonl")
    writer.write({"step": 0})
    monkeypatch.setattr(os, "write", stopping)
    monkeypatch.setattr(os, "ftruncate", refusing)
    with pytest.raises(TraceError, match="step 1 could not be written"):
        writer.write({"step": 1})
    monkeypatch.undo()
    with pytest.raises(TraceError, match="closed"):
        writer.write({"step": 2})
    assert repair_torn_line(tmp_path / "t.jsonl") == 7


# ---- torn lines


@given(lengths=st.lists(st.integers(0, 400), min_size=1, max_size=6), data=st.data())
@settings(max_examples=80, deadline=None)
def test_any_truncation_costs_at_most_the_torn_row(
    lengths: list[int], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("torn") / "t.jsonl"
    with TraceWriter(path) as writer:
        for step, length in enumerate(lengths):
            writer.write({"step": step, "text": "ä" * length})
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    survivors = whole[:cut].count(b"\n")
    with TraceWriter(path, mode="append") as writer:
        assert writer.repaired_bytes == cut - (whole[:cut].rfind(b"\n") + 1)
        writer.write({"step": "next"})
    assert [row["step"] for row in strict_rows(path)] == [*range(survivors), "next"]


@pytest.mark.parametrize("size", [(1 << 16) - 1, 1 << 16, (1 << 16) + 1, 3 * (1 << 16) + 5])
def test_a_torn_line_longer_than_a_block_is_cut_off(tmp_path: Path, size: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"step":0}\n' + b"x" * size)
    assert repair_torn_line(path) == size
    assert path.read_bytes() == b'{"step":0}\n'
    path.write_bytes(b"y" * size)
    assert repair_torn_line(path) == size
    assert path.read_bytes() == b""


def test_sets_in_an_environments_record_are_written_in_one_order(tmp_path: Path) -> None:
    letters = {chr(97 + number) for number in range(26)}
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        writer.write({"step": 0}, {"tags": letters, "deep": [{"mixed": frozenset({3, "b", None})}]})
    row = json.loads((tmp_path / "t.jsonl").read_bytes())
    assert row["tags"] == sorted(letters)
    assert row["deep"] == [{"mixed": ["b", 3, None]}]
