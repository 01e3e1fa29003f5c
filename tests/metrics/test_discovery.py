"""Which files are traces."""

import pytest

from skyfall_metrics.discovery import find_all_traces, find_traces
from skyfall_metrics.errors import TraceError
from skyfall_metrics.reader import read_trace


@pytest.fixture
def runs(tmp_path):
    for name in ("b/1/traces.jsonl", "a/0/traces.jsonl.gz", "a/0/windows.jsonl", "c/traces.jsonl.zst"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_every_run_below_a_directory_is_found_in_order(runs):
    found = [str(path.relative_to(runs)) for path in find_traces(runs)]
    assert found == ["a/0/traces.jsonl.gz", "b/1/traces.jsonl", "c/traces.jsonl.zst"]


def test_file_is_taken_whatever_its_name(runs):
    assert find_traces(runs / "a/0/windows.jsonl") == [runs / "a/0/windows.jsonl"]


def test_pattern_of_the_callers(runs):
    assert [path.name for path in find_traces(runs, "win*.jsonl")] == ["windows.jsonl"]


def test_file_reached_twice_counts_once(runs):
    assert len(find_all_traces([runs, runs / "b", runs / "b/1/traces.jsonl"])) == 3


def test_links_to_directories_are_not_followed(runs):
    (runs / "b/loop").symlink_to(runs, target_is_directory=True)
    assert len(find_traces(runs)) == 3


def problem(path):
    with pytest.raises(TraceError) as caught:
        find_traces(path)
    return str(caught.value).removeprefix(f"{path}: ")


def test_directory_without_traces(tmp_path):
    assert problem(tmp_path) == "no 'traces.jsonl' in this directory or below it"


def test_directory_with_other_logs_says_how_to_name_them(runs):
    (runs / "a/0/traces.jsonl.gz").unlink()
    assert problem(runs / "a") == (
        "no 'traces.jsonl' in this directory or below it, but 1 other .jsonl (first '0/windows.jsonl'): "
        "name the files, or pass a pattern such as '*.jsonl'"
    )


def test_absent_path(tmp_path):
    assert problem(tmp_path / "gone") == "no such file or directory"


def test_link_that_leads_to_itself_is_refused_where_it_is_read(tmp_path):
    (tmp_path / "traces.jsonl").symlink_to("traces.jsonl")
    (trace,) = find_all_traces([tmp_path])
    with pytest.raises(TraceError, match=r"traces\.jsonl: cannot read: "):
        read_trace(trace)


def test_plain_and_compressed_copy_of_one_run(runs):
    (runs / "a/0/traces.jsonl").touch()
    with pytest.raises(TraceError) as caught:
        find_traces(runs)
    assert str(caught.value) == (
        f"{runs}/a/0/traces.jsonl.gz: the same run lies here twice; remove it or 'traces.jsonl'"
    )


def test_directory_that_cannot_be_listed(runs, unprivileged):
    (runs / "b").chmod(0)
    with unprivileged(), pytest.raises(TraceError) as caught:
        find_traces(runs)
    (runs / "b").chmod(0o755)
    assert str(caught.value) == f"{runs}/b: cannot list the directory: Permission denied"
