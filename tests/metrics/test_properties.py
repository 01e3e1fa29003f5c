"""What holds for every trace: no surprise exceptions, and nothing that must not matter matters."""

import gzip
import json
import math
import random
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyfall_metrics.errors import TraceError
from skyfall_metrics.reader import DamagedLines, read_trace
from skyfall_metrics.scoring import score

here = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=30
)

numbers = st.one_of(st.none(), st.integers(-5, 5), st.floats(-1e6, 1e6))
rows = st.lists(
    st.fixed_dictionaries(
        {"reward": numbers, "regime_id": st.sampled_from("ABC")},
        optional={
            "boundary": st.booleans(),
            "origin": st.sampled_from([None, "A"]),
            "effective_rank": numbers,
            "upper_bound": numbers,
        },
    ),
    min_size=1,
    max_size=40,
)


def encoded(records, **more):
    lines = (
        json.dumps({"trace_version": 1, "run_id": "r", "seed": 0, "step": t} | record | more)
        for t, record in enumerate(records)
    )
    return "\n".join(lines).encode() + b"\n"


def scores(path):
    card = score(read_trace(path))
    return replace(card, run=replace(card.run, path=None))


# pieces that a damaged trace may be made of
pieces = st.one_of(
    st.binary(max_size=30),
    rows.map(encoded),
    st.sampled_from(
        [
            b"\n",
            b"{",
            b"}",
            b'{"step":',
            b"NaN",
            b"null",
            b'"reward":1e999',
            b"\xff",
            b'{"step":0,"reward":1}\n',
        ]
    ),
    rows.map(encoded).flatmap(lambda text: st.integers(0, len(text)).map(lambda cut: text[:cut])),
    rows.map(encoded).flatmap(lambda text: st.integers(0, len(text)).map(lambda cut: text[cut:])),
)


@here
@given(st.lists(pieces, max_size=4).map(b"".join), st.sampled_from(DamagedLines))
def test_any_bytes_give_a_scorecard_or_a_trace_error(tmp_path, data, damaged_lines):
    path = tmp_path / "traces.jsonl"
    path.write_bytes(data)
    try:
        card = score(read_trace(path, damaged_lines=damaged_lines))
    except TraceError:
        return
    json.dumps(card.to_dict(), allow_nan=False).encode()


@here
@given(st.lists(pieces, max_size=3).map(b"".join), st.sampled_from([".gz", ".zst"]), st.integers(0, 200))
def test_any_compressed_bytes_give_a_scorecard_or_a_trace_error(tmp_path, data, suffix, cut):
    path = tmp_path / f"traces.jsonl{suffix}"
    path.write_bytes(gzip.compress(data)[:cut] if suffix == ".gz" else data)
    try:
        score(read_trace(path))
    except TraceError:
        return


@here
@given(rows)
def test_scoring_whole_or_gzipped_is_equal(tmp_path, records):
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_bytes(encoded(records))
    packed.write_bytes(gzip.compress(encoded(records)))
    assert scores(plain) == scores(packed)


@here
@given(rows, st.dictionaries(st.sampled_from(["x", "Step", "é"]), st.text(max_size=5), max_size=3))
def test_unknown_keys_change_nothing(tmp_path, records, unknown):
    plain, extended = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    plain.write_bytes(encoded(records))
    extended.write_bytes(encoded(records, **unknown))
    assert scores(plain) == scores(extended)


@here
@given(rows)
def test_order_of_keys_changes_nothing(tmp_path, records):
    plain, reordered = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    plain.write_bytes(encoded(records))
    shuffle = random.Random(0)  # noqa: S311 - no secret
    lines = []
    for text in encoded(records).splitlines():
        items = list(json.loads(text).items())
        shuffle.shuffle(items)
        lines.append(json.dumps(dict(items)))
    reordered.write_text("\n".join(lines))
    first, second = read_trace(plain), read_trace(reordered)
    np.testing.assert_array_equal(first.reward, second.reward)
    assert score(first).measures == score(second).measures


@here
@given(rows)
def test_every_number_is_finite_and_every_absence_has_a_reason(tmp_path, records):
    path = tmp_path / "traces.jsonl"
    path.write_bytes(encoded(records))
    for value in scores(path).measures.values():
        assert (value.value is None) == bool(value.reason)
        assert value.value is None or math.isfinite(value.value)
