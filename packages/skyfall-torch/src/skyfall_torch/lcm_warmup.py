"""Offline warm-up of the context encoder on recorded traces whose configurations are known.

Cross-entropy trains the regime classifier, which nothing trains online, and the consistency loss the
latent. Windows begin anew at every shift, as they do in a run. The last part of each stretch of one
configuration is held out, so that no measured window overlaps a training window of its own stretch.
"""

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from skyfall_core.errors import InputError, suggestion
from skyfall_torch.errors import WarmupError
from skyfall_torch.lcm_encoder import (
    ContextTable,
    EncoderConfig,
    RegimeContextEncoder,
    consistency_loss,
    context_windows,
    encoder_config,
)
from skyfall_torch.lcm_features import WRITTEN_DIM, feature_buckets
from skyfall_torch.lcm_warmup_config import WarmupDocument
from skyfall_torch.lcm_warmup_file import save_warmup
from skyfall_torch.randomness import OwnRandomness

__all__ = ["WarmupResult", "train_warmup"]

_REMEDY = "nothing was written; lower training.learning_rate or training.consistency_coeff"


@dataclass(frozen=True, slots=True)
class WarmupResult:
    """What a warm-up reached.

    Attributes:
        accuracy: Share of held-out steps recognized.
        accuracy_by_regime: The same, by configuration that occurred.
        held_out_steps: Held-out steps by configuration.
        training_steps: Steps trained on.
        loss: The last training loss.
    """

    accuracy: float
    accuracy_by_regime: Mapping[str, float]
    held_out_steps: Mapping[str, int]
    training_steps: int
    loss: float


@dataclass(slots=True)
class _Stretch:
    """Consecutive steps of one world under one configuration."""

    regime: int
    buckets: list[frozenset[int]]
    episodes: list[int]


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows with their labels and the lengths of the episode pieces they make up."""

    table: ContextTable
    labels: Tensor
    lengths: list[int]


def train_warmup(document: WarmupDocument) -> WarmupResult:
    """Train an encoder, measure it on what was held out, and write it.

    Args:
        document: What to train on and how.

    Returns:
        Accuracy per configuration and what it rests on.

    Raises:
        ConfigError: If the encoder's shape is impossible.
        InputError: If a trace is missing, damaged, without observations, or of unknown configurations, or
            the result could not be written.
        WarmupError: If training came to a number that is not finite; nothing is written.
    """
    shape = encoder_config(document.encoder, "encoder")
    stretches = [stretch for trace in document.traces for stretch in _stretches(trace, shape)]
    training, held_out = _split(stretches, shape, document.training.held_out)
    randomness = OwnRandomness(document.training.seed)
    _require_writable(document.output)
    with randomness.active():
        encoder = RegimeContextEncoder(shape)
        loss = _fit(encoder, training, document)
    save_warmup(encoder, document.output)
    return _measured(encoder, held_out, len(training.labels), loss)


def _require_writable(output: Path) -> None:
    """Find out before training, not after it, whether the result can be written."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise InputError(
            f"output {str(output)!r}: cannot be written ({error}); choose another file"
        ) from None
    if output.is_dir():
        raise InputError(f"output {str(output)!r}: is a directory; name a file")


def _fit(encoder: RegimeContextEncoder, windows: _Windows, document: WarmupDocument) -> float:
    options = document.training
    optimizer = torch.optim.Adam(encoder.parameters(), lr=options.learning_rate)
    value = 0.0
    for step in range(options.steps):
        latents, logits = encoder.encode(windows.table)
        drift = consistency_loss(latents, windows.lengths)
        loss = cross_entropy(logits, windows.labels) + options.consistency_coeff * drift
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimizer.step()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise WarmupError(f"the loss of training step {step} is {value}; {_REMEDY}")
    if not all(bool(torch.isfinite(parameter).all()) for parameter in encoder.parameters()):
        raise WarmupError(f"a weight is not finite after training; {_REMEDY}")
    return value


@torch.no_grad()
def _measured(encoder: RegimeContextEncoder, windows: _Windows, trained: int, loss: float) -> WarmupResult:
    right = encoder.encode(windows.table)[1].argmax(1) == windows.labels
    names = encoder.config.regimes
    counts = {name: int((windows.labels == index).sum()) for index, name in enumerate(names)}
    accuracy = {
        name: float(right[windows.labels == index].double().mean())
        for index, name in enumerate(names)
        if counts[name]
    }
    held = {name: count for name, count in counts.items() if count}
    return WarmupResult(float(right.double().mean()), accuracy, held, trained, loss)


def _split(stretches: Sequence[_Stretch], shape: EncoderConfig, share: float) -> tuple[_Windows, _Windows]:
    """Windows of the first part of each stretch, and of the rest; each part begins with an empty context."""
    parts: tuple[list[_Stretch], list[_Stretch]] = ([], [])
    for stretch in stretches:
        cut = max(1, round(len(stretch.buckets) * (1 - share)))
        for part, rows in zip(parts, (slice(None, cut), slice(cut, None)), strict=True):
            if stretch.buckets[rows]:
                part.append(_Stretch(stretch.regime, stretch.buckets[rows], stretch.episodes[rows]))
    if not parts[1]:
        raise InputError("every stretch has a single step, so nothing can be held out; record longer traces")
    return _windows(parts[0], shape), _windows(parts[1], shape)


def _windows(stretches: Sequence[_Stretch], shape: EncoderConfig) -> _Windows:
    buckets = [row for stretch in stretches for row in stretch.buckets]
    features = torch.zeros(len(buckets), min(WRITTEN_DIM, shape.state_dim))
    for row, written in enumerate(buckets):
        if written:
            features[row, list(written)] = 1.0
    lengths = [len(stretch.buckets) for stretch in stretches]
    table = ContextTable.build(
        features, torch.zeros(len(buckets)), context_windows(lengths, shape.context_steps)
    )
    labels = torch.cat([torch.full((len(s.buckets),), s.regime) for s in stretches])
    pieces = [n for stretch in stretches for n in _run_lengths(stretch.episodes)]
    return _Windows(table, labels, pieces)


def _run_lengths(values: Sequence[int]) -> list[int]:
    lengths: list[int] = []
    for index, value in enumerate(values):
        if index and value == values[index - 1]:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


def _stretches(path: Path, shape: EncoderConfig) -> list[_Stretch]:
    """A trace's stretches, world by world."""
    width = min(WRITTEN_DIM, shape.state_dim)
    done: list[_Stretch] = []
    current: dict[Any, _Stretch] = {}
    episode: dict[Any, int] = {}
    for place, row in _rows(path):
        if "observation" not in row:
            raise InputError(
                f"{place}: no observation; record the trace with rollout.record_observations: true"
            )
        world, regime = row.get("world"), _regime_of(row, shape.regimes, place)
        if not isinstance(world, int | None):
            raise InputError(f"{place}: world {world!r}: expected an integer")
        if world not in current or current[world].regime != regime or row.get("boundary"):
            current[world] = _Stretch(regime, [], [])
            done.append(current[world])
        current[world].buckets.append(feature_buckets(row["observation"], shape.hash_mode, width))
        current[world].episodes.append(episode.setdefault(world, 0))
        episode[world] += bool(row.get("terminated") or row.get("truncated"))
    if not done:
        raise InputError(f"{path}: no steps; nothing can be learned from it")
    return done


def _regime_of(row: Mapping[str, Any], regimes: Sequence[str], place: str) -> int:
    """The row's configuration by its own label, else by what it repeats."""
    for key in ("regime_id", "origin"):
        if row.get(key) in regimes:
            return regimes.index(str(row[key]))
    label = row.get("regime_id")
    raise InputError(
        f"{place}: configuration {label!r} is not in encoder.regimes; {suggestion(str(label), regimes)}"
    )


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if path.suffix == ".zst":
        raise InputError(f"{path}: compressed with zstd, which is not read here; decompress it first")
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = content.decode("utf-8").split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable trace: {error}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            if number == len(lines):  # torn by a killed run: the row was never whole
                return
            raise InputError(f"{path}:{number}: damaged row: {error}") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: expected an object, found {type(row).__name__}")
        yield f"{path}:{number}", row
