"""Reward specs for MORPHEUS worlds. The formulas are this project's own.

`morpheus-operational` adds, on every step,

    w_l · clip(Δnet / scale, −1, 1) + w_p · clip(1.0 · on time + 0.3 · late + 0.5 · tickets closed
                                                 + 0.5 · documents recovered − 0.2 · invalid, −1, 1)

with w_l = w_p = 0.25, so that the two terms reach at most 0.5 together. On top come a small bonus the
first time an episode succeeds with a kind of action, and on an episode's last step a bonus for the
share of its shipments that were in time.

What the terms read is `info["trace"]["reward_inputs"]`, which `MorpheusEnv` fills from documented
routes: the ledger's net position, shipped and on-time counts, the number of closed tickets and of
stuck documents, and how many of those the local world says were given up instead of recovered.
Documents that recover while as many others get stuck are not noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyfall_core.rewards import RewardComponent, RewardSpec, Scope, Term

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["exploration", "ledger", "ledger_only", "operational", "process", "process_only", "service"]

_PREFIX = "reward_inputs."
_PROCESS = {"on_time": 1.0, "late": 0.3, "tickets_closed": 0.5, "edi_recovered": 0.5, "invalid": -0.2}


def ledger(scale: float = 500.0) -> RewardComponent:
    """Change of the net position in units of `scale` dollars, clipped to [-1, 1].

    Raises:
        ValueError: `scale` is not above 0.
    """
    if not scale > 0:
        raise ValueError(f"scale: {scale!r} must be above 0")
    return RewardComponent(
        (f"{_PREFIX}net_delta",), lambda record: _clip(float(_inputs(record)["net_delta"]) / scale)
    )


def process() -> RewardComponent:
    """What got done in the step and what was invalid, weighted and clipped to [-1, 1]."""

    def score(record: Mapping[str, Any]) -> float:
        inputs = _inputs(record)
        return _clip(sum(weight * float(inputs[name]) for name, weight in _PROCESS.items()))

    return RewardComponent(tuple(f"{_PREFIX}{name}" for name in _PROCESS), score)


def exploration() -> RewardComponent:
    """1 on the step that succeeds with a kind of action for the first time in its episode."""
    return RewardComponent((f"{_PREFIX}novel",), lambda record: float(_inputs(record)["novel"]))


def service() -> RewardComponent:
    """Share of the episode's shipments that were in time; None when nothing was shipped."""
    fields = (f"{_PREFIX}episode_on_time", f"{_PREFIX}episode_shipped")

    def score(record: Mapping[str, Any]) -> float | None:
        inputs = _inputs(record)
        shipped = float(inputs["episode_shipped"])
        return float(inputs["episode_on_time"]) / shipped if shipped else None

    return RewardComponent(fields, score)


def operational(
    ledger_weight: float = 0.25,
    process_weight: float = 0.25,
    exploration_bonus: float = 0.01,
    episode_bonus: float = 0.1,
    ledger_scale: float = 500.0,
) -> RewardSpec:
    """The spec `morpheus-operational`.

    Args:
        ledger_weight: w_l.
        process_weight: w_p.
        exploration_bonus: For a kind of action's first success in an episode.
        episode_bonus: For an episode all of whose shipments were in time.
        ledger_scale: Dollars of net change in a step that count as 1.
    """
    return RewardSpec(
        "morpheus-operational",
        [
            Term("ledger", ledger(ledger_scale), ledger_weight),
            Term("process", process(), process_weight),
            Term("exploration", exploration(), exploration_bonus),
            Term("service", service(), episode_bonus, Scope.EPISODE),
        ],
    )


def ledger_only(scale: float = 500.0) -> RewardSpec:
    """The spec `morpheus-ledger`: the ledger term alone, weight 1."""
    return RewardSpec("morpheus-ledger", [Term("ledger", ledger(scale))])


def process_only() -> RewardSpec:
    """The spec `morpheus-process`: the process term alone, weight 1."""
    return RewardSpec("morpheus-process", [Term("process", process())])


def _inputs(record: Mapping[str, Any]) -> Mapping[str, Any]:
    inputs: Mapping[str, Any] = record["reward_inputs"]
    return inputs


def _clip(value: float) -> float:
    return min(1.0, max(-1.0, value))
