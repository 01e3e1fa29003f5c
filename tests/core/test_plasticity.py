"""Effective rank against hand arithmetic, eigenvalues and a slow loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skyfall_core.plasticity import effective_rank_entropy, stable_rank

matrices = arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    elements=st.floats(-100, 100, allow_subnormal=False).map(lambda value: round(value, 3)),
).filter(lambda matrix: bool(np.abs(matrix).max() > 0))


def shares_from_gram_matrix(matrix: np.ndarray) -> np.ndarray:
    """The same shares by another road: square roots of the eigenvalues of A·Aᵀ, largest first."""
    values = np.sqrt(np.clip(np.linalg.eigvalsh(matrix @ matrix.T), 0.0, None))[::-1]
    return values / values.sum()


def test_flat_spectrum_has_full_rank() -> None:
    assert effective_rank_entropy(np.eye(5)) == pytest.approx(5.0)
    assert stable_rank(np.eye(5)) == 5


def test_one_direction_has_rank_one() -> None:
    matrix = np.outer([1.0, 2.0, 3.0], [4.0, 5.0])
    assert effective_rank_entropy(matrix) == pytest.approx(1.0)
    assert stable_rank(matrix) == 1


def test_zero_singular_value_adds_nothing_and_is_no_nan() -> None:
    assert effective_rank_entropy(np.diag([1.0, 1.0, 0.0])) == pytest.approx(2.0)


def test_uneven_spectrum_by_hand() -> None:
    # Singular values 3 and 1: shares 3/4 and 1/4, exp of their entropy is 4 / 3^(3/4).
    assert effective_rank_entropy([[3, 0], [0, -1]]) == pytest.approx(4 / 3**0.75)


@pytest.mark.parametrize(("threshold", "expected"), [(0.5, 1), (0.75, 1), (0.76, 2), (1.0, 2)])
def test_stable_rank_counts_shares_of_the_plain_sum(threshold: float, expected: int) -> None:
    assert stable_rank(np.diag([3.0, 1.0]), threshold) == expected


def test_stable_rank_is_not_the_textbook_ratio() -> None:
    matrix = np.diag([3.0, 1.0])
    assert np.sum(matrix**2) / 3.0**2 == pytest.approx(10 / 9)
    assert stable_rank(matrix) == 2


@pytest.mark.parametrize(
    "features",
    [
        np.empty((0, 4)),
        np.empty((4, 0)),
        [1.0, 2.0],
        3.0,
        np.zeros((3, 2, 2)),
        np.zeros((3, 2)),
        [[1.0, math.nan]],
        [[1.0, math.inf]],
        np.full((2, 2), 1.7e308) * np.eye(2),
    ],
    ids=[
        "no rows",
        "no columns",
        "vector",
        "scalar",
        "three axes",
        "all zero",
        "nan",
        "inf",
        "sum overflows",
    ],
)
def test_what_has_no_rank_reads_none(features: object) -> None:
    assert effective_rank_entropy(features) is None  # type: ignore[arg-type]
    assert stable_rank(features) is None  # type: ignore[arg-type]


def test_decomposition_that_does_not_converge_reads_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def diverge(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", diverge)
    assert effective_rank_entropy(np.eye(2)) is None
    assert stable_rank(np.eye(2)) is None


@pytest.mark.parametrize("threshold", [0.0, -0.1, 1.01, math.nan])
def test_threshold_outside_its_range_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold is"):
        stable_rank(np.eye(2), threshold)


@given(matrices)
def test_effective_rank_lies_between_one_and_the_smaller_side(matrix: np.ndarray) -> None:
    rank = effective_rank_entropy(matrix)
    assert rank is not None
    assert 1.0 - 1e-9 <= rank <= min(matrix.shape) + 1e-9


@given(matrices)
def test_effective_rank_agrees_with_eigenvalues(matrix: np.ndarray) -> None:
    shares = shares_from_gram_matrix(matrix)
    entropy = -sum(share * math.log(share) for share in shares if share > 0)
    # Squaring loses half the digits of the small singular values.
    assert effective_rank_entropy(matrix) == pytest.approx(math.exp(entropy), abs=1e-4)


@given(matrices, st.floats(0.01, 100))
def test_effective_rank_ignores_scale_and_orientation(matrix: np.ndarray, factor: float) -> None:
    rank = effective_rank_entropy(matrix)
    assert effective_rank_entropy(matrix * factor) == pytest.approx(rank)
    assert effective_rank_entropy(matrix.T) == pytest.approx(rank)
    assert effective_rank_entropy(matrix[::-1]) == pytest.approx(rank)


@given(matrices, st.floats(0.05, 1.0), st.floats(0.05, 1.0))
def test_stable_rank_grows_with_the_threshold(matrix: np.ndarray, first: float, second: float) -> None:
    low, high = sorted((first, second))
    at_low, at_high = stable_rank(matrix, low), stable_rank(matrix, high)
    assert at_low is not None
    assert at_high is not None
    assert 1 <= at_low <= at_high <= min(matrix.shape)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.floats(0.05, 0.999))
def test_stable_rank_agrees_with_a_slow_loop(diagonal: list[int], threshold: float) -> None:
    values = sorted(diagonal, reverse=True)
    held, expected = 0.0, 0
    while held < threshold * sum(values) * (1 - 1e-12):
        held += values[expected]
        expected += 1
    assert stable_rank(np.diag(np.array(diagonal, dtype=float)), threshold * (1 - 1e-12)) == expected
