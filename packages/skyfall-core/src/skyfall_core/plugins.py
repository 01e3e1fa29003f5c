"""The one place that reads entry points; everything else asks here.

A plugin is a name in a group that leads to `package.module:attribute`. Listing and checking names
imports nothing, so a document that names a torch backend validates on a machine without torch; only
`load` imports. The packages shipped with skyfall-crl use the same groups as anybody else, and their
names are known even where the package is absent, so that the error can say what to install.

Names come from three places: entry points of installed distributions, `register` in this process,
and the table of shipped names. Two distributions with one name in a group are an error for whoever
asks for that name.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial, reduce
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from skyfall_core.errors import (
    MissingExtraError,
    PluginConflictError,
    PluginError,
    PluginLoadError,
    UnknownPluginError,
    suggestion,
)

__all__ = [
    "Group",
    "Plugin",
    "catalogue",
    "find",
    "import_attribute",
    "is_dotted",
    "load",
    "register",
    "resolve",
    "unregister",
]


class Group(str, Enum):
    """The entry-point groups, one a kind of part."""

    ALGORITHMS = "skyfall.algorithms"
    POLICIES = "skyfall.policies"
    ENVIRONMENTS = "skyfall.environments"
    REGIMES = "skyfall.regimes"
    REWARDS = "skyfall.rewards"
    REWARD_COMPONENTS = "skyfall.reward_components"
    VECTORS = "skyfall.vectors"
    TRACKERS = "skyfall.trackers"
    EXECUTORS = "skyfall.executors"
    SCORERS = "skyfall.scorers"
    COMMANDS = "skyfall.commands"

    @property
    def noun(self) -> str:
        """What one member of the group is called in a message."""
        plural = self.value.removeprefix("skyfall.").replace("_", " ")
        return plural.removesuffix("ies") + "y" if plural.endswith("ies") else plural.removesuffix("s")


@dataclass(frozen=True, slots=True)
class Plugin:
    """A name in a group and where it leads.

    Attributes:
        group: The group it belongs to.
        name: The name documents use.
        target: `package.module:attribute`.
        distribution: Name of the distribution that registered it; None for this process.
        version: That distribution's version; None for this process or when it is not installed.
        rivals: Other distributions that registered the same name.
    """

    group: Group
    name: str
    target: str
    distribution: str | None = None
    version: str | None = None
    rivals: tuple[str, ...] = ()

    @property
    def installed(self) -> bool:
        """Whether a distribution or this process provides it, beyond the name being known."""
        return self.distribution is None or self.version is not None

    @property
    def origin(self) -> str:
        """Who registered it, for messages."""
        if self.distribution is None:
            return "this process"
        return (
            f"{self.distribution} {self.version}" if self.version else f"{self.distribution} (not installed)"
        )


EXTRAS = MappingProxyType(
    {
        "skyfall_torch": ("skyfall-torch", "torch"),
        "skyfall_morpheus": ("skyfall-morpheus", "morpheus"),
    }
)
"""Import name of a shipped package to its distribution and to the extra of skyfall-crl that brings it."""

SHIPPED: Mapping[Group, Mapping[str, str]] = MappingProxyType(
    {
        Group.ALGORITHMS: {
            "ppo": "skyfall_torch.ppo:PPOBackend",
            "ewc": "skyfall_torch.ewc:EWCBackend",
            "lcm": "skyfall_torch.lcm:LCMBackend",
        },
        Group.POLICIES: {
            "actor-critic": "skyfall_torch.actor_critic:actor_critic",
            "language": "skyfall_torch.policy:language_policy",
            "morpheus-scripted": "skyfall_morpheus.scripted:ScriptedPolicy",
        },
        Group.ENVIRONMENTS: {"morpheus": "skyfall_morpheus.env:MorpheusEnv"},
        Group.REGIMES: {"morpheus-canonical": "skyfall_morpheus.configurations:canonical"},
        Group.REWARDS: {
            "morpheus-ledger": "skyfall_morpheus.rewards:ledger_only",
            "morpheus-operational": "skyfall_morpheus.rewards:operational",
            "morpheus-process": "skyfall_morpheus.rewards:process_only",
        },
        Group.REWARD_COMPONENTS: {
            "morpheus-exploration": "skyfall_morpheus.rewards:exploration",
            "morpheus-ledger": "skyfall_morpheus.rewards:ledger",
            "morpheus-process": "skyfall_morpheus.rewards:process",
            "morpheus-service": "skyfall_morpheus.rewards:service",
        },
        Group.VECTORS: {"persistent": "skyfall_morpheus.vector:PersistentVectorEnv"},
        Group.COMMANDS: {
            "lcm-warmup": "skyfall_torch.lcm_warmup_command:lcm_warmup",
            "morpheus": "skyfall_morpheus.cli:app",
            "sft": "skyfall_torch.sft_command:sft",
        },
    }
)
"""Names that an extra of skyfall-crl provides, known whether it is installed or not."""

_registered: dict[tuple[Group, str], Plugin] = {}


def _installed(entry: EntryPoint, group: Group) -> Plugin:
    stated = dict(entry.dist.metadata.items()) if entry.dist else {}  # type: ignore[attr-defined]
    name = stated.get("Name", "an unnamed distribution")
    return Plugin(group, entry.name, entry.value, name, stated.get("Version", "without a version"))


@cache
def _discovered(group: Group) -> Mapping[str, Plugin]:
    """Shipped names and entry points of `group`; read once a process."""
    found = {
        name: Plugin(group, name, target, EXTRAS[target.partition(".")[0]][0])
        for name, target in SHIPPED.get(group, {}).items()
    }
    for entry in entry_points(group=group.value):
        plugin, known = _installed(entry, group), found.get(entry.name)
        if known is None:
            found[entry.name] = plugin
        elif known.distribution != plugin.distribution:
            found[entry.name] = dataclasses.replace(known, rivals=(*known.rivals, plugin.origin))
        elif not known.installed:
            found[entry.name] = dataclasses.replace(plugin, rivals=known.rivals)
    return MappingProxyType(found)


def catalogue(group: Group) -> Mapping[str, Plugin]:
    """Every known name of `group` in alphabetical order. Imports nothing."""
    names = dict(_discovered(group))
    names.update({name: plugin for (of, name), plugin in _registered.items() if of is group})
    return dict(sorted(names.items()))


def register(group: Group, name: str, target: str, *, replace: bool = False) -> None:
    """Make `name` lead to `target` in this process.

    Args:
        group: The group to register in.
        name: The name documents will use.
        target: `package.module:attribute`; imported on first use, not now.
        replace: Whether an existing name, shipped ones included, may be taken over.

    Raises:
        PluginError: If `target` has another form.
        PluginConflictError: If the name is taken and `replace` is not given.
    """
    _split(target)
    known = catalogue(group).get(name)
    if known is not None and not replace:
        raise PluginConflictError(
            f"{group.noun} {name!r} is already registered by {known.origin} as {known.target!r}; "
            "choose another name or pass replace=True"
        )
    _registered[group, name] = Plugin(group, name, target)


def unregister(group: Group, name: str) -> None:
    """Forget an in-process registration; what it replaced is visible again."""
    _registered.pop((group, name), None)


def find(group: Group, name: str) -> Plugin:
    """The plugin called `name`, without importing it.

    Raises:
        UnknownPluginError: If nobody registered the name; the nearest names are given.
        PluginConflictError: If two distributions did.
    """
    plugin = _registered.get((group, name)) or _discovered(group).get(name)
    if plugin is None:
        raise UnknownPluginError(f"unknown {group.noun} {name!r}: {suggestion(name, catalogue(group))}")
    if plugin.rivals:
        raise PluginConflictError(
            f"{group.noun} {name!r} is registered by {plugin.origin} and by {', '.join(plugin.rivals)}; "
            "uninstall one of them"
        )
    return plugin


def load(plugin: Plugin) -> Any:
    """The object a plugin leads to, imported now.

    Raises:
        MissingExtraError: If it ships with an extra that is not installed.
        PluginLoadError: If importing it fails; the cause is chained.
    """
    what = f"{plugin.group.noun} {plugin.name!r}"
    if not plugin.installed and not _importable(plugin.target):
        raise MissingExtraError(_missing(what, plugin.target))
    try:
        return import_attribute(plugin.target)
    except MissingExtraError:
        raise
    except PluginError as error:
        raise PluginLoadError(f"{what} of {plugin.origin}: {error}") from error.__cause__


def resolve(group: Group, name: str) -> Any:
    """The object that a plugin's name, or a dotted `package.module:attribute`, leads to; imported now.

    Raises:
        PluginError: As `find` and `load` for a name, as `import_attribute` for a dotted path.
    """
    return import_attribute(name) if ":" in name else load(find(group, name))


def import_attribute(target: str) -> Any:
    """The object at a dotted `package.module:attribute`, imported now.

    Raises:
        MissingExtraError: If the package ships with an extra that is not installed.
        PluginLoadError: If the module or the attribute does not exist, or importing it fails.
    """
    module_name, attribute = _split(target)
    if _root(target) in EXTRAS and not _importable(target):
        raise MissingExtraError(_missing(repr(target), target))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            remedy = "install what holds it, or put its folder on PYTHONPATH"
            raise PluginLoadError(f"{target!r}: there is no module {error.name!r}; {remedy}") from None
        raise _fails_to_import(target, error) from error
    except (Exception, SystemExit) as error:  # a module that exits would end the caller without a word
        raise _fails_to_import(target, error) from error
    return reduce(partial(_attribute, target), attribute.split("."), module)


def _fails_to_import(target: str, error: BaseException) -> PluginLoadError:
    problem = f"module {_split(target)[0]!r} fails to import: {type(error).__name__}: {error}"
    return PluginLoadError(f"{target!r}: {problem}")


def _attribute(target: str, owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        public = [known for known in dir(owner) if not known.startswith("_")]
        where = repr(getattr(owner, "__name__", target))
        raise PluginLoadError(f"{target!r}: {where} has no {name!r}; {suggestion(name, public)}") from None
    except Exception as error:  # a module that imports its members when they are asked for
        problem = f"{name!r} fails to import: {type(error).__name__}: {error}"
        raise PluginLoadError(f"{target!r}: {problem}") from error


def is_dotted(target: str) -> bool:
    """Whether `target` has the form `package.module:attribute`."""
    module_name, _, attribute = target.partition(":")
    return all(part.isidentifier() for part in (*module_name.split("."), *attribute.split(".")))


def _split(target: str) -> tuple[str, str]:
    if not is_dotted(target):
        raise PluginError(f"{target!r} is not of the form 'package.module:attribute'")
    module_name, _, attribute = target.partition(":")
    return module_name, attribute


def _root(target: str) -> str:
    return target.partition(":")[0].partition(".")[0]


def _importable(target: str) -> bool:
    return importlib.util.find_spec(_root(target)) is not None


def _missing(what: str, target: str) -> str:
    distribution, extra = EXTRAS[_root(target)]
    remedy = f"pip install 'skyfall-crl[{extra}]', or from a checkout: uv run --extra {extra} skyfall …"
    return f"{what} comes with {distribution}, which is not installed: {remedy}"
