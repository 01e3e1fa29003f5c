"""`skyfall lcm-warmup`: the command. Nothing heavy is imported until it runs."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from skyfall_core.cli.options import AsJson, Document, Quiet, Settings

__all__ = ["lcm_warmup"]


def lcm_warmup(
    file: Document,
    settings: Settings = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the document.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train the latent context encoder on recorded traces, as a start for LCM."""
    from skyfall_torch.lcm_warmup_config import load_warmup_document  # noqa: PLC0415 - kept out of --help

    document = load_warmup_document(file, settings or ())
    if check:
        typer.echo(f"{len(document.traces)} traces for {document.output}")
        return
    from skyfall_torch.lcm_warmup import train_warmup  # noqa: PLC0415

    result = train_warmup(document)
    if as_json:
        typer.echo(json.dumps({"output": str(document.output), **asdict(result)}))
        return
    typer.echo(str(document.output))
    if quiet:
        return
    typer.echo(f"held-out accuracy {result.accuracy:.3f}", err=True)
    for name, accuracy in result.accuracy_by_regime.items():
        typer.echo(f"  {name}: {accuracy:.3f} of {result.held_out_steps[name]} steps", err=True)
