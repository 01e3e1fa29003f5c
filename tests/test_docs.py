"""The documentation site: it builds strictly, and every public name can be linked to."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.site

ROOT = Path(__file__).parents[1]


def public_names() -> dict[str, set[str]]:
    """Everything that a package calls public, with the names that are the same thing elsewhere."""
    same: dict[str, set[str]] = {}
    for source in sorted(ROOT.glob("packages/*/src")):
        for path in sorted(source.rglob("*.py")):
            parts = [part for part in path.relative_to(source).with_suffix("").parts if part != "__init__"]
            # the interface of the command line is its commands
            if "cli" in parts or any(part.startswith("_") for part in parts):
                continue
            tree = ast.parse(path.read_text())
            origins = {
                alias.name: f"{node.module}.{alias.name}"
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            for name in declared(tree):
                here, origin = ".".join([*parts, name]), origins.get(name)
                same.setdefault(here, set()).add(here)
                if origin:
                    same[here].add(origin)
                    same.setdefault(origin, {origin}).add(here)
    return same


def declared(tree: ast.Module) -> list[str]:
    """The literal `__all__` of a source."""
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return [
        name
        for node in assigned
        if ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site that SKYFALL_SITE says is already built, or one that is built now."""
    if built := os.environ.get("SKYFALL_SITE"):
        return ROOT / built
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_pages_take_their_sources_in_as_the_site_reads_it() -> None:
    """A formatter that takes the marker for code leaves one that the site shows instead of the file."""
    marker = re.compile(r"^.*8\s*<\s*-.*$", re.MULTILINE)
    lines = [line for page in ROOT.glob("docs/**/*.md") for line in marker.findall(page.read_text())]
    assert lines
    assert [line for line in lines if not re.fullmatch(r'--8<-- "[^"]+"', line)] == []


def test_every_public_name_has_an_anchor(site: Path) -> None:
    anchors = {
        anchor for page in site.rglob("*.html") for anchor in re.findall(r'id="([\w.]+)"', page.read_text())
    }
    missing = [name for name, same in public_names().items() if not anchors & same]
    assert missing == []


def test_pages_ask_no_other_server_for_fonts_or_scripts(site: Path) -> None:
    asked = {
        address
        for page in site.rglob("*.html")
        for address in re.findall(
            r'<(?:link|script|img)[^>]+(?:href|src)="(https?://[^"]+)"', page.read_text()
        )
    }
    assert {address for address in asked if "canonical" not in address} == set()


def test_formulas_are_drawn_not_spelled(site: Path) -> None:
    code = re.compile(r"<(pre|code|script|style)\b.*?</\1>", re.DOTALL)
    pages = {page: code.sub("", page.read_text()) for page in site.rglob("*.html") if "api" not in page.parts}
    assert sum(text.count("<math ") for text in pages.values()) > 20
    spelled = re.compile(r"\$\$|\$\\|\\[(\[a-zA-Z_]")
    assert {str(page): spelled.findall(text) for page, text in pages.items() if spelled.search(text)} == {}


def test_no_section_of_the_navigation_stands_twice(site: Path) -> None:
    page = (site / "index.html").read_text()
    opened = re.compile(
        r'data-md-level="1".*?<label class="md-nav__title"[^>]*>\s*<span[^>]*></span>\s*(.*?)\s*</label>',
        re.DOTALL,
    )
    sections = opened.findall(page)
    assert sections
    assert sorted(sections) == sorted(set(sections))
