"""Effective rank: how many independent directions a policy's representation still uses.

A network trained through one configuration after another tends to squeeze its activations into fewer
directions, and a representation that has collapsed cannot fit the next configuration whatever reward
it is shown. Both readings here are taken from the singular values σ of an activation matrix, as
shares p_i = σ_i / Σσ.

Only the arithmetic lives here, on NumPy; whoever owns a model captures its activations. Something
that has no rank (an empty matrix, a vector, all zeros, values that are not finite, a decomposition
that does not converge) reads None and never ends a run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["effective_rank_entropy", "stable_rank"]


def effective_rank_entropy(features: ArrayLike) -> float | None:
    """The exponential of the Shannon entropy of the singular-value shares.

    1 when one direction holds everything, `min(features.shape)` when all hold the same.

    Args:
        features: Activations, (tokens, hidden).

    Returns:
        A real number in [1, min(features.shape)], or None where there is no rank to report.

    Source: Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality", EUSIPCO.
    """
    shares = _singular_value_shares(features)
    if shares is None:
        return None
    held = shares[shares > 0.0]  # the limit of p·log p at 0 is 0, but 0·log 0 is NaN
    return float(np.exp(-np.sum(held * np.log(held))))


def stable_rank(features: ArrayLike, threshold: float = 0.99) -> int | None:
    """The smallest k whose k largest singular values hold `threshold` of their sum.

    The cumulative form. The textbook's stable rank, ‖A‖²_F / σ²_max, is another number.

    Args:
        features: Activations, (tokens, hidden).
        threshold: Share to reach, in (0, 1].

    Returns:
        An integer in [1, min(features.shape)], or None where there is no rank to report.

    Raises:
        ValueError: If `threshold` is outside (0, 1].
    """
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold is {threshold!r}: give a share in (0, 1]")
    shares = _singular_value_shares(features)
    if shares is None:
        return None
    reached = int(np.searchsorted(np.cumsum(shares), threshold)) + 1
    return min(reached, len(shares))  # rounding may leave the whole sum just below a threshold of 1


def _singular_value_shares(features: ArrayLike) -> NDArray[np.float64] | None:
    """Singular values over their sum, largest first; None where there is nothing to share out."""
    matrix = np.asarray(features, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0 or not np.isfinite(matrix).all():
        return None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.linalg.svd(matrix, compute_uv=False)
            total = values.sum()
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(total) or total <= 0.0:
        return None
    return np.asarray(values / total, dtype=np.float64)
