"""The `skyfall` command: this package's own commands and whatever plugins add.

Importing this package loads neither Gymnasium nor pydantic; each command imports what it needs when
it is called, so that `--help` answers at once.
"""

from skyfall_core.cli.app import main

__all__ = ["main"]
