"""Tables of the keys a document may hold, written from the models that check them.

A page asks for them with a line `<!-- keys: package.module:Model -->`, so that prose is kept by hand
and no key is.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

REQUEST = re.compile(r"^<!-- keys: (?P<module>[\w.]+):(?P<model>\w+) -->$", re.MULTILINE)
TYPES = {"boolean": "true or false", "object": "mapping"}
LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}

Schema = Mapping[str, Any]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the tables where a page asks for them."""
    return REQUEST.sub(lambda request: tables(request["module"], request["model"]), markdown)


def tables(module: str, model: str) -> str:
    """A table of the model's keys, then a section for every model inside it."""
    schema: Schema = getattr(importlib.import_module(module), model).model_json_schema()
    return "\n".join(_lines(schema, schema.get("$defs", {}), ""))


def _lines(section: Schema, definitions: Schema, path: str) -> Iterator[str]:
    required = section.get("required", ())
    yield from ("", "| key | what it holds | default | meaning |", "|---|---|---|---|")
    inner = []
    for key, schema in section["properties"].items():
        dotted = f"{path}.{key}" if path else key
        nested = _section_in(schema, definitions)
        default = "required" if key in required else _default(schema, nested)
        meaning = schema.get("description") or _first_line(nested or {})
        name = f"[`{key}`](#{_anchor(dotted)})" if nested else f"`{key}`"
        yield f"| {name} | {_holds(schema, definitions)} | {default} | {meaning} |"
        if nested:
            inner.append((dotted, nested))
    for dotted, nested in inner:
        yield from ("", f"## `{dotted}` {{ #{_anchor(dotted)} }}", "", nested.get("description", ""))
        yield from _lines(nested, definitions, dotted)


def _section_in(schema: Schema, definitions: Schema) -> Schema | None:
    """The model behind a key, whether it stands alone, may be missing or comes in a list."""
    if "$ref" in schema:
        found: Schema = definitions[schema["$ref"].rpartition("/")[2]]
        return found if "properties" in found else None
    for part in (*schema.get("anyOf", ()), *schema.get("allOf", ()), schema.get("items", {})):
        if part and (found_inside := _section_in(part, definitions)):
            return found_inside
    return None


def _holds(schema: Schema, definitions: Schema) -> str:
    if "$ref" in schema and not _section_in(schema, definitions):
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        parts = [part for part in choices if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(_holds(part, definitions) for part in parts))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "items" in schema:
        return f"list of {_holds(schema['items'], definitions)}"
    if "$ref" in schema:
        return "section"
    name: str = schema.get("format") or schema.get("type", "anything")
    known = ((sign, schema[limit]) for limit, sign in LIMITS.items() if limit in schema)
    limits = (f"{sign} {value}" for sign, value in known if abs(value) < 2**53)  # further is how it is stored
    return " ".join((TYPES.get(name, name), *limits))


def _default(schema: Schema, section: Schema | None) -> str:
    if "default" in schema:
        return "none" if schema["default"] is None else f"`{json.dumps(schema['default'])}`"
    return "its defaults" if section and "items" not in schema else "empty"


def _first_line(section: Schema) -> str:
    return str(section.get("description", "")).partition("\n")[0]


def _anchor(dotted: str) -> str:
    return dotted.replace(".", "-").replace("_", "-")
