"""Where segments begin, and which of them come back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skyfall_metrics.segments import find_segments
from skyfall_metrics.trace import trace_from_arrays


def found(labels, **columns):
    return find_segments(trace_from_arrays([0.0] * len(labels), list(labels), **columns))


def test_label_changes_cut():
    segments = found("AABBA")
    assert (segments.start.tolist(), segments.stop.tolist()) == ([0, 2, 4], [2, 4, 5])
    assert segments.revisited.tolist() == [False, False, True]


def test_boundary_cuts_inside_one_label_and_the_second_part_is_a_revisit():
    segments = found("AAAA", boundary=[True, False, True, False])
    assert segments.start.tolist() == [0, 2]
    assert segments.revisited.tolist() == [False, True]


def test_origin_makes_another_label_the_same_configuration():
    segments = found("ABC", origin=[None, None, "A"])
    assert [segments.names[code] for code in segments.identity] == ["A", "B", "A"]
    assert [segments.names[code] for code in segments.label] == ["A", "B", "C"]
    assert segments.revisited.tolist() == [False, False, True]


def test_number_and_its_text_are_one_label():
    assert found([3, "3", 4]).start.tolist() == [0, 2]


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.booleans()), min_size=1, max_size=50))
def test_segments_cover_every_row_once_and_are_maximal(rows):
    labels = [label for label, _ in rows]
    flags = [flag for _, flag in rows]
    segments = found(labels, boundary=flags)
    assert segments.start[0] == 0
    assert segments.stop[-1] == len(rows)
    assert (segments.start[1:] == segments.stop[:-1]).all()
    expected = [0] + [t for t in range(1, len(rows)) if flags[t] or labels[t] != labels[t - 1]]
    assert segments.start.tolist() == expected
    names = [labels[t] for t in expected]
    assert segments.revisited.tolist() == [name in names[:s] for s, name in enumerate(names)]
    assert np.all(segments.rows > 0)
