"""What a run's environment.json says."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from skyfall_core.config import ExperimentConfig
from skyfall_core.provenance import environment_json, environment_record, git_revision

CONFIG = ExperimentConfig.model_validate(
    {
        "environment": {"id": "CartPole-v1", "kwargs": {"world_seed": 5, "seedling": 1}},
        "algorithm": {"name": "random", "kwargs": {"seed": 7}},
        "rollout": {"total_steps": 1},
        "run": {"seed": 3},
        "trackers": [{"name": "csv"}],
    }
)


def test_record_names_versions_platform_and_every_seed() -> None:
    record = environment_record(CONFIG)
    assert record["python"] == platform.python_version()
    assert record["packages"]["skyfall-core"] == version("skyfall-core")
    assert record["packages"]["numpy"] == version("numpy")
    assert record["seeds"] == {
        "environment.kwargs.world_seed": 5,
        "algorithm.kwargs.seed": 7,
        "run.seed": 3,
    }
    assert json.loads(environment_json(CONFIG)) == json.loads(json.dumps(record))


def test_nobodys_and_no_machines_name_is_in_it() -> None:
    text = environment_json(CONFIG).decode()
    keys = ["python", "implementation", "platform", "machine", "cpus", "packages", "git_revision", "seeds"]
    assert list(json.loads(text)) == keys
    assert str(Path.home()) not in text


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *words],  # noqa: S607 - whichever is there
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_git_revision_says_whether_there_are_uncommitted_changes(tmp_path: Path) -> None:
    assert git_revision(tmp_path) is None
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    git(tmp_path, "tag", "v1", "-m", "a tag that is no revision")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert git_revision(tmp_path) == head
    (tmp_path / "file").write_text("2")
    assert git_revision(tmp_path) == f"{head}-dirty"


def test_without_git_there_is_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_revision(Path.cwd()) is None


def test_nothing_heavy_is_imported_for_it() -> None:
    source = (
        "import sys; from skyfall_core.provenance import environment_record; "
        "from skyfall_core.config import ExperimentConfig; "
        f"config = ExperimentConfig.model_validate_json({CONFIG.model_dump_json()!r}, strict=False); "
        "environment_record(config); "
        "print(sorted({'torch', 'transformers', 'mlflow', 'wandb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
