"""What happens when standard output takes no more: a full disk, or a reader that has gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["answering_for_output"]


@contextmanager
def answering_for_output() -> Iterator[None]:
    """End the process with one line and status 1 where standard output refuses what the block wrote.

    Raises:
        SystemExit: If it does.
    """
    stdout, refusals = sys.stdout, list[OSError]()
    for name in ("write", "flush"):
        setattr(stdout, name, _noting(getattr(stdout, name), refusals))
    try:
        try:
            yield
        finally:
            stdout.flush()
    except OSError as error:
        if error not in refusals:  # something else failed, and its traceback is wanted
            raise
        sys.stderr.write(f"error: standard output: {error.strerror}; the result was not written\n")
        # what is still in the buffer would be complained about once more when the interpreter ends
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        sys.exit(1)
    finally:
        for name in ("write", "flush"):
            delattr(stdout, name)


def _noting(call: Callable[..., Any], refusals: list[OSError]) -> Callable[..., Any]:
    """`call`, with whatever the system refuses it kept in `refusals`."""

    def noting(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except OSError as error:
            refusals.append(error)
            raise

    return noting
