"""What every document model shares: strict sections, and faults told as place, value and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from skyfall_core.documents import Document
from skyfall_core.errors import suggestion

__all__ = ["Section", "explain", "file_name"]


LONGEST_VALUE = 200
"""How many characters of an offending value a message shows."""


class Section(BaseModel):
    """A section that refuses what it does not declare."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def file_name(name: str) -> str:
    """`name`, if it can name a directory that stays inside its parent.

    Raises:
        ValueError: If it is empty, `.` or `..`, too long, or holds a separator or a control character.
    """
    if (
        name in {"", ".", ".."}
        or not name.isprintable()
        or set(name) & set("/\\")
        or len(name.encode()) > 200
    ):
        rule = "printable, no separators, not '.' or '..', at most 200 bytes"
        raise ValueError(f"{_shown(name)} becomes a directory's name: {rule}")
    return name


def explain(error: ValidationError, document: Document, model: type[BaseModel]) -> str:
    """One line a fault: place, value, what is wrong, and the remedy.

    Args:
        error: What validation found.
        document: The document it was found in, for the places.
        model: The model the document was validated as, for the nearest keys.
    """
    return "\n".join(_fault(fault, document, model) for fault in error.errors(include_url=False))


def _fault(fault: Mapping[str, Any], document: Document, model: type[BaseModel]) -> str:
    location = tuple(_in_document(fault["loc"], document.content))
    if fault["loc"][-1] == "[key]" or fault["type"] == "invalid_key":
        location = (*location[:-1], fault["input"])
        problem = _key_problem(fault)
    elif fault["type"] == "extra_forbidden":
        problem = f"unknown key; {suggestion(str(location[-1]), _keys_beside(location, model))}"
    else:
        problem = _value_problem(fault)
    return f"{document.place(_dotted(location, document.content))}: {problem}"


def _value_problem(fault: Mapping[str, Any]) -> str:
    value = fault["input"]
    match fault["type"]:
        case "missing":
            return "missing; it has no default"
        case "value_error":
            return str(fault["ctx"]["error"])
        case "model_type" if value is None:
            return "the section is empty; fill it in or leave it out"
        case "too_short" | "string_too_short":
            return f"{value!r} is empty; give at least one"
        case kind:
            expected = _EXPECTED.get(kind) or str(fault["msg"]).removeprefix("Input should be ")
            return f"{_shown(value)} should be {expected}"


_EXPECTED = {
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "list_type": "a list",
    "path_type": "a path",
    "string_type": "text; put it in quotes if that is what it is",
}


def _key_problem(fault: Mapping[str, Any]) -> str:
    """What is wrong with a key: the name it gives, or that it is no text."""
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    return f"the key {fault['input']!r} is not text; put it in quotes"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _in_document(location: tuple[int | str, ...], content: Any) -> Iterator[int | str]:
    """`location` without the parts in brackets that stand for a choice of the model's."""
    for part in location:
        inside = isinstance(content, Mapping) and part in content
        if isinstance(part, str) and part.startswith("[") and not inside:
            continue
        yield part
        held = inside or (isinstance(content, list) and isinstance(part, int))
        content = content[part] if held else None


def _dotted(location: tuple[int | str, ...], content: Any) -> str:
    dotted = ""
    for part in location:
        in_list = isinstance(content, list) and isinstance(part, int)
        dotted += f"[{part}]" if in_list else f".{part}"
        content = content[part] if in_list else content.get(part) if isinstance(content, Mapping) else None
    return dotted.removeprefix(".")


def _keys_beside(location: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """The keys that the section holding `location` declares."""
    section: Any = model
    for part in location[:-1]:
        if isinstance(part, str) and section is not None:
            section = _model_in(section.model_fields[part].annotation)
    return list(section.model_fields) if section is not None else []


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(argument) for argument in getattr(annotation, "__args__", ()))
    return next((model for model in inner if model is not None), None)
