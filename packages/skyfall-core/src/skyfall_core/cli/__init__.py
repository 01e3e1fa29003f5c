"""The `skyfall` command: this package's own commands and whatever plugins add.

Importing this package loads neither Gymnasium nor pydantic; each command imports what it needs when
it is called, so that `--help` answers at once.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of `skyfall`. An interruption before a command has begun ends it without a traceback."""
    try:
        from skyfall_core.cli.app import build_app  # noqa: PLC0415 - so that importing it can be interrupted
        from skyfall_core.cli.output import answering_for_output  # noqa: PLC0415

        with answering_for_output():
            build_app()()
    except KeyboardInterrupt:
        sys.exit(130)
