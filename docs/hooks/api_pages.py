"""API pages written while the site is built: one for every public module.

A module is public when it declares `__all__`, except those of the command line, whose interface is
the commands. What the umbrella re-exports is documented under its documented import path, with the
prose of the module that owns it; everything else where it lives. Sources are parsed, never imported,
so the site builds without torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PACKAGES = Path(__file__).parents[2] / "packages"
UMBRELLA = "skyfall_crl"
OWNERS = ("skyfall_core", "skyfall_metrics", "skyfall_torch", "skyfall_morpheus")
QUIET = "show_root_heading: false, show_root_toc_entry: false"


@dataclass(frozen=True, slots=True)
class Module:
    """A public module.

    Attributes:
        name: Its dotted name.
        names: What its `__all__` holds.
        owner: The module it re-exports, for a module of the umbrella.
    """

    name: str
    names: tuple[str, ...]
    owner: str | None = None

    @property
    def page(self) -> str:
        """Where its page lies in the site."""
        return f"api/{self.name}.md"

    def render(self) -> str:
        """Its page in Markdown."""
        prose = f"::: {self.owner}\n    options: {{members: [], {QUIET}}}\n\n" if self.owner else ""
        return f"# `{self.name}` {{ #{self.name} }}\n\n{prose}::: {self.name}\n    options: {{{QUIET}}}\n"


def public_modules() -> list[Module]:
    """Every module that has a page of its own, the umbrella's first.

    The umbrella's packages only gather what their modules hold, so they have none.
    """
    modules = [
        module
        for module in _declaring(UMBRELLA)
        if module.owner is not None and not module.owner.startswith(f"{UMBRELLA}.")
    ]
    owned = {module.owner for module in modules}
    return modules + [
        module for package in OWNERS for module in _declaring(package) if module.name not in owned
    ]


def _declaring(package: str) -> list[Module]:
    source = PACKAGES / package.replace("_", "-") / "src"
    found = []
    for path in sorted((source / package).rglob("*.py")):
        parts = [part for part in path.relative_to(source).with_suffix("").parts if part != "__init__"]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = _declared_names(tree)
        if names and "cli" not in parts and not any(part.startswith("_") for part in parts):
            owner = _imported_from(tree) if package == UMBRELLA else None
            found.append(Module(".".join(parts), names, owner))
    return found


def _declared_names(tree: ast.Module) -> tuple[str, ...]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return tuple(ast.literal_eval(node.value))
    return ()


def _imported_from(tree: ast.Module) -> str | None:
    """The first module a source imports names from; a module of the umbrella has exactly one."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return nodes[0].module if nodes else None


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Append the API pages to the navigation."""
    groups: dict[str, list[Any]] = {}
    for module in public_modules():
        package = module.name.partition(".")[0]
        groups.setdefault(package, []).append({module.name.removeprefix(f"{package}."): module.page})
    config.nav = [*(config.nav or []), {"API reference": [{group: pages} for group, pages in groups.items()]}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the API pages."""
    for module in public_modules():
        files.append(File.generated(config, module.page, content=module.render()))
    return files
