"""HTML and SVG as text in which nothing unescaped can hide.

Whatever comes from a trace is a plain `str` and is escaped when it enters an element; only what `element`
made is `Markup` and goes in as it is. There is no other way in.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

__all__ = ["Markup", "coordinate", "element", "escape", "joined", "trusted"]

_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What neither XML nor UTF-8 can hold, and a label from elsewhere may."""

_EMPTY = frozenset({"circle", "hr", "meta", "path", "polygon", "polyline", "rect"})


class Markup(str):
    """Text that is HTML or SVG already."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """`text` so that it shows as itself, in an element or a quoted attribute; `Markup` stays as it is."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(_NOT_TEXT.sub("\ufffd", text)))


def trusted(text: str) -> Markup:
    """Text of this package's own (a style sheet, a script) that must not be escaped."""
    return Markup(text)


def joined(*parts: str) -> Markup:
    """Several pieces behind each other, plain ones escaped."""
    return Markup("".join(map(escape, parts)))


def element(name: str, attributes: Mapping[str, object] | None = None, *children: str) -> Markup:
    """One element.

    Args:
        name: Its tag.
        attributes: Values are escaped; one that is None is left out, numbers are shortened to what a screen
            can show.
        children: Elements, or plain text, which is escaped.
    """
    given = "".join(
        f' {key}="{_attribute(value)}"' for key, value in (attributes or {}).items() if value is not None
    )
    if not children and name in _EMPTY:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{''.join(map(escape, children))}</{name}>")


def coordinate(value: float) -> str:
    """A length in pixels, to a tenth."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def _attribute(value: object) -> str:
    return coordinate(value) if isinstance(value, float) else escape(str(value))
