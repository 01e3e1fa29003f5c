"""What every command is wrapped in: shared options spread out, errors turned into exit statuses.

Commands are plain functions that two programs register, `skyfall-metrics` and `skyfall`. Wrapping the
function itself makes both behave alike: `error: …` on standard error, exit status 2 for wrong input, 1 for a
failure, 130 when interrupted, and no traceback for anything that was foreseen.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer

from skyfall_metrics.errors import MetricsError

__all__ = ["command"]

_INTERRUPTED = 130
_PIPE_CLOSED = 141


def command(function: Callable[..., None]) -> Callable[..., None]:
    """`function` as a command.

    A parameter annotated with a dataclass stands for the dataclass's fields: each becomes a keyword option
    of the wrapped function, and they arrive in `function` as one object.

    Raises:
        typer.Exit: With the exit status, after the error was printed.
    """
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, Any] = {
        p.name: p.annotation for p in signature.parameters.values() if is_dataclass(p.annotation)
    }

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        for name, group in groups.items():
            given = {f.name: kwargs.pop(f.name) for f in fields(group) if f.name in kwargs}
            kwargs[name] = group(**given)
        _guard(functools.partial(function, *args, **kwargs))

    parameters = [part for p in signature.parameters.values() for part in _spread(p)]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # read by inspect
    return run


def _spread(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    group = parameter.annotation
    if not is_dataclass(group):
        return [parameter]
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def _guard(run: Callable[[], None]) -> None:
    try:
        run()
        sys.stdout.flush()
    except MetricsError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(error.exit_status) from None
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    except BrokenPipeError:
        # whoever read the output has gone; keep the interpreter from complaining when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(_PIPE_CLOSED) from None
