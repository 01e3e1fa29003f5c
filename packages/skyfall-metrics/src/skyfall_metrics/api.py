"""Every public name of the package in one place.

The package itself imports nothing, so that a command line can load it for its help text; programs import
from here or from the modules that these names live in.
"""

from __future__ import annotations

from skyfall_metrics.batch import Job, score_files
from skyfall_metrics.bounds import Bound, BoundSource
from skyfall_metrics.bounds_file import (
    BoundsTable,
    observed_bounds,
    read_bounds,
    with_observed_bounds,
    with_table,
)
from skyfall_metrics.comparison import (
    Comparison,
    Estimate,
    FamilySummary,
    Improvement,
    Schedules,
    compare,
    comparison_schema,
)
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
from skyfall_metrics.l2logger import Blocks, convert_l2logger
from skyfall_metrics.measures import HEADLINES, MEASURES, Better, Measure
from skyfall_metrics.parameters import Parameters, ResolvedParameters
from skyfall_metrics.reader import DamagedLines, read_trace
from skyfall_metrics.references import reference_means, with_reference_runs
from skyfall_metrics.rows import Keys
from skyfall_metrics.scorecard import (
    ConfigurationSummary,
    RunIdentity,
    Scorecard,
    SegmentSummary,
    WorldScore,
    scorecard_schema,
)
from skyfall_metrics.scoring import score, streams_of, with_bounds, with_references
from skyfall_metrics.segments import Segments, find_segments
from skyfall_metrics.statistics import (
    Bootstrap,
    Interval,
    bootstrap_interval,
    improvement_interval,
    interquartile_mean,
    probability_of_improvement,
)
from skyfall_metrics.stream import Stream
from skyfall_metrics.trace import Note, Trace, trace_from_arrays
from skyfall_metrics.values import Value

__all__ = [
    "HEADLINES",
    "MEASURES",
    "Better",
    "Blocks",
    "Bootstrap",
    "Bound",
    "BoundSource",
    "BoundsError",
    "BoundsTable",
    "Comparison",
    "ComparisonError",
    "ConfigurationSummary",
    "DamagedLines",
    "Estimate",
    "FamilySummary",
    "Improvement",
    "InputError",
    "Interval",
    "Job",
    "Keys",
    "Measure",
    "MetricsError",
    "MissingExtraError",
    "Note",
    "ParameterError",
    "Parameters",
    "ResolvedParameters",
    "RunIdentity",
    "Schedules",
    "Scorecard",
    "ScoringFailedError",
    "SegmentSummary",
    "Segments",
    "Stream",
    "Trace",
    "TraceError",
    "Value",
    "WorldScore",
    "bootstrap_interval",
    "compare",
    "comparison_schema",
    "convert_l2logger",
    "find_all_traces",
    "find_segments",
    "find_traces",
    "improvement_interval",
    "interquartile_mean",
    "observed_bounds",
    "probability_of_improvement",
    "read_bounds",
    "read_trace",
    "reference_means",
    "score",
    "score_files",
    "scorecard_schema",
    "streams_of",
    "trace_from_arrays",
    "with_bounds",
    "with_observed_bounds",
    "with_reference_runs",
    "with_references",
    "with_table",
]
