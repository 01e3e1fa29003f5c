"""What every document model shares: strict sections, and faults told as place, value and remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from skyfall_core.documents import Document
from skyfall_core.errors import suggestion

__all__ = ["Section", "explain", "file_name"]


class Section(BaseModel):
    """A section that refuses what it does not declare."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def file_name(name: str) -> str:
    """`name`, if it can name a directory that stays inside its parent.

    Raises:
        ValueError: If it holds a separator, is `.` or `..`, or is too long.
    """
    if name in {"", ".", ".."} or any(mark in name for mark in "/\\\0") or len(name.encode()) > 200:
        raise ValueError(
            f"{name!r} becomes a directory's name: no separators, not '.' or '..', at most 200 bytes"
        )
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
    location = fault["loc"]
    dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    place = document.place(dotted)
    match fault["type"]:
        case "extra_forbidden":
            return f"{place}: unknown key; {suggestion(str(location[-1]), _keys_beside(location, model))}"
        case "missing":
            return f"{place}: missing; it has no default"
        case "value_error":
            return f"{place}: {fault['ctx']['error']}"
        case _:
            message = str(fault["msg"]).removeprefix("Input should be ")
            return f"{place}: {fault['input']!r} should be {message}"


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
