"""The Fourier basis on observations small enough to work out by hand."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from skyfall_core.baselines.fourier import FourierBasis
from skyfall_core.errors import ConfigError, SpaceError

UNIT = spaces.Box(0.0, 1.0, (1,), np.float64)
LINE = spaces.Box(-np.inf, np.inf, (1,), np.float64)


def test_features_of_one_entry_by_hand() -> None:
    basis = FourierBasis(UNIT, order=3)
    assert basis([0.0]) == pytest.approx([1.0, 1.0, 1.0, 1.0])
    assert basis([0.5]) == pytest.approx([1.0, 0.0, -1.0, 0.0], abs=1e-12)
    assert basis([1.0]) == pytest.approx([1.0, -1.0, 1.0, -1.0])


def test_full_basis_holds_every_combination_once() -> None:
    basis = FourierBasis(spaces.Box(0.0, 1.0, (2,)), order=2, interactions=None)
    assert basis.size == 9
    assert sorted(map(tuple, basis.coefficients.tolist())) == [(i, j) for i in range(3) for j in range(3)]


def test_interactions_limit_how_many_entries_one_feature_combines() -> None:
    basis = FourierBasis(spaces.Box(0.0, 1.0, (4,)), order=3, interactions=2)
    assert basis.size == 1 + 4 * 3 + 6 * 9
    assert np.count_nonzero(basis.coefficients, axis=1).max() == 2
    assert len({tuple(row) for row in basis.coefficients.tolist()}) == basis.size


def test_more_interactions_than_entries_are_all_of_them() -> None:
    assert FourierBasis(spaces.Box(0.0, 1.0, (2,)), order=1, interactions=9).size == 4


def test_step_sizes_shrink_with_the_frequency() -> None:
    basis = FourierBasis(spaces.Box(0.0, 1.0, (2,)), order=4, interactions=None)
    scale = dict(zip(map(tuple, basis.coefficients.tolist()), basis.step_scale.tolist(), strict=True))
    assert scale[0, 0] == 1.0
    assert scale[0, 2] == 0.5
    assert scale[3, 4] == pytest.approx(0.2)


def test_space_bounds_are_scaled_and_clipped() -> None:
    basis = FourierBasis(spaces.Box(-2.0, 6.0, (1,)), order=1)
    assert basis([0.0])[1] == pytest.approx(math.cos(math.pi / 4))
    assert basis([-99.0])[1] == pytest.approx(1.0)
    assert basis([99.0])[1] == pytest.approx(-1.0)


def test_given_range_beats_the_space() -> None:
    space = spaces.Box(-2.0, 6.0, (2,))
    basis = FourierBasis(space, order=1, ranges=[[0, 4], None], interactions=1)
    assert basis([1.0, 0.0])[1:] == pytest.approx([math.cos(math.pi / 4)] * 2)


@pytest.mark.parametrize("bound", [np.inf, float(np.finfo(np.float32).max), 1e7])
def test_unbounded_entry_is_squashed(bound: float) -> None:
    basis = FourierBasis(spaces.Box(np.array([-bound]), np.array([bound]), dtype=np.float64), order=1)
    assert basis([0.0])[1] == pytest.approx(0.0, abs=1e-12)
    assert basis([1.0])[1] == pytest.approx(-math.sqrt(0.5))
    assert basis([np.inf])[1] == pytest.approx(-1.0)


def test_half_bounded_entry_is_squashed() -> None:
    basis = FourierBasis(spaces.Box(np.array([0.0]), np.array([np.inf]), dtype=np.float64), order=1)
    assert basis([1.0])[1] == pytest.approx(-math.sqrt(0.5))


def test_constant_entry_divides_by_nothing() -> None:
    basis = FourierBasis(spaces.Box(2.0, 2.0, (1,)), order=2)
    assert basis([2.0]) == pytest.approx([1.0, 1.0, 1.0])


def test_observation_is_not_changed() -> None:
    observation = np.array([5.0])
    FourierBasis(LINE, order=1)(observation)
    FourierBasis(UNIT, order=1)(observation)
    assert observation.tolist() == [5.0]


def test_integer_image_is_read_flattened() -> None:
    basis = FourierBasis(spaces.Box(0, 255, (2, 2), np.uint8), order=1, interactions=1)
    image = np.array([[0, 255], [255, 0]], dtype=np.uint8)
    assert basis(image) == pytest.approx([1.0, 1.0, -1.0, -1.0, 1.0])


@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), min_size=1, max_size=5))
def test_batch_is_one_after_the_other(rows: list[list[float]]) -> None:
    basis = FourierBasis(gym.make("CartPole-v1").observation_space, ranges=[None, [-3, 3], None, None])
    batch = basis.batch([np.array(row) for row in rows])
    assert batch.shape == (len(rows), basis.size)
    assert np.abs(batch).max() <= 1.0
    np.testing.assert_allclose(batch, [basis(row) for row in rows], atol=1e-9)


@pytest.mark.parametrize(
    "space", [spaces.Discrete(3), spaces.Dict({"a": UNIT}), spaces.MultiBinary(2)], ids=str
)
def test_other_spaces_are_refused_by_name(space: gym.Space[object]) -> None:
    with pytest.raises(SpaceError, match="handles Box only") as raised:
        FourierBasis(space)
    assert str(space) in str(raised.value)


def test_basis_that_would_not_fit_is_refused_with_a_remedy() -> None:
    with pytest.raises(SpaceError, match="lower `order` or `interactions`"):
        FourierBasis(spaces.Box(0, 255, (84, 84), np.uint8))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": 0}, "order is 0"),
        ({"order": 2.5}, "order is 2.5"),
        ({"interactions": 0}, "interactions is 0"),
        ({"interactions": True}, "interactions is True"),
        ({"ranges": [[0, 1], [0, 1]]}, "2 given, but Box"),
        ({"ranges": [[1, 0]]}, r"ranges\[0\] is \[1, 0\]"),
        ({"ranges": [[0, 1, 2]]}, r"ranges\[0\]"),
        ({"ranges": [[0, math.inf]]}, r"ranges\[0\]"),
    ],
)
def test_argument_out_of_range_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FourierBasis(UNIT, **arguments)  # type: ignore[arg-type]
