"""`skyfall sft`: the command. Nothing heavy is imported until it runs."""

import json
from typing import Annotated

import typer

from skyfall_core.cli.options import AsJson, Document, Quiet, Settings

__all__ = ["sft"]


def sft(
    file: Document,
    settings: Settings = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that is already there.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check the document and its data.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a language policy on examples, as a start for reinforcement learning."""
    from skyfall_torch.sft_config import load_sft  # noqa: PLC0415 - kept out of --help
    from skyfall_torch.sft_data import read_examples  # noqa: PLC0415

    document = load_sft(file, settings or ())
    if check:
        typer.echo(f"{len(read_examples(document.data))} examples for {document.output_dir}")
        return
    from skyfall_torch.sft import train_sft  # noqa: PLC0415

    measured = train_sft(
        document, report=lambda text: None if quiet else typer.echo(text, err=True), overwrite=overwrite
    )
    if as_json:
        typer.echo(json.dumps({"output_dir": str(document.output_dir), **measured}))
        return
    typer.echo(str(document.output_dir))
    if not quiet:
        typer.echo("  ".join(f"{name} {value:.4g}" for name, value in measured.items()), err=True)
