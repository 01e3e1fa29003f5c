"""`skyfall plugins`: every name a document can use, and who provides it."""

from __future__ import annotations

import json

import typer

from skyfall_core import plugins
from skyfall_core.cli.options import AsJson
from skyfall_core.plugins import Group, Plugin

__all__ = ["list_plugins"]


def list_plugins(as_json: AsJson = False) -> None:
    """List the plugins of every group, without importing any."""
    found = {group: list(plugins.catalogue(group).values()) for group in Group}
    if as_json:
        typer.echo(json.dumps({group.value: [_plain(plugin) for plugin in found[group]] for group in Group}))
        return
    width = max((len(plugin.name) for members in found.values() for plugin in members), default=0)
    for group, members in found.items():
        typer.echo(group.value)
        for plugin in members:
            typer.echo(f"  {plugin.name:<{width}}  {plugin.target}  ({_provider(plugin)})")
        if not members:
            typer.echo("  none")


def _provider(plugin: Plugin) -> str:
    return " AND ".join((plugin.origin, *plugin.rivals)) + (": a conflict" if plugin.rivals else "")


def _plain(plugin: Plugin) -> dict[str, object]:
    return {
        "name": plugin.name,
        "target": plugin.target,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "installed": plugin.installed,
        "conflicts_with": list(plugin.rivals),
    }
