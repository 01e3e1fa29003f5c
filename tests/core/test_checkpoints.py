"""A checkpoint is whole or passed over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core.checkpoints import newest_checkpoint, write_checkpoint
from skyfall_core.encoding import decode, encode
from skyfall_core.errors import CheckpointError


def two_checkpoints(folder: Path) -> None:
    for step in (10, 20):
        state = {"lengths": {"trace": step}, "step": step}
        write_checkpoint(
            folder, step, state, lambda path: path.write_bytes(bytes(range(50))) and None, keep=2
        )


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_flipped_byte_or_cut_is_noticed_and_the_one_before_used(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("run")
    two_checkpoints(folder)
    newest = folder / "checkpoints" / "step-000000000020"
    file = newest / data.draw(st.sampled_from(["manifest.json", "state.json", "algorithm"]))
    content = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] ^= data.draw(st.integers(1, 255))
    else:
        del content[at:]
        if file.name == "manifest.json" and at == len(file.read_bytes()) - 1:
            return  # only the line end behind the manifest is gone: every byte that counts is there
    file.write_bytes(bytes(content))
    found = newest_checkpoint(folder, {"trace": 100})
    assert found is not None
    assert found.step == 10


def test_a_checkpoint_behind_the_traces_end_is_passed_over(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    found = newest_checkpoint(tmp_path, {"trace": 15})
    assert found is not None
    assert found.step == 10


def test_only_damaged_checkpoints_are_a_clear_error(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    for state in tmp_path.rglob("state.json"):
        state.write_bytes(b"{")
    with pytest.raises(CheckpointError, match=r"no checkpoint here is whole; begin again with --overwrite"):
        newest_checkpoint(tmp_path, {})


def test_values_come_back_with_their_types() -> None:
    value = {"a": (1, np.float32(2.5), b"x"), 3: np.arange(6, dtype="<i2").reshape(2, 3), "n": float("inf")}
    back = decode(encode(value))
    assert back["a"] == value["a"]
    assert type(back["a"][1]) is np.float32
    assert back[3].dtype == value[3].dtype
    assert back[3].tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(TypeError):
        encode(object())
