"""What the pages and READMEs tell a reader to type: commands that parse, documents that validate."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from skyfall_core.cli.app import build_app
from skyfall_core.config import ExperimentConfig, parse_config
from skyfall_core.documents import Document, read_document
from skyfall_core.regime import RegimeSchedule
from skyfall_core.sweep import parse_sweep
from skyfall_torch.sft_config import load_sft

ROOT = Path(__file__).parents[1]
PAGES = [
    path
    for pattern in (
        "*.md",
        "packages/*/README.md",
        "docs/**/*.md",
        "benchmarks/README.md",
        "examples/**/*.md",
    )
    for path in sorted(ROOT.glob(pattern))
]
SECTIONS = set(ExperimentConfig.model_fields)
REST = {
    "environment": {"id": "CartPole-v1"},
    "algorithm": {"name": "random"},
    "rollout": {"total_steps": 10},
    "run": {"seed": 0},
}
PROGRAMS = {"README.md", "bundles.md"}
"""Pages whose Python blocks are whole programs."""
FENCE = re.compile(r"^( *)```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^\1```$", re.MULTILINE | re.DOTALL)


def blocks(*languages: str) -> Iterator[tuple[Path, str]]:
    """Fenced blocks in one of the languages, and the page each stands on."""
    for page in PAGES:
        for fence in FENCE.finditer(page.read_text()):
            if fence["language"] in languages:
                yield page.relative_to(ROOT), fence["text"]


def commands() -> list[str]:
    """Every command of ours that a page shows, as it would be typed after `uv run …`."""
    found = {}
    for _, text in blocks("bash", "shell", "console"):
        for line in text.replace("\\\n", " ").splitlines():
            for part in line.removeprefix("$ ").partition("#")[0].split("&&"):
                ours = re.search(r"(?:^|uv run .*)\b(skyfall(?:-metrics)?) (?P<rest>[a-z].*)$", part.strip())
                if ours:
                    found[ours["rest"].strip()] = None
    return list(found)


def documents() -> list[Any]:
    """YAML blocks that are documents of ours or sections of one, by page."""
    found = []
    for number, (page, text) in enumerate(blocks("yaml")):
        content = None if "--8<--" in text else yaml.safe_load(text)
        if isinstance(content, dict) and ({"families", "regimes"} & set(content) or set(content) <= SECTIONS):
            found.append(pytest.param(content, id=f"{page}-{number}"))
    return found


def check(document: Document) -> None:
    """Validate a document as its command does; sections alone are put into a whole one."""
    content = document.content
    if "families" in content:
        assert parse_sweep(document)
    elif "regimes" in content:
        assert RegimeSchedule.from_dict(content).regimes
    elif "training" in content:
        assert document.path
        assert load_sft(document.path).training
    else:
        assert parse_config(replace(document, content={**REST, **content})).rollout.total_steps


@pytest.fixture(scope="module")
def skyfall() -> Any:
    return typer.main.get_command(build_app())


@pytest.mark.parametrize("line", commands())
def test_shown_command_parses(skyfall: Any, line: str) -> None:
    command, words = skyfall, shlex.split(line)
    while hasattr(command, "commands"):
        assert words[0] in command.commands, f"no such command: {line}"
        command = command.commands[words.pop(0)]
    command.make_context("skyfall", words).close()


def test_pages_show_commands_at_all() -> None:
    assert "run examples/quickstart.yaml" in commands()


@pytest.mark.parametrize("content", documents())
def test_shown_document_validates(content: dict[str, Any]) -> None:
    check(Document(content))


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("examples/**/*.yaml")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_example_validates(path: Path) -> None:
    check(read_document(path))


def labels(scorecard: str) -> list[str]:
    """The first column of the table of metrics."""
    table = re.search(r"^ Metric .*?\n ─+ *\n(?P<rows>(?: +\S[^\n]*\n)+)", scorecard, re.MULTILINE)
    assert table, scorecard
    return [re.split(r"  +", row.strip())[0] for row in table["rows"].splitlines() if row.strip()]


def test_shown_scorecard_has_the_rows_that_a_run_prints(tmp_path: Path) -> None:
    shown = next(text for _, text in blocks("text") if " Metric " in text)
    short = ["--set", f"run.output_dir={tmp_path}", "--set", "rollout.total_steps=2000", "--quiet"]
    run = CliRunner().invoke(build_app(), ["run", str(ROOT / "examples/quickstart.yaml"), *short])
    assert run.exit_code == 0, run.output
    assert labels(shown) == labels(run.output)


@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=str(page)) for page, text in blocks("python") if page.name in PROGRAMS],
)
def test_shown_program_runs(text: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
