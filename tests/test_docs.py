"""The documentation site: it builds strictly, and every public name can be linked to."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def declared(path: Path) -> list[str]:
    """The literal `__all__` of a source file, without importing it."""
    assigned = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)]
    return [
        name
        for node in assigned
        if ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    ]


def public_names() -> list[tuple[str, str]]:
    """Module and name of everything that a package calls public."""
    found = []
    for source in sorted(ROOT.glob("packages/*/src")):
        for path in sorted(source.rglob("*.py")):
            parts = [part for part in path.relative_to(source).with_suffix("").parts if part != "__init__"]
            # the interface of the command line is its commands
            if "cli" not in parts and not any(part.startswith("_") for part in parts):
                found += [(".".join(parts), name) for name in declared(path)]
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_every_public_name_has_an_anchor(site: Path) -> None:
    anchors = {
        anchor for page in site.rglob("*.html") for anchor in re.findall(r'id="([\w.]+)"', page.read_text())
    }
    # a name is documented where it lives or where a module of the umbrella re-exports it
    reachable = {tuple(anchor.rsplit(".", 2)[-2:]) for anchor in anchors if "." in anchor}
    missing = [
        f"{module}.{name}"
        for module, name in public_names()
        if (module.rpartition(".")[2].removeprefix("skyfall_"), name)
        not in {(leaf.removeprefix("skyfall_"), name) for leaf, name in reachable}
        and module not in {"skyfall_crl.train", "skyfall_crl.env"}
    ]
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
