"""Standard output that takes no more ends a command with one line and status 1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SKYFALL = Path(sys.executable).with_name("skyfall")
FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["plugins"], ["plugins", "--json"], ["--version"], ["--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line_and_status_1(arguments: list[str], unbuffered: str) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with FULL.open("w") as full:
        done = subprocess.run(
            [SKYFALL, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment,
        )
    assert done.returncode == 1
    assert done.stderr == "error: standard output: No space left on device; the result was not written\n"


def test_a_reader_that_has_gone_gets_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [SKYFALL, "plugins"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1
