"""Forward transfer: how a configuration's first visit compares with a run that knew nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skyfall_metrics.values import Value, mean_of, quotient

__all__ = ["IdentityTransfer", "TransferResult", "forward_transfer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityTransfer:
    """Transfer into one configuration.

    Attributes:
        configuration: Its name.
        first_visit: Mean reward of its first segment.
        reference: Mean reward of the run that lived it alone.
        transfer: The difference as a share of the reference's size.
        reason: Why there is none.
    """

    configuration: str
    first_visit: float | None
    reference: float | None
    transfer: float | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResult:
    """Forward transfer of one world: the mean over configurations with a reference, and one by one."""

    transfer: Value
    configurations: tuple[IdentityTransfer, ...]


def forward_transfer(
    first_visits: Mapping[str, float | None], references: Mapping[str, float] | None
) -> TransferResult:
    """Mean over configurations of (mean of the first visit − reference) / |reference|.

    Args:
        first_visits: Mean reward of each configuration's first segment, None where all of it is missing.
        references: Mean reward of runs that lived one configuration alone, by configuration; None when
            there are none.
    """
    if references is None:
        return TransferResult(transfer=Value.missing("no reference run"), configurations=())
    found = tuple(_of_one(name, mean, references.get(name)) for name, mean in first_visits.items())
    reason = "; ".join(each.reason for each in found if each.reason)
    return TransferResult(transfer=mean_of((each.transfer for each in found), reason), configurations=found)


def _of_one(name: str, first_visit: float | None, reference: float | None) -> IdentityTransfer:
    reason = transfer = None
    if reference is None:
        reason = f"no reference run of {name!r}"
    elif first_visit is None:
        reason = f"rewards of the first visit of {name!r} are missing"
    else:
        transfer = quotient(first_visit - reference, abs(reference))
        reason = f"the reference reward of {name!r} is 0" if transfer is None else None
    return IdentityTransfer(
        configuration=name, first_visit=first_visit, reference=reference, transfer=transfer, reason=reason
    )
