"""YAML documents: read safely, with the line of every value, so that an error can name the place.

Only YAML's safe subset is constructed. Stricter than YAML 1.1 in one point and laxer in another:
a key that stands twice is an error, and `1e-3` is the number it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from skyfall_core.errors import ConfigError

__all__ = ["Document", "overridden", "read_document"]


@dataclass(frozen=True, slots=True)
class Document:
    """A document's content, and where in which file each value stands.

    Attributes:
        content: The top-level mapping.
        path: The file it was read from; None for content that came from elsewhere.
        lines: Dotted path of a value (`regimes[1].axes.gravity`) to its line, counted from 1.
        overrides: Dotted paths that the command line set, to the option as it was typed.
    """

    content: Mapping[str, Any]
    path: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)

    def place(self, dotted: str) -> str:
        """How a message names the value at `dotted`: file, line and path, as far as they are known."""
        for above in _with_ancestors(dotted):
            if above in self.overrides:
                return f"--set {self.overrides[above]}: {dotted}"
            if above in self.lines:
                return f"{self.path}:{self.lines[above]}: {dotted}"
        return ": ".join(part for part in (str(self.path or ""), dotted) if part)


class _Loader(yaml.SafeLoader):
    """The safe loader, and numbers such as `1e-3`."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def read_document(path: str | Path) -> Document:
    """Read the YAML mapping in a file.

    Raises:
        ConfigError: If the file is missing, unreadable, not UTF-8, not YAML, empty, no mapping, or
            gives a key twice.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        problem = f"byte {error.start} is 0x{byte:02x}, which is not UTF-8; save it as UTF-8"
        raise ConfigError(f"{path}: {problem}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    content, lines = _parse(text, path)
    if content is None:
        raise ConfigError(f"{path}: the document is empty")
    if not isinstance(content, Mapping):
        raise ConfigError(
            f"{path}: the document is a {type(content).__name__}; a mapping of sections is expected"
        )
    return Document(content, path, lines)


def overridden(document: Document, settings: Iterable[str]) -> Document:
    """The document with single values replaced.

    Args:
        document: What to start from; it is not changed.
        settings: `dotted.path=value` each, the value in YAML.

    Raises:
        ConfigError: If a setting has another form or leads through something that is no mapping.
    """
    content, overrides = dict(document.content), dict(document.overrides)
    for setting in settings:
        dotted, equals, text = setting.partition("=")
        keys = dotted.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(f"--set {setting}: expected dotted.path=value, such as rollout.total_steps=500")
        value, _ = _parse(text, Path(f"--set {setting}"))
        section = content
        for depth, key in enumerate(keys[:-1], start=1):
            inner = section.get(key)
            if inner is not None and not isinstance(inner, Mapping):
                raise ConfigError(
                    f"--set {setting}: {'.'.join(keys[:depth])} is {inner!r}, which has no keys"
                )
            section[key] = section = dict(inner or {})
        section[keys[-1]] = value
        overrides[".".join(keys)] = setting
    return Document(content, document.path, document.lines, overrides)


def _parse(text: str, path: Path) -> tuple[Any, dict[str, int]]:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}
        lines = dict(_lines(node, "", path, set()))
        return loader.construct_document(node), lines
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(f"{place}: not valid YAML: {problem}") from None
    except (RecursionError, ValueError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    finally:
        loader.dispose()


def _lines(node: yaml.Node, dotted: str, path: Path, seen: set[int]) -> Iterator[tuple[str, int]]:
    """Every value's path and line; raises on a key that stands twice."""
    if id(node) in seen:  # an alias, possibly to an enclosing node
        return
    seen.add(id(node))
    if dotted:
        yield dotted, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, f"{dotted}[{index}]", path, seen)
    if isinstance(node, yaml.MappingNode):
        first: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            place = f"{dotted}.{name}" if dotted else name
            if (key.tag, name) in first and name != "?":
                earlier = first[key.tag, name]
                raise ConfigError(f"{path}:{line}: {place}: the key already stands on line {earlier}")
            first[key.tag, name] = line
            yield place, line
            yield from _lines(value, place, path, seen)


def _with_ancestors(dotted: str) -> Iterator[str]:
    """`a.b[2].c`, `a.b[2]`, `a.b`, `a`."""
    while dotted:
        yield dotted
        dotted = dotted[: max(dotted.rfind("."), dotted.rfind("["), 0)]
