import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skyfall_torch.lcm_features import (
    CANONICAL_REGIMES,
    STATE_DIM,
    HashMode,
    regime_description,
    state_features,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text()
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)
ENVIRONMENT = {"finance": {"cash": 3, "debts": [{"owner": "a", "due": 1}]}, "staff": 4}


def replace_values(state):
    """The same structure with every number and text replaced."""
    if isinstance(state, dict):
        return {key: replace_values(value) for key, value in state.items()}
    if isinstance(state, list):
        return [replace_values(item) for item in state]
    return "something else"


def test_vector_has_the_documented_length_and_writes_only_the_first_256():
    features = state_features({f"key {i}": i for i in range(3000)})
    assert len(features) == STATE_DIM == 4096
    assert set(features[:256]) == {1.0}
    assert not any(features[256:])


@given(JSON)
def test_values_are_never_read(state):
    assert state_features(state) == state_features(replace_values(state))


@given(JSON, st.integers(1, 5))
def test_lists_of_any_length_look_the_same(item, times):
    assert state_features({"rows": [item]}) == state_features({"rows": [item] * times})


def test_each_new_key_path_can_only_add():
    smaller = state_features({"finance": {"cash": 1}})
    larger = state_features(ENVIRONMENT)
    assert all(b >= a for a, b in zip(smaller, larger, strict=True))
    assert sum(larger) > sum(smaller) == 2.0


def test_paths_are_dotted_without_list_indices():
    flat = {"finance": 0, "finance.cash": 0, "finance.debts": 0, "finance.debts.owner": 0,
            "finance.debts.due": 0, "staff": 0}  # fmt: skip
    assert state_features(ENVIRONMENT) == state_features(flat)


def test_width_below_256_uses_every_bucket_of_it():
    assert state_features({f"k{i}": 0 for i in range(400)}, width=8) == [1.0] * 8


def features_elsewhere(hash_seed, mode):
    program = (
        "import json, sys; from skyfall_torch.lcm_features import state_features;"
        "state, mode = json.loads(sys.argv[1]); print(json.dumps(state_features(state, hash_mode=mode)))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, json.dumps([ENVIRONMENT, mode])],
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    )
    return json.loads(finished.stdout)


def test_stable_features_are_the_same_in_processes_with_other_hash_seeds():
    assert (
        features_elsewhere("1", "stable") == features_elsewhere("2", "stable") == state_features(ENVIRONMENT)
    )


def test_python_features_depend_on_the_hash_seed():
    assert features_elsewhere("1", "python") != features_elsewhere("2", "python")


def test_python_mode_uses_the_interpreters_hash():
    features = state_features({"cash": 1}, hash_mode=HashMode.PYTHON)
    assert [i for i, f in enumerate(features) if f] == [hash("cash") % 256]


@pytest.mark.parametrize("state", [3, "text", None, np.arange(4.0), np.float32(2), [1, [2, 3]], {}, ()])
def test_observations_without_keys_give_zeros(state):
    assert not any(state_features(state))


def test_arrays_inside_mappings_count_as_lists():
    assert state_features({"a": np.zeros((2, 2))}) == state_features({"a": [[0, 1], [2, 3]]})


@pytest.mark.parametrize("alien", [object(), b"bytes", {1, 2}, 1j])
def test_what_is_not_json_like_is_refused_with_its_place(alien):
    with pytest.raises(TypeError, match=f"'outer.inner' is a {type(alien).__name__}"):
        state_features({"outer": {"inner": alien}})


def test_width_below_one_is_refused():
    with pytest.raises(ValueError, match="width is 0"):
        state_features({}, width=0)


def logits_for(**probabilities):
    rest = (1 - sum(probabilities.values())) / (len(CANONICAL_REGIMES) - len(probabilities))
    return [float(np.log(probabilities.get(name, rest))) for name in CANONICAL_REGIMES]


def test_description_is_worded_exactly_as_the_reference_words_it():
    logits = logits_for(financial_pressure=0.68, edi_spike=0.19)
    expected = "[REGIME: financial_pressure(0.68) | edi_spike(0.19)]"
    assert regime_description(logits) == expected
    assert regime_description(torch.tensor(logits)) == expected


def test_description_of_an_untrained_head_is_uniform_in_canonical_order():
    assert regime_description([0.0] * 6) == "[REGIME: baseline(0.17) | edi_spike(0.17)]"


def test_description_of_more_names_than_there_are_mentions_them_all():
    assert regime_description([0.0, 0.0], names=("a", "b"), top_k=9) == "[REGIME: a(0.50) | b(0.50)]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(([0.0] * 3,), "3 logits for 6"), (([], ()), "0 logits"), (([1.0], ("a",), 0), "top_k is 0")],
)
def test_descriptions_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        regime_description(*arguments)
