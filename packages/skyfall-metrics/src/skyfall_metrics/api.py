"""Every public name of the package in one place.

The package itself imports nothing, so that a command line can load it for its help text; programs import
from here or from the modules that these names live in.
"""

from __future__ import annotations

from skyfall_metrics.bounds import Bound, BoundSource
from skyfall_metrics.discovery import find_all_traces, find_traces
from skyfall_metrics.errors import (
    BoundsError,
    ComparisonError,
    InputError,
    MetricsError,
    MissingExtraError,
    ParameterError,
    ScoringFailedError,
    TraceError,
)
from skyfall_metrics.measures import HEADLINES, MEASURES, Better, Measure
from skyfall_metrics.parameters import Parameters, ResolvedParameters
from skyfall_metrics.reader import DamagedLines, read_trace
from skyfall_metrics.rows import Keys
from skyfall_metrics.scorecard import Scorecard, WorldScore, scorecard_schema
from skyfall_metrics.scoring import score, streams_of
from skyfall_metrics.segments import Segments, find_segments
from skyfall_metrics.stream import Stream
from skyfall_metrics.trace import Note, Trace, trace_from_arrays
from skyfall_metrics.values import Value

__all__ = [
    "HEADLINES",
    "MEASURES",
    "Better",
    "Bound",
    "BoundSource",
    "BoundsError",
    "ComparisonError",
    "DamagedLines",
    "InputError",
    "Keys",
    "Measure",
    "MetricsError",
    "MissingExtraError",
    "Note",
    "ParameterError",
    "Parameters",
    "ResolvedParameters",
    "Scorecard",
    "ScoringFailedError",
    "Segments",
    "Stream",
    "Trace",
    "TraceError",
    "Value",
    "WorldScore",
    "find_all_traces",
    "find_segments",
    "find_traces",
    "read_trace",
    "score",
    "scorecard_schema",
    "streams_of",
    "trace_from_arrays",
]
