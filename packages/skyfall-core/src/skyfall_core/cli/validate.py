"""`skyfall validate`: check a document without building anything it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from skyfall_core.cli.options import Document, Settings

if TYPE_CHECKING:
    from skyfall_core.config import ExperimentConfig
    from skyfall_core.documents import Document as YamlDocument

__all__ = ["validate"]


def validate(file: Document, settings: Settings = None) -> None:
    """Check an experiment, a sweep or a schedule, and print it resolved."""
    from skyfall_core.documents import overridden, read_document  # noqa: PLC0415 - kept out of --help

    document = overridden(read_document(file), settings or ())
    if "regimes" in document.content:
        _check_schedule(document)
        return
    for number, experiment in enumerate(_experiments(document)):
        typer.echo(("---\n" if number else "") + experiment.to_yaml(), nl=False)


def _experiments(document: YamlDocument) -> list[ExperimentConfig]:
    if "families" in document.content:
        from skyfall_core.sweep import parse_sweep  # noqa: PLC0415

        return parse_sweep(document).cells
    from skyfall_core.config import parse_config  # noqa: PLC0415

    return [parse_config(document)]


def _check_schedule(document: YamlDocument) -> None:
    from skyfall_core.schedule import RegimeSchedule  # noqa: PLC0415

    schedule = RegimeSchedule.from_document(document)
    for index, regime in enumerate(schedule.regimes):
        repeats = f", repeats {regime.origin}" if regime.origin else ""
        lasts = "until the end" if regime.duration_steps is None else f"{regime.duration_steps:,} steps"
        typer.echo(f"{index}: {regime.regime_id}, {lasts}{repeats}, {dict(regime.axes)}")
