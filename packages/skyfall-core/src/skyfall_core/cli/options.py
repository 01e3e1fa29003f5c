"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsJson", "Document", "External", "Overwrite", "Quiet", "Resume", "Settings"]

Document = Annotated[Path, typer.Argument(metavar="DOCUMENT", help="A YAML file.", show_default=False)]
"""The document a command works on."""

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Replace one value, e.g. run.seed=3; repeatable."),
]
"""Values that replace the document's."""

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a trace that is already there.")]
"""Leave to replace a recorded run."""

Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the newest checkpoint; a finished run stays as it is.")
]
"""Leave to continue a recorded run."""

External = Annotated[
    Path | None,
    typer.Option("--external", metavar="PATH", help="Keep the bundle's weights at PATH, outside of it."),
]
"""Where an export bundle's weights go."""

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no closing remarks.")]
"""Results only."""

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
"""Results for machines."""
