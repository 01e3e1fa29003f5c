"""The command line's tree: light, complete, and honest about commands it cannot load."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from skyfall_core import __version__, plugins
from skyfall_core.cli.app import build_app
from skyfall_core.plugins import Group

Command = Callable[..., None]
Invoke = Callable[..., Result]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Install a third party's command: its name, its target and the module it leads to."""
    monkeypatch.syspath_prepend(tmp_path)
    modules = set(sys.modules)

    def install(name: str, target: str, module: str, distribution: str = "third-party") -> None:
        folder = tmp_path / f"{distribution}-2.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 2.0\n")
        (folder / "entry_points.txt").write_text(f"[skyfall.commands]\n{name} = {target}\n")
        (tmp_path / f"{target.partition(':')[0]}.py").write_text(module)
        plugins._discovered.cache_clear()

    plugins._discovered.cache_clear()
    yield install
    plugins._discovered.cache_clear()
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    return lambda *arguments: CliRunner().invoke(build_app(), arguments)


def test_help_lists_every_command_on_standard_output(invoke: Invoke) -> None:
    done = invoke("--help")
    assert done.exit_code == 0
    assert {"run", "sweep", "validate", "plugins"} <= set(re.findall(r"\w+", done.stdout))
    assert done.stderr == ""
    assert invoke("-h").stdout == done.stdout


def test_version_is_printed(invoke: Invoke) -> None:
    done = invoke("--version")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{__version__}\n", "")


@pytest.mark.parametrize(
    "arguments", [["nosuch"], ["--nosuch"], ["run"], ["validate", "a", "b"], ["sweep", "x", "--nosuch"]]
)
def test_wrong_usage_exits_2_and_leaves_standard_output_empty(invoke: Invoke, arguments: list[str]) -> None:
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr


@pytest.mark.parametrize(
    "command_line", ["--help", "--version", "run --help", "sweep --help", "validate --help"]
)
def test_help_loads_neither_world_nor_documents_nor_arrays(command_line: str) -> None:
    heavy = ["gymnasium", "numpy", "torch", "yaml", "msgspec"]
    if command_line.startswith("-"):
        heavy.append("pydantic")  # typer itself imports it as soon as a command has parameters
    code = (
        "import sys\nfrom skyfall_core.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code in (None, 0), end.code\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command_line.split()], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_importing_the_package_loads_next_to_nothing() -> None:
    code = (
        "import sys, skyfall_core\n"
        "heavy = ('gymnasium', 'pydantic', 'numpy', 'torch', 'yaml', 'msgspec', 'typer', 'rich')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ---------------------------------------------------------------- commands of others


def test_function_of_a_third_party_becomes_a_command(command: Command, invoke: Invoke) -> None:
    command("greet", "tp_greet:greet", "def greet(name: str):\n    'Say hello.'\n    print('hello', name)\n")
    assert "Say hello." in invoke("--help").stdout
    done = invoke("greet", "you")
    assert (done.exit_code, done.stdout) == (0, "hello you\n")


def test_application_of_a_third_party_becomes_a_group_of_commands(command: Command, invoke: Invoke) -> None:
    module = (
        "import typer\napp = typer.Typer()\n"
        "@app.command()\ndef serve(): print('serving')\n@app.command()\ndef stop(): print('stopping')\n"
    )
    command("world", "tp_world:app", module)
    done = invoke("world", "serve")
    assert (done.exit_code, done.stdout) == (0, "serving\n")


def test_deliberate_error_of_a_third_party_is_told_like_our_own(command: Command, invoke: Invoke) -> None:
    module = (
        "from skyfall_core.errors import ConfigError, RunError\n"
        "def fail(run: bool = False): raise RunError('it broke') if run else ConfigError('first\\nsecond')\n"
    )
    command("fail", "tp_fail:fail", module)
    done = invoke("fail")
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", "error: first\nerror: second\n")
    done = invoke("fail", "--run")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "error: it broke\n")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import absent_altogether", "ModuleNotFoundError: No module named 'absent_altogether'"),
        ("raise RuntimeError('pip install it[extra]')", "RuntimeError: pip install it[extra]"),
        ("raise SystemExit(0)", "SystemExit: 0"),
    ],
)
def test_command_that_cannot_be_loaded_breaks_nothing_and_says_why_when_called(
    command: Command, invoke: Invoke, module: str, why: str
) -> None:
    command("broken", "tp_broken:go", module)
    problem = (
        f"command 'broken' of third-party 2.0: 'tp_broken:go': module 'tp_broken' fails to import: {why}"
    )
    shown = invoke("--help")
    assert shown.exit_code == 0
    assert re.search(r"^ +broken +\(cannot be loaded; call it to see why\)$", shown.stdout, re.MULTILINE)
    assert f"Cannot be loaded: {problem}" in " ".join(invoke("broken", "--help").stdout.split())
    assert invoke("plugins").exit_code == 0
    for arguments in (["broken"], ["broken", "an-argument", "--an-option"]):
        done = invoke(*arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.splitlines()[-1] == f"error: {problem}"
        assert "Traceback (most recent call last)" in done.stderr


def test_command_of_an_extra_that_is_absent_says_which_extra_when_called(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: ())
    monkeypatch.setattr(plugins, "_importable", lambda target: False)
    plugins._discovered.cache_clear()
    try:
        assert re.search(
            r"^ +sft +\(not installed; call it to see why\)$", invoke("--help").stdout, re.MULTILINE
        )
        done = invoke("sft", "examples/language_sft.yaml", "--check")
    finally:
        plugins._discovered.cache_clear()
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "error: command 'sft' comes with skyfall-torch, which is not installed: "
        "pip install 'skyfall-crl[torch]', or from a checkout: uv run --extra torch skyfall …\n"
    )


def test_command_of_two_distributions_says_so_when_called(command: Command, invoke: Invoke) -> None:
    command("twice", "tp_twice:go", "def go(): print('went')")
    command("twice", "tp_other:go", "def go(): print('went')", distribution="another")
    assert invoke("--help").exit_code == 0
    done = invoke("twice")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "third-party 2.0" in done.stderr
    assert "another 2.0" in done.stderr


@pytest.mark.parametrize("name", ["run", "sweep", "validate", "plugins"])
def test_built_in_command_is_not_taken_over_in_silence(command: Command, invoke: Invoke, name: str) -> None:
    command(name, "tp_taken:go", "print('imported')\ndef go(): print('taken over')")
    done = invoke(name)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: command {name!r} is built in and registered by third-party 2.0 too; uninstall that\n"
    )
    assert invoke("--help").exit_code == 0


def test_installed_script_is_this_application() -> None:
    script = Path(sys.executable).with_name("skyfall")
    done = subprocess.run(
        [script, "plugins", "--json"], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0
    assert all(group.value in done.stdout for group in Group)
