"""With what, where and from which seeds a run was made, for its directory and its export bundle.

No user's and no machine's name is recorded, and nothing is imported for it.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from skyfall_core import plugins
from skyfall_core.config import ExperimentConfig
from skyfall_core.documents import with_leaves
from skyfall_core.plugins import Group

__all__ = ["ENVIRONMENT_FILE", "environment_json", "environment_record"]

ENVIRONMENT_FILE = "environment.json"
"""Name of the record inside a run's directory and a bundle."""

PACKAGES = (
    "skyfall-core",
    "skyfall-crl",
    "skyfall-metrics",
    "skyfall-morpheus",
    "skyfall-torch",
    "gymnasium",
    "numpy",
    "pydantic",
    "msgspec",
    "torch",
    "transformers",
    "peft",
    "trl",
    "safetensors",
    "tokenizers",
)
"""Distributions whose versions are recorded where they are installed."""

GIT_SECONDS = 5.0


def environment_record(config: ExperimentConfig) -> dict[str, Any]:
    """Versions, platform, git revision and seeds behind a run of `config`.

    Returns:
        `python`, `implementation`, `platform`, `machine`, `cpus`; `packages`, name to version: this
        package's, what it works with, and every distribution that provides a plugin the document names;
        `git_revision`, what is checked out in the working directory, with `-dirty` for uncommitted
        changes, or None; `seeds`, every seed in the document by its dotted path.
    """
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "packages": dict(_versions(config)),
        "git_revision": git_revision(Path.cwd()),
        "seeds": _seeds(config),
    }


def environment_json(config: ExperimentConfig) -> bytes:
    """`environment_record` as the content of its file."""
    return msgspec.json.format(msgspec.json.encode(environment_record(config)), indent=2) + b"\n"


def git_revision(folder: Path) -> str | None:
    """The revision checked out in `folder`, or None where there is none to be had."""
    command = ("git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    quiet = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(  # noqa: S603 - fixed words and a path
            command, capture_output=True, text=True, check=False, timeout=GIT_SECONDS, env=quiet
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _versions(config: ExperimentConfig) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys([*PACKAGES, *_providers(config)]):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _providers(config: ExperimentConfig) -> Iterator[str]:
    """Distributions of the plugins that the document names."""
    policy = config.algorithm.policy
    named = [
        (Group.ENVIRONMENTS, config.environment.id),
        (Group.ALGORITHMS, config.algorithm.name),
        (Group.POLICIES, policy.factory if policy else ""),
        (Group.REGIMES, config.regime.provider),
        (Group.REWARDS, config.reward.spec if config.reward else ""),
        *((Group.TRACKERS, tracker.name) for tracker in config.trackers),
    ]
    for group, name in named:
        plugin = plugins.catalogue(group).get(name)
        if plugin is not None and plugin.distribution is not None:
            yield plugin.distribution


def _seeds(config: ExperimentConfig) -> dict[str, Any]:
    seeds = {}

    def leaf(dotted: str, value: Any) -> None:
        key = dotted.rpartition(".")[2]
        if (key == "seed" or key.endswith("_seed")) and isinstance(value, int | None):
            seeds[dotted] = value

    with_leaves(config.model_dump(), leaf)
    return seeds
