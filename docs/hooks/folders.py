"""Navigation that follows folders: an entry `Algorithms: algorithms/` lists every page in there.

`index.md` comes first, the others in alphabetical order. A folder without pages leaves no entry.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace folders in the navigation by their pages."""
    config.nav = [
        entry
        for entry in (_expanded(entry, Path(config.docs_dir)) for entry in config.nav or [])
        if entry is not None
    ]
    return config


def _expanded(entry: Any, root: Path) -> Any:
    if not isinstance(entry, dict):
        return entry
    ((title, target),) = entry.items()
    if not isinstance(target, str) or not target.endswith("/"):
        return entry
    pages = sorted((root / target).glob("*.md"), key=lambda page: (page.stem != "index", page.name))
    return {title: [str(page.relative_to(root)) for page in pages]} if pages else None
