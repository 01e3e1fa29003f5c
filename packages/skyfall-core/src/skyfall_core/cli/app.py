"""The command line's tree: built-in commands, then those of the group `skyfall.commands`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from skyfall_core import __version__, plugins
from skyfall_core.cli.export import export
from skyfall_core.cli.plugins import list_plugins
from skyfall_core.cli.reporting import guarded
from skyfall_core.cli.run import run
from skyfall_core.cli.sweep import sweep
from skyfall_core.cli.validate import validate
from skyfall_core.errors import MissingExtraError, PluginConflictError, PluginError
from skyfall_core.plugins import Group

__all__ = ["build_app"]


BUILT_IN: dict[str, Callable[..., None]] = {
    "run": run,
    "sweep": sweep,
    "export": export,
    "validate": validate,
    "plugins": list_plugins,
}


def build_app() -> typer.Typer:
    """The application, with every installed command in it."""
    app = typer.Typer(
        name="skyfall",
        help="Run, record and score continual reinforcement learning.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # drawing the help in boxes would double the time it takes
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name, command in BUILT_IN.items():
        app.command(name)(guarded(command))
    for name in plugins.catalogue(Group.COMMANDS):
        _add(app, name)
    return app


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_tell_version),
    ] = False,
) -> None:
    pass


def _add(app: typer.Typer, name: str) -> None:
    """Add a plugin's command: a function, or a Typer application with commands of its own."""
    try:
        plugin = plugins.find(Group.COMMANDS, name)
        if name in BUILT_IN:
            raise PluginConflictError(
                f"command {name!r} is built in and registered by {plugin.origin} too; uninstall that"
            )
        command = plugins.load(plugin)
    except PluginError as error:
        absent = isinstance(error, MissingExtraError)
        app.command(
            name,
            help=str(error) if absent else f"Cannot be loaded: {error}",
            short_help=f"({'not installed' if absent else 'cannot be loaded'}; call it to see why)",
            context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        )(guarded(_raising(error)))
        return
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name)(guarded(command))


def _raising(error: PluginError) -> Callable[..., Any]:
    """A command that says why it is not there."""

    def unavailable() -> None:
        raise error

    return unavailable
