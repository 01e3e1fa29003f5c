"""What is left of the memory, by the machine's word and by a container's."""

from pathlib import Path

import pytest

from skyfall_core.executors.memory import available_mb, peak_mb

MEMINFO = "MemTotal:       24105000 kB\nMemFree:          1000 kB\nMemAvailable:    2097152 kB\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc").mkdir()
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    return tmp_path


def limit(root: Path, most: str, current: int, inactive: int) -> None:
    folder = root / "sys/fs/cgroup"
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.current").write_text(f"{current}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {inactive}\n")


def test_machine_says_what_is_available(root: Path) -> None:
    assert available_mb(root) == 2048


def test_container_without_a_limit_changes_nothing(root: Path) -> None:
    limit(root, "max", 500, 0)
    assert available_mb(root) == 2048


@pytest.mark.parametrize(("inactive", "left"), [(0, 768), (100 << 20, 868)])
def test_container_leaves_its_limit_less_what_it_cannot_drop(root: Path, inactive: int, left: int) -> None:
    limit(root, str(1 << 30), 256 << 20, inactive)
    assert available_mb(root) == left


def test_container_above_its_limit_leaves_nothing(root: Path) -> None:
    limit(root, "100", 200, 0)
    assert available_mb(root) == 0


def test_elsewhere_it_is_a_number_or_unknown(tmp_path: Path) -> None:
    free = available_mb(tmp_path)
    assert free is None or free > 0


def test_peak_is_told_in_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    assert peak_mb(2048) == 2
    monkeypatch.setattr("sys.platform", "darwin")
    assert peak_mb(2 << 20) == 2
