"""What is written whole stays whole, also when the process is killed between writing and renaming."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skyfall_core.atomic import put_in_place, whole_file, write_whole

KILLED_BEFORE_RENAMING = """
import os, signal, sys
from pathlib import Path

import numpy as np

from skyfall_core.atomic import put_in_place, write_whole
from skyfall_core.baselines.storage import write_checkpoint

def die(*names):
    os.kill(os.getpid(), signal.SIGKILL)

Path.replace = Path.rename = die
folder, how = Path(sys.argv[1]), sys.argv[2]
if how == "file":
    write_whole(folder / "kept", b"new")
elif how == "folder":
    (folder / "partial").mkdir()
    (folder / "partial" / "file").write_bytes(b"new")
    put_in_place(folder / "partial", folder / "kept")
else:
    write_checkpoint(folder / "kept", "random", {}, {"weights": np.ones(3)})
"""


@pytest.mark.parametrize(
    ("how", "kept"), [("file", "kept"), ("folder", "kept/file"), ("baseline", "kept/baseline.npz")]
)
def test_a_process_killed_before_the_rename_leaves_the_old_content_whole(
    tmp_path: Path, how: str, kept: str
) -> None:
    (tmp_path / kept).parent.mkdir(exist_ok=True)
    (tmp_path / kept).write_bytes(b"old")
    command = [sys.executable, "-c", KILLED_BEFORE_RENAMING, str(tmp_path), how]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert (tmp_path / kept).read_bytes() == b"old"
    partial = [path for path in tmp_path.rglob("*") if "partial" in path.name]
    assert partial  # the crash came after the writing, not before it


def test_what_a_killed_process_left_is_overwritten(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_BEFORE_RENAMING, str(tmp_path), "file"]
    subprocess.run(command, check=False)
    write_whole(tmp_path / "kept", b"newer")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("kept", b"newer")]


def test_a_block_that_fails_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"old")

    def write() -> None:
        with whole_file(tmp_path / "kept") as file:
            file.write(b"ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("kept", b"old")]


def test_a_rename_that_is_refused_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    real = Path.rename

    def refusing(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise OSError("refused")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", refusing)
    with pytest.raises(OSError, match="refused"):
        put_in_place(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old" / "file").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


def test_a_folder_is_replaced_with_all_it_held(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
    put_in_place(tmp_path / "new", tmp_path / "old")
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == ["old", "old/new"]
