"""The training state on disk: what comes back is what went in, and nothing in it can run."""

import math
import os

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from skyfall_core.errors import CheckpointError
from skyfall_torch.checkpoints import STATE_FILE, read_state, write_state

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=7) | st.integers(), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(state=st.dictionaries(st.text(max_size=7), values, max_size=4))
def test_plain_values_come_back_as_they_were(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("state")
    write_state(folder, state)
    assert repr(read_state(folder)) == repr(state)


def test_tensors_come_back_bit_for_bit_with_their_kind_and_shape(tmp_path):
    shared = torch.randn(4, 3)
    tensors = {
        "scalar": torch.tensor(math.pi, dtype=torch.float64),
        "view": shared.t(),
        "again": shared,
        "bytes": torch.get_rng_state(),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "none": torch.empty(0, dtype=torch.long),
        "inf": torch.tensor([math.inf, -math.inf]),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    write_state(tmp_path, {"nested": [(tensors, 1)]})
    ((found, one),) = read_state(tmp_path)["nested"]
    assert one == 1
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor), name
        assert found[name].dtype == tensor.dtype
        assert not found[name].requires_grad


def test_what_a_state_cannot_hold_is_refused_and_leaves_the_old_one(tmp_path):
    write_state(tmp_path, {"updates": 1})
    with pytest.raises(TypeError, match="cannot hold a object"):
        write_state(tmp_path, {"updates": 2, "more": object()})
    assert read_state(tmp_path) == {"updates": 1}


def test_a_state_of_the_first_format_is_still_read_and_replaced_when_written(tmp_path):
    state = {"updates": 3, "optimizer": {"state": {0: {"step": torch.tensor(2.0)}}}}
    torch.save({"format": 1, **state}, tmp_path / "training_state.pt")
    found = read_state(tmp_path)
    assert found.pop("format") == 1
    assert found == state
    write_state(tmp_path, state)
    assert [path.name for path in tmp_path.iterdir()] == [STATE_FILE]
    assert read_state(tmp_path) == state


class Exploit:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def test_code_in_a_state_of_the_first_format_is_refused_and_not_run(tmp_path):
    torch.save({"format": 1, "x": Exploit(tmp_path / "ran")}, tmp_path / "training_state.pt")
    with pytest.raises(CheckpointError, match="more than tensors and plain values"):
        read_state(tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({}, "format None"),
        ({"format": "3", "state": "{}"}, "format '3'; this version reads 1 and 2"),
        ({"format": "2"}, "damaged"),
        ({"format": "2", "state": "{"}, "damaged"),
        ({"format": "2", "state": "[]"}, "a list instead of a state"),
        ({"format": "2", "state": '{"pairs": [["a", {"tensor": "9"}]]}'}, "damaged"),
        ({"format": "2", "state": '{"pairs": [["a"]]}'}, "damaged"),
        ({"format": "2", "state": '{"code": "os.system"}'}, "unknown kind of value 'code'"),
        ({"format": "2", "state": '{"pairs": [], "tuple": []}'}, "damaged"),
    ],
    ids=str,
)
def test_a_damaged_header_is_refused(tmp_path, header, message):
    safetensors.torch.save_file({"0": torch.ones(1)}, tmp_path / STATE_FILE, metadata=header)
    with pytest.raises(CheckpointError, match=message):
        read_state(tmp_path)
