"""`convert-l2logger`: a run that l2logger recorded, as a trace."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from skyfall_metrics.cli.command import command

__all__ = ["convert_l2logger"]


class TakenBlocks(str, Enum):
    """Values of `--blocks`."""

    TRAIN = "train"
    TEST = "test"
    ALL = "all"


@command
def convert_l2logger(
    directory: Annotated[Path, typer.Argument(help="A scenario's directory.", show_default=False)],
    output: Annotated[Path, typer.Argument(help="The trace to write.", show_default=False)],
    *,
    metric: Annotated[
        str | None, typer.Option(help="The column that becomes the reward; else 'reward', or the only one.")
    ] = None,
    blocks: Annotated[TakenBlocks, typer.Option(help="Which blocks to take.")] = TakenBlocks.TRAIN,
    algorithm: Annotated[str | None, typer.Option(help="The algorithm family to record.")] = None,
    task: Annotated[str | None, typer.Option(help="The task to record.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed to record.")] = None,
) -> None:
    """Write a run that l2logger recorded as a trace."""
    from skyfall_metrics.l2logger import Blocks  # noqa: PLC0415 - kept out of --help
    from skyfall_metrics.l2logger import convert_l2logger as convert  # noqa: PLC0415

    known = {"algorithm_id": algorithm, "task": task, "seed": seed}
    metadata = {name: value for name, value in known.items() if value is not None}
    rows = convert(directory, output, metric=metric, blocks=Blocks(blocks.value), metadata=metadata)
    typer.echo(f"{output}: {rows:,} rows", err=True)
