"""YAML documents: read safely, with the line of every value, so that an error can name the place.

Only what JSON knows is constructed: mappings, lists, text, numbers, booleans and null, so that a
document can be printed, recorded and read back as it was. Stricter than YAML 1.1 in one point and
laxer in two: a key that stands twice is an error, `1e-3` is the number it looks like, and a date is
text. Aliases are followed, but not in circles and not to more values than a document needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import yaml

from skyfall_core.errors import ConfigError

__all__ = ["Document", "overridden", "read_document", "refuse_other_kind", "with_leaves", "yaml_text"]

MOST_VALUES = 1_000_000
"""How many values a document may stand for once its aliases are written out."""

DEEPEST = 100
"""How many levels values may be nested."""

UNWRITABLE = re.compile("[\0\ud800-\udfff]")
PLAIN_TAGS = ("null", "bool", "int", "float", "str", "seq", "map")
MERGE_TAG = "tag:yaml.org,2002:merge"


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
        setting = self.override_of(dotted)
        if setting is not None:
            return f"--set {setting}: {dotted}"
        line = next((self.lines[above] for above in _with_ancestors(dotted) if above in self.lines), None)
        file = "" if self.path is None else str(self.path)
        return ": ".join(part for part in (file if line is None else f"{file}:{line}", dotted) if part)

    def override_of(self, dotted: str) -> str | None:
        """The command-line option that set the value at `dotted` or one it stands in, if one did."""
        found = (self.overrides[above] for above in _with_ancestors(dotted) if above in self.overrides)
        return next(found, None)

    def absolute(self, dotted: str, path: str) -> str:
        """The absolute form of a path that stands at `dotted`.

        A relative path starts at the document's folder, or at the working directory where the command
        line set it. Content that came from no file is left as it is.
        """
        if self.path is None:
            return path
        base = Path.cwd() if self.override_of(dotted) is not None else self.path.parent
        return os.path.normpath(Path(base, Path(path).expanduser()).absolute())


_KINDS = {
    "sweep": ("a sweep", frozenset({"base", "families"})),
    "run": ("a single run", frozenset({"environment", "algorithm"})),
    "sft": ("a supervised warm start", frozenset({"policy", "data", "output_dir"})),
    "lcm-warmup": ("a warm-up of the context model", frozenset({"traces", "output"})),
}
"""What the document of a command is, and the top-level keys that tell it from the others."""


def refuse_other_kind(document: Document, command: str) -> None:
    """Say which command a document is for, where it is plainly not for this one.

    Raises:
        ConfigError: If its keys are those of another command's documents.
    """
    keys = document.content.keys()
    if keys & _KINDS[command][1]:
        return
    for other, (what, telling) in _KINDS.items():
        if telling <= keys:
            name = document.path or "the document"
            raise ConfigError(f"{name} describes {what}: skyfall {other} {document.path or '…'}")


class _Loader(yaml.SafeLoader):
    """The safe loader without YAML's own kinds of value, and with numbers such as `1e-3`."""


class _Dumper(yaml.SafeDumper):
    """Writes what `_Loader` reads back as it was."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """Always: a resolved document spells every value out."""
        return True

    def represent_text(self, text: Any) -> yaml.ScalarNode:
        """Text as it is: quoted where it holds line breaks, which the other styles fold."""
        plain = str.__str__(text) if isinstance(text, str) else str(text)
        style = None if plain.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", plain, style)


_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in PLAIN_TAGS
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] != "timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_EXPONENT = re.compile(r"^[-+]?(\.[0-9]|[0-9])[0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))
for _text in (str, PurePath):
    _Dumper.add_multi_representer(_text, _Dumper.represent_text)
_Dumper.add_representer(str, _Dumper.represent_text)


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
    except (OSError, ValueError) as error:  # a ValueError for a path that holds a NUL
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    content, lines = _parse(text, str(path))
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
        value, _ = _parse(text, f"--set {setting}")
        section = content
        for depth, key in enumerate(keys[:-1], start=1):
            inner = section.get(key)
            if inner is not None and not isinstance(inner, Mapping):
                raise ConfigError(
                    f"--set {setting}: {'.'.join(keys[:depth])} is {inner!r}, which has no keys"
                )
            section[key] = section = dict(inner or {})
        section[keys[-1]] = value
        path = ".".join(keys)
        overrides = {set_: option for set_, option in overrides.items() if not set_.startswith(f"{path}.")}
        overrides[path] = setting
    return Document(content, document.path, document.lines, overrides)


def with_leaves(content: Any, leaf: Callable[[str, Any], Any], dotted: str = "") -> Any:
    """A copy of `content` with `leaf(path, value)` for every value that is no mapping and no list."""
    if isinstance(content, Mapping):
        return {
            key: with_leaves(value, leaf, f"{dotted}.{key}" if dotted else str(key))
            for key, value in content.items()
        }
    if isinstance(content, list):
        return [with_leaves(value, leaf, f"{dotted}[{index}]") for index, value in enumerate(content)]
    return leaf(dotted, content)


def yaml_text(content: Any) -> str:
    """`content` as YAML that reads back as it was.

    Raises:
        ConfigError: If it holds an object that YAML has no word for.
    """
    try:
        return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    except yaml.representer.RepresenterError as error:
        raise ConfigError(f"{error.args[-1]!r} cannot stand in a document; name a factory instead") from None


def _parse(text: str, place: str) -> tuple[Any, dict[str, int]]:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, {}
        _check_extent(node, place, [], {})
        lines = dict(_lines(loader, node, "", place, set()))
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise ConfigError(f"{place}{at}: not valid YAML: {problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{place}: not valid YAML: {str(error).partition(chr(10))[0]}") from None
    except RecursionError:
        raise ConfigError(f"{place}: values are nested deeper than {DEEPEST} levels") from None


def _check_extent(node: yaml.Node, place: str, enclosing: list[int], sizes: dict[int, int]) -> int:
    """How many values `node` stands for with its aliases written out; raises where that has no end."""
    if id(node) in sizes:
        return sizes[id(node)]
    at = f"{place}:{node.start_mark.line + 1}"
    if id(node) in enclosing:
        raise ConfigError(f"{at}: an alias leads to the value it stands in; write the value out")
    if len(enclosing) > DEEPEST:
        raise ConfigError(f"{at}: values are nested deeper than {DEEPEST} levels")
    if isinstance(node, yaml.ScalarNode) and UNWRITABLE.search(node.value):
        raise ConfigError(f"{at}: {node.value!r} holds a NUL or half a surrogate pair, which no file can")
    enclosing.append(id(node))
    size = 1 + sum(_check_extent(inner, place, enclosing, sizes) for inner in _inside(node))
    enclosing.pop()
    if size > MOST_VALUES:
        raise ConfigError(
            f"{at}: aliases make this more than {MOST_VALUES:,} values; write out what is needed"
        )
    sizes[id(node)] = size
    return size


def _inside(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _lines(
    loader: _Loader, node: yaml.Node, dotted: str, place: str, seen: set[int]
) -> Iterator[tuple[str, int]]:
    """Every value's path and line; raises on a key that stands twice."""
    if id(node) in seen:  # an alias: the lines are those of the value it leads to
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield f"{dotted}[{index}]", item.start_mark.line + 1
            yield from _lines(loader, item, f"{dotted}[{index}]", place, seen)
    if isinstance(node, yaml.MappingNode):
        first: dict[Any, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name = key.value if key.tag == MERGE_TAG else loader.construct_object(key)
            line, below = key.start_mark.line + 1, f"{dotted}.{name}" if dotted else str(name)
            if name in first:
                raise ConfigError(f"{place}:{line}: {below}: the key already stands on line {first[name]}")
            first[name] = line
            yield below, line
            yield from _lines(loader, value, below, place, seen)


def _with_ancestors(dotted: str) -> Iterator[str]:
    """`a.b[2].c`, `a.b[2]`, `a.b`, `a`."""
    while dotted:
        yield dotted
        dotted = dotted[: max(dotted.rfind("."), dotted.rfind("["), 0)]
