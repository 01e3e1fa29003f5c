"""The six canonical configurations as axes of a world, and the provider that runs through them.

Each makes another way of working the best one: a flood of malformed and repeated documents, outages
that only pass with time, money so short that carriers refuse, one worker where there were six.
"""

from __future__ import annotations

from typing import Any

from skyfall_core.regime import ScheduledRegime

__all__ = ["CANONICAL", "canonical"]

CANONICAL: dict[str, dict[str, Any]] = {
    "baseline": {
        "chaos_probability": 0.1,
        "chaos_scenarios": {"format_change": 1.0, "missing_data": 1.0, "permission_denied": 0.5},
    },
    "edi_spike": {
        "chaos_probability": 0.6,
        "chaos_scenarios": {"format_change": 1.0, "duplicate_data": 2.0},
        "edi_interval_minutes": 14.0,
    },
    "infra_degradation": {
        "chaos_probability": 0.6,
        "chaos_scenarios": {"dependency_failure": 1.0, "rate_limit": 1.0, "timing_issue": 1.0},
        "edi_interval_minutes": 26.0,
    },
    "financial_pressure": {
        "chaos_probability": 0.1,
        "chaos_scenarios": {"format_change": 1.0, "missing_data": 1.0, "permission_denied": 0.5},
        "cash_level": -60_000.0,
        "edi_interval_minutes": 50.0,
    },
    "workforce_constrained": {
        "chaos_probability": 0.1,
        "chaos_scenarios": {"format_change": 1.0, "missing_data": 1.0, "permission_denied": 0.5},
        "workers": 1,
        "edi_interval_minutes": 30.0,
    },
}
"""Axes by configuration; `baseline_revisit` repeats `baseline`."""


def canonical(duration_steps: int = 400) -> ScheduledRegime:
    """The provider `morpheus-canonical`: six configurations of equal length, the last a revisit.

    Args:
        duration_steps: Steps each of them lasts; the last goes on for as long as the run does.

    Raises:
        ConfigError: If the duration is not positive.
    """
    regimes: list[dict[str, Any]] = [
        {"regime_id": name, "duration_steps": duration_steps, "axes": axes}
        for name, axes in CANONICAL.items()
    ]
    regimes.append({"regime_id": "baseline_revisit", "alias_of": "baseline"})
    return ScheduledRegime({"regimes": regimes, "shift_mode": "abrupt"})
