"""`skyfall morpheus …`: serve a local world, write demonstrations, measure bounds.

Importing this module loads neither Gymnasium nor a server; each command imports what it needs.
"""

from __future__ import annotations

import typer

__all__ = ["app"]

app = typer.Typer(help="Worlds that speak the MORPHEUS API.", no_args_is_help=True)
