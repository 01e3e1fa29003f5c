"""What each command takes, written from the commands themselves.

A page asks for all of them with the line `<!-- commands -->`. Those that an uninstalled extra would
add are not there.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

REQUEST = "<!-- commands -->"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the commands where a page asks for them."""
    return markdown.replace(REQUEST, reference()) if REQUEST in markdown else markdown


def reference() -> str:
    """A section for every command of `skyfall`."""
    import typer  # noqa: PLC0415 - only for the page that asks

    from skyfall_core.cli.app import build_app  # noqa: PLC0415

    root = typer.main.get_command(build_app())
    return "\n".join(_lines("skyfall", root))


def _lines(path: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield from _section(path, command)
    for name, below in (inner or {}).items():
        yield from _lines(f"{path} {name}", below)


def _section(path: str, command: Any) -> Iterator[str]:
    shown = [parameter for parameter in command.params if not parameter.hidden]
    arguments = [parameter for parameter in shown if parameter.param_type_name == "argument"]
    options = [parameter for parameter in shown if parameter.param_type_name == "option"]
    yield f"## `{path}` {{ #{path.replace(' ', '-')} }}"
    usage = " ".join([path, *map(_argument, arguments), *(["[OPTION]..."] if options else [])])
    yield from ("", inspect.cleandoc(command.help or ""), "", "```text", usage, "```", "")
    if shown:
        yield from ("| argument or option | meaning | default |", "|---|---|---|")
        yield from (_row(f"`{_argument(argument)}`", argument) for argument in arguments)
        yield from (_row(_option(option), option) for option in options)
        yield ""


def _argument(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _option(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.is_flag:
        return names
    return f"{names} `{option.metavar or option.name.upper()}`"


def _row(name: str, parameter: Any) -> str:
    default = parameter.default
    plain = default if isinstance(default, str | int | float) and not isinstance(default, bool) else ""
    meaning = (parameter.help or "").replace("|", "\\|")
    return f"| {name} | {meaning} | {f'`{plain}`' if plain != '' else ''} |"
