"""Plugins: found without an import, and loud where they cannot be had."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skyfall_core import plugins
from skyfall_core.errors import (
    MissingExtraError,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    UnknownPluginError,
)
from skyfall_core.plugins import EXTRAS, SHIPPED, Group, Plugin

Install = Callable[..., None]


def fresh_process(source: str, path: Path, *arguments: str) -> Any:
    """What `source` prints as JSON in a new interpreter that also finds what is installed in `path`."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), *arguments],
        env=os.environ | {"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path; what this process found before is read again before and after."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "_registered", {})
    modules = set(sys.modules)
    plugins._discovered.cache_clear()
    yield tmp_path
    plugins._discovered.cache_clear()
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def install(site: Path) -> Install:
    """Put a distribution and its module into `site`."""

    def put(
        distribution: str,
        group: Group,
        entries: dict[str, str],
        *,
        version: str | None = "1.2",
        module: str = "",
    ) -> None:
        folder = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        stated = f"Metadata-Version: 2.1\nName: {distribution}\n" + (
            f"Version: {version}\n" if version else ""
        )
        (folder / "METADATA").write_text(stated)
        listed = "".join(f"{name} = {target}\n" for name, target in entries.items())
        (folder / "entry_points.txt").write_text(f"[{group.value}]\n{listed}")
        (site / f"{distribution.replace('-', '_')}_mod.py").write_text(textwrap.dedent(module))

    return put


# ---------------------------------------------------------------- found


def test_plugin_of_an_installed_distribution_is_found_with_its_origin(install: Install) -> None:
    install("third-party", Group.ALGORITHMS, {"mine": "third_party_mod:Thing"}, module="class Thing: pass")
    plugin = plugins.find(Group.ALGORITHMS, "mine")
    assert plugin == Plugin(Group.ALGORITHMS, "mine", "third_party_mod:Thing", "third-party", "1.2")
    assert plugin.installed
    assert plugin.origin == "third-party 1.2"
    assert plugins.load(plugin).__name__ == "Thing"


def test_names_are_listed_in_alphabetical_order_and_only_in_their_group(install: Install) -> None:
    install("third-party", Group.REGIMES, {"zz": "m:a", "aa": "m:b"})
    names = list(plugins.catalogue(Group.REGIMES))
    assert names == sorted(names)
    assert {"aa", "constant", "scheduled", "zz"} <= set(names)
    assert "zz" not in plugins.catalogue(Group.ALGORITHMS)


def test_attribute_of_an_attribute_may_be_named(install: Install) -> None:
    install("tp", Group.REWARDS, {"deep": "tp_mod:A.make"}, module="class A:\n    make = 'made'")
    assert plugins.load(plugins.find(Group.REWARDS, "deep")) == "made"


def test_listing_and_finding_import_nothing(install: Install, site: Path) -> None:
    install("tp", Group.COMMANDS, {"one": "tp_mod:a"}, module="raise SystemExit('imported')")
    found = fresh_process(
        """
        import json, sys
        from skyfall_core import plugins, registry
        from skyfall_core.plugins import Group
        before = set(sys.modules)
        names = {group.value: list(plugins.catalogue(group)) for group in Group}
        plugins.find(Group.COMMANDS, "one"), registry.available(), registry.is_registered("ppo")
        parts = ("torch", "transformers", "numpy", "gymnasium", "skyfall_torch", "skyfall_morpheus", "tp_mod",
                 "skyfall_core.regime", "skyfall_core.rewards", "skyfall_core.baselines")
        print(json.dumps([names, [name for name in parts if name in sys.modules]]))
        """,
        site,
    )
    assert "one" in found[0]["skyfall.commands"]
    assert found[1] == []


# ---------------------------------------------------------------- conflicts


@pytest.mark.parametrize("names", [("aaa", "bbb"), ("bbb", "aaa")])
def test_two_distributions_with_one_name_are_refused_by_both_names(
    install: Install, names: tuple[str, str]
) -> None:
    for name in names:
        install(name, Group.ALGORITHMS, {"mine": f"{name}_mod:X"}, version=f"1.{name}")
    with pytest.raises(PluginConflictError) as caught:
        plugins.find(Group.ALGORITHMS, "mine")
    first, second = sorted(str(caught.value).replace(";", "").split()[i : i + 2] for i in (5, 9))
    assert (first, second) == (["aaa", "1.aaa"], ["bbb", "1.bbb"])
    assert str(caught.value).startswith("algorithm 'mine' is registered by ")
    assert str(caught.value).endswith("; uninstall one of them")


def test_three_rivals_are_all_named(install: Install) -> None:
    for name in ("aaa", "bbb", "ccc"):
        install(name, Group.REWARDS, {"mine": f"{name}_mod:X"})
    with pytest.raises(PluginConflictError) as caught:
        plugins.find(Group.REWARDS, "mine")
    assert all(f"{name} 1.2" in str(caught.value) for name in ("aaa", "bbb", "ccc"))


def test_conflict_touches_nobody_who_asks_for_another_name(install: Install) -> None:
    for name in ("aaa", "bbb"):
        install(name, Group.REGIMES, {"mine": f"{name}_mod:X"})
    assert plugins.find(Group.REGIMES, "constant").distribution == "skyfall-core"


@pytest.mark.parametrize("third_party", ["aaa", "zzz"])
def test_shipped_name_that_a_third_party_takes_is_a_conflict_in_either_order(
    install: Install, site: Path, third_party: str
) -> None:
    install(third_party, Group.ALGORITHMS, {"lcm": "x:Y"})
    if plugins.catalogue(Group.ALGORITHMS)["lcm"].version is None:
        install("skyfall-torch", Group.ALGORITHMS, {"lcm": "skyfall_torch.lcm:LCMBackend"}, version="9")
    for order in (1, -1):
        plugins._discovered.cache_clear()
        entries = list(plugins.entry_points(group="skyfall.algorithms"))[::order]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plugins, "entry_points", lambda group, entries=entries: entries)
            with pytest.raises(PluginConflictError) as caught:
                plugins.find(Group.ALGORITHMS, "lcm")
        assert f"{third_party} 1.2" in str(caught.value)
        assert "skyfall-torch" in str(caught.value)


def test_shipped_name_is_given_its_version_once_it_is_installed(install: Install) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "entry_points", lambda group: [])
        assert plugins.find(Group.ENVIRONMENTS, "morpheus").origin == "skyfall-morpheus (not installed)"
    plugins._discovered.cache_clear()
    target = SHIPPED[Group.ENVIRONMENTS]["morpheus"]
    install("skyfall-morpheus", Group.ENVIRONMENTS, {"morpheus": target}, version="9")
    assert plugins.find(Group.ENVIRONMENTS, "morpheus").installed


# ---------------------------------------------------------------- failures to load


@pytest.mark.parametrize(
    ("module", "target", "problem", "cause"),
    [
        (
            "import absent",
            "tp_mod:X",
            "'tp_mod:X': module 'tp_mod' fails to import: ModuleNotFoundError: No module named 'absent'",
            ModuleNotFoundError,
        ),
        (
            "raise RuntimeError('boom')",
            "tp_mod:X",
            "'tp_mod:X': module 'tp_mod' fails to import: RuntimeError: boom",
            RuntimeError,
        ),
        (
            "raise SystemExit(0)",
            "tp_mod:X",
            "'tp_mod:X': module 'tp_mod' fails to import: SystemExit: 0",
            SystemExit,
        ),
        (
            "Xylo = odd = 1",
            "tp_mod:Xyl",
            "'tp_mod:Xyl': 'tp_mod' has no 'Xyl'; did you mean 'Xylo'? known: 'Xylo', 'odd'",
            None,
        ),
        (
            "class A: b = 1",
            "tp_mod:A.c",
            "'tp_mod:A.c': 'A' has no 'c'; known: 'b'",
            None,
        ),
        (
            "def __getattr__(name):\n    import absent",
            "tp_mod:X",
            "'tp_mod:X': 'X' fails to import: ModuleNotFoundError: No module named 'absent'",
            ModuleNotFoundError,
        ),
        (
            "",
            "no_such_module:X",
            ("'no_such_module:X': there is no module 'no_such_module'; "
            "install what holds it, or put its folder on PYTHONPATH"),
            None,
        ),
        (
            "",
            "tp_mod.inner:X",
            ("'tp_mod.inner:X': there is no module 'tp_mod.inner'; "
            "install what holds it, or put its folder on PYTHONPATH"),
            None,
        ),
        ("", "tp_mod", "'tp_mod' is not of the form 'package.module:attribute'", None),
        ("X = 1", "tp_mod:X [e]", "'tp_mod:X [e]' is not of the form 'package.module:attribute'", None),
    ],
)  # fmt: skip
def test_plugin_that_fails_to_load_says_whose_it_is_and_chains_its_own_error(
    install: Install, module: str, target: str, problem: str, cause: type[BaseException] | None
) -> None:
    install("tp", Group.ALGORITHMS, {"mine": target}, module=module)
    with pytest.raises(PluginLoadError) as caught:
        plugins.load(plugins.find(Group.ALGORITHMS, "mine"))
    assert str(caught.value) == f"algorithm 'mine' of tp 1.2: {problem}"
    assert type(caught.value.__cause__) is (cause or type(None))


def test_distribution_that_states_no_version_still_loads(install: Install) -> None:
    install(
        "tp", Group.ALGORITHMS, {"mine": "tp_mod:X", "bad": "no_such_module:X"}, version=None, module="X = 1"
    )
    assert plugins.load(plugins.find(Group.ALGORITHMS, "mine")) == 1
    with pytest.raises(PluginLoadError, match=r"^algorithm 'bad' of tp without a version: "):
        plugins.load(plugins.find(Group.ALGORITHMS, "bad"))


def test_interrupt_while_importing_is_no_load_error(install: Install) -> None:
    install("tp", Group.ALGORITHMS, {"mine": "tp_mod:X"}, module="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        plugins.load(plugins.find(Group.ALGORITHMS, "mine"))


# ---------------------------------------------------------------- unknown and absent


def test_unknown_name_is_told_the_nearest_and_the_list() -> None:
    with pytest.raises(UnknownPluginError) as caught:
        plugins.find(Group.REGIMES, "constnat")
    known = ", ".join(map(repr, plugins.catalogue(Group.REGIMES)))
    assert str(caught.value) == f"unknown regime 'constnat': did you mean 'constant'? known: {known}"


@pytest.mark.parametrize(
    ("group", "noun"),
    [
        (Group.ALGORITHMS, "algorithm"),
        (Group.POLICIES, "policy"),
        (Group.ENVIRONMENTS, "environment"),
        (Group.REGIMES, "regime"),
        (Group.REWARDS, "reward"),
        (Group.REWARD_COMPONENTS, "reward component"),
        (Group.VECTORS, "vector"),
        (Group.TRACKERS, "tracker"),
        (Group.EXECUTORS, "executor"),
        (Group.SCORERS, "scorer"),
        (Group.COMMANDS, "command"),
    ],
)
def test_group_is_named_in_the_singular(group: Group, noun: str) -> None:
    with pytest.raises(UnknownPluginError, match=f"^unknown {noun} 'qqq': "):
        plugins.find(group, "qqq")


def test_empty_group_says_that_none_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_discovered", lambda group: {})
    monkeypatch.setattr(plugins, "_registered", {})
    with pytest.raises(UnknownPluginError, match=r"^unknown tracker 'x': none is known$"):
        plugins.find(Group.TRACKERS, "x")


ABSENT = """
    import importlib.util, json, sys
    from skyfall_core import plugins
    from skyfall_core.errors import MissingExtraError
    from skyfall_core.plugins import Group
    plugins.entry_points = lambda group: []
    find_spec = importlib.util.find_spec
    importlib.util.find_spec = lambda name, package=None: (
        None if name.partition(".")[0] in plugins.EXTRAS else find_spec(name, package))
    told = []
    for group, names in plugins.SHIPPED.items():
        for name, target in names.items():
            plugin = plugins.find(group, name)
            for attempt in (lambda: plugins.load(plugin), lambda: plugins.import_attribute(target)):
                try:
                    attempt()
                except MissingExtraError as error:
                    told.append(str(error))
    print(json.dumps(told))
"""


def test_shipped_name_that_is_absent_is_known_and_says_which_extra_brings_it(tmp_path: Path) -> None:
    told = fresh_process(ABSENT, tmp_path)
    expected = []
    for group, names in SHIPPED.items():
        for name, target in names.items():
            distribution, extra = EXTRAS[target.partition(".")[0]]
            for what in (f"{group.noun} {name!r}", repr(target)):
                expected.append(  # noqa: PERF401 - two lines a name
                    f"{what} comes with {distribution}, which is not installed: "
                    f"pip install 'skyfall-crl[{extra}]', "
                    f"or from a checkout: uv run --extra {extra} skyfall …"
                )
    assert told == expected
    assert told[0] == (
        "algorithm 'ppo' comes with skyfall-torch, which is not installed: "
        "pip install 'skyfall-crl[torch]', or from a checkout: uv run --extra torch skyfall …"
    )


def test_every_shipped_name_belongs_to_an_extra() -> None:
    assert {target.partition(".")[0] for names in SHIPPED.values() for target in names.values()} <= set(
        EXTRAS
    )


# ---------------------------------------------------------------- dotted names


@pytest.mark.parametrize(
    "target", ["", ":", "a", "a:", ":b", "a.:b", "a b:c", "a:b:c", "a.b:c()", "a/b:c", "1a:b"]
)
def test_target_of_another_form_is_refused(target: str) -> None:
    assert not plugins.is_dotted(target)
    problem = f"{target!r} is not of the form 'package.module:attribute'"
    with pytest.raises(PluginError) as caught:
        plugins.import_attribute(target)
    assert str(caught.value) == problem
    with pytest.raises(PluginError) as caught:
        plugins.register(Group.ALGORITHMS, "bad", target)
    assert str(caught.value) == problem


def test_dotted_name_leads_to_its_object() -> None:
    assert plugins.is_dotted("pathlib:Path.home")
    assert plugins.import_attribute("pathlib:Path.home") == Path.home


# ---------------------------------------------------------------- in this process


def test_registration_is_found_loaded_and_forgotten(site: Path) -> None:
    plugins.register(Group.POLICIES, "here", "pathlib:Path")
    plugin = plugins.find(Group.POLICIES, "here")
    assert (plugin.origin, plugin.installed, plugins.load(plugin)) == ("this process", True, Path)
    plugins.unregister(Group.POLICIES, "here")
    plugins.unregister(Group.POLICIES, "here")
    assert "here" not in plugins.catalogue(Group.POLICIES)


def test_registering_imports_nothing(site: Path) -> None:
    plugins.register(Group.POLICIES, "later", "no_such_module:X")
    with pytest.raises(PluginLoadError, match=r"^policy 'later' of this process: "):
        plugins.load(plugins.find(Group.POLICIES, "later"))


def test_taken_name_needs_leave_to_be_replaced_and_comes_back(site: Path) -> None:
    with pytest.raises(PluginConflictError) as caught:
        plugins.register(Group.REGIMES, "constant", "pathlib:Path")
    held = plugins.find(Group.REGIMES, "constant")
    assert str(caught.value) == (
        f"regime 'constant' is already registered by {held.origin} as 'skyfall_core.regime:ConstantRegime'; "
        "choose another name or pass replace=True"
    )
    plugins.register(Group.REGIMES, "constant", "pathlib:Path", replace=True)
    assert plugins.load(plugins.find(Group.REGIMES, "constant")) is Path
    plugins.unregister(Group.REGIMES, "constant")
    assert plugins.find(Group.REGIMES, "constant") == held


def test_shipped_name_is_taken_even_where_its_package_is_absent(site: Path) -> None:
    with pytest.raises(PluginConflictError, match="already registered by skyfall-torch"):
        plugins.register(Group.ALGORITHMS, "ppo", "pathlib:Path")


def test_replacing_settles_a_conflict_of_two_distributions(install: Install) -> None:
    for name in ("aaa", "bbb"):
        install(name, Group.REWARDS, {"mine": f"{name}_mod:X"})
    plugins.register(Group.REWARDS, "mine", "pathlib:Path", replace=True)
    assert plugins.load(plugins.find(Group.REWARDS, "mine")) is Path


def test_missing_extra_is_a_plugin_error_and_wrong_input() -> None:
    assert issubclass(MissingExtraError, PluginError)
    assert MissingExtraError.exit_status == 2


def test_a_name_and_a_dotted_path_resolve_to_the_same_object() -> None:
    by_name = plugins.resolve(Group.REWARDS, "weighted")
    assert by_name is plugins.resolve(Group.REWARDS, "skyfall_core.rewards:weighted")
    with pytest.raises(UnknownPluginError, match=r"^unknown reward 'wieghted'"):
        plugins.resolve(Group.REWARDS, "wieghted")
