"""Every check of the workspace by name; `.ci/run` and CONTRIBUTING call these and nothing else.

The sessions share the workspace's own environment, which uv keeps in step with the sources, so a
second run costs what the check costs. `tests_alone` builds throw-away environments of its own.
"""

from pathlib import Path

import nox

nox.needs_version = ">=2026"
nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "tests"]

DEV = ("uv", "run", "--group", "dev")


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting, style, and which package may import which."""
    session.run(*DEV, "ruff", "format", "--check")
    session.run(*DEV, "ruff", "check")
    session.run(*DEV, "lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Static types, strictly."""
    session.run(*DEV, "mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """The quick tests, on every core; further arguments go to pytest in place of that."""
    session.run(*DEV, "pytest", *(session.posargs or ("-n", "auto", "--dist", "loadfile")))


@nox.session
def tests_alone(session: nox.Session) -> None:
    """Each distribution in an environment that holds only it, and a foreign plugin in its own."""
    session.run(*DEV, "pytest", "-m", "alone", "tests/test_alone.py", *session.posargs)


@nox.session
def tests_newer_trl(session: nox.Session) -> None:
    """The torch tests with the newest TRL of the index, which has no PPO and no value head any more."""
    newest = ("--exclude-newer", "2100-01-01", "--with", "trl>1.12")
    session.run("uv", "run", "--isolated", *newest, *DEV[2:], "pytest", "tests/torch", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation site into `site/`, where any warning is an error, and the tests that read it."""
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    session.run(*DEV, "mkdocs", "build", "--strict", env=quiet)
    session.run(*DEV, "pytest", "-m", "site", "tests/test_docs.py", env={"SKYFALL_SITE": "site"})


@nox.session
def bench(session: nox.Session) -> None:
    """Side-by-side measurements; `nox -s bench -- trace` runs benchmarks/bench_trace.py alone."""
    topics = session.posargs or sorted(
        path.stem.removeprefix("bench_") for path in Path("benchmarks").glob("bench_*.py")
    )
    for topic in topics:
        session.run(*DEV, "python", f"benchmarks/bench_{topic}.py")
