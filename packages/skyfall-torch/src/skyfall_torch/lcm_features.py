"""What the latent context model sees of an observation, and how it words what it infers.

The features are a bag of key paths: the structure of an observation, none of its values. Two states
with the same keys and different numbers are the same to this model, and a list of one item looks
like a list of a hundred. That is the reference's featurisation, kept so that runs stay comparable.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = [
    "CANONICAL_REGIMES",
    "STATE_DIM",
    "WRITTEN_DIM",
    "HashMode",
    "feature_buckets",
    "regime_description",
    "state_features",
]

STATE_DIM = 4096
"""Length of a feature vector; a placeholder of the reference's, mostly zeros."""

WRITTEN_DIM = 256
"""How many of the entries, from the first on, can ever be other than zero."""

CANONICAL_REGIMES = (
    "baseline",
    "edi_spike",
    "infra_degradation",
    "financial_pressure",
    "workforce_constrained",
    "baseline_revisit",
)


class HashMode(str, Enum):
    """Which hash puts a key path into its bucket.

    `STABLE` is the same in every process. `PYTHON` is the interpreter's own, salted per process
    unless PYTHONHASHSEED is set: features of two runs are then in different bases, as in the
    reference.
    """

    STABLE = "stable"
    PYTHON = "python"


def state_features(
    state: Any, *, hash_mode: HashMode | str = HashMode.STABLE, width: int = STATE_DIM
) -> list[float]:
    """Which key paths an observation has, hashed into buckets.

    Args:
        state: A JSON-like observation: mappings, lists, tuples, text, numbers, booleans, None. NumPy
            arrays and scalars count as lists and numbers; they have no keys, so a plain array gives
            zeros.
        hash_mode: The hash.
        width: Length of the vector, at least 1. Buckets are its first 256 entries, or all if fewer.

    Returns:
        `width` numbers, 1.0 where some key path of the observation falls and 0.0 elsewhere.

    Raises:
        TypeError: For a part of the observation that is not JSON-like, naming its key path.
        ValueError: For a width below 1 or an unknown hash mode.
    """
    if width < 1:
        raise ValueError(f"width is {width!r}; a feature vector has at least 1 entry")
    features = [0.0] * width
    for bucket in feature_buckets(state, HashMode(hash_mode), min(WRITTEN_DIM, width)):
        features[bucket] = 1.0
    return features


def feature_buckets(state: Any, hash_mode: HashMode, buckets: int) -> frozenset[int]:
    """The entries of the feature vector that are 1.

    Args:
        state: A JSON-like observation.
        hash_mode: The hash.
        buckets: How many entries can be written.

    Raises:
        TypeError: For a part of the observation that is not JSON-like.
    """
    bucket_of = _stable_hash if hash_mode is HashMode.STABLE else hash
    return frozenset(bucket_of(path) % buckets for path in set(_key_paths(state, "")))


@lru_cache(maxsize=65536)
def _stable_hash(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _key_paths(state: Any, prefix: str) -> Iterator[str]:
    """Dotted key paths, list items under the path of their list."""
    if isinstance(state, Mapping):
        for key, value in state.items():
            path = f"{prefix}.{key}" if prefix else str(key)
            yield path
            yield from _key_paths(value, path)
    elif isinstance(state, list | tuple):
        for item in state:
            yield from _key_paths(item, prefix)
    elif isinstance(state, np.ndarray) and state.dtype.hasobject:
        yield from _key_paths(state.tolist(), prefix)
    elif not (state is None or isinstance(state, str | bool | int | float | np.ndarray | np.generic)):
        where = f"at {prefix!r}" if prefix else "as a whole"
        raise TypeError(
            f"observation {where} is a {type(state).__name__}, which is not JSON-like; the latent context "
            "model reads mappings, lists, text and numbers: convert it in an observation wrapper"
        )


def regime_description(
    logits: Sequence[float], names: Sequence[str] = CANONICAL_REGIMES, top_k: int = 2
) -> str:
    """The prompt prefix that tells the policy which configurations seem likely.

    The wording is part of what a policy was trained on, so it never changes. Nothing trains the
    classifier online: without a warm-up its probabilities are near uniform and mean nothing.

    Args:
        logits: One a configuration (a sequence or a one-dimensional tensor).
        names: The configurations, in the order of the logits.
        top_k: How many to mention, most likely first; ties in the order of `names`.

    Returns:
        Such as `[REGIME: financial_pressure(0.68) | edi_spike(0.19)]`.

    Raises:
        ValueError: If logits and names differ in number, there are none, or `top_k` is below 1.
    """
    scores = [float(logit) for logit in logits]
    if len(scores) != len(names) or not scores:
        raise ValueError(f"{len(scores)} logits for {len(names)} regime names; each name needs one")
    if top_k < 1:
        raise ValueError(f"top_k is {top_k!r}; the prefix mentions at least 1 regime")
    peak = max(scores)
    weights = [math.exp(score - peak) for score in scores]
    total = sum(weights)
    ranked = sorted(zip(weights, names, strict=True), key=lambda pair: -pair[0])[:top_k]
    return "[REGIME: " + " | ".join(f"{name}({weight / total:.2f})" for weight, name in ranked) + "]"
