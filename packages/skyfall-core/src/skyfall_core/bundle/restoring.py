"""Writing a policy's weights down and making the same policy from them again.

Three ways, in this order; which one was taken stands in the manifest.

1. The document names a policy, and the policy has `save(path)` and `kwargs_to_restore(kwargs)`: the
   factory makes it from other keywords than the document's, among them the place of the weights. A
   language model is loaded from its folder this way, whatever it was loaded from before.
2. The document names a policy, and it has `save(path)` and `load(path)`: the factory makes it from the
   document's keywords and `load` fills it.
3. The algorithm has `save_checkpoint(path)` and `load_checkpoint(path)`: it is built as for a run and
   filled, and its policy acts. This is for algorithms that own their policy, and for policies that
   have nothing to save.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from skyfall_core.bundle.manifest import PolicyRecord
from skyfall_core.config import AlgorithmConfig, PolicyConfig
from skyfall_core.construction import Spaces, build_algorithm, build_policy
from skyfall_core.documents import Document, with_leaves
from skyfall_core.errors import BundleError, SkyfallError
from skyfall_core.protocols import SAVED
from skyfall_core.validation import explain

__all__ = ["how_to_restore", "restore_policy", "save_policy"]

Model = TypeVar("Model", bound=BaseModel)


def how_to_restore(algorithm: Any, config: AlgorithmConfig) -> PolicyRecord:
    """How the algorithm's policy will be made again. Writes nothing, so a run can ask before it begins.

    Raises:
        InputError: If the policy cannot be saved, or not be restored from what it saves.
    """
    policy = algorithm.policy
    name = f"{type(policy).__module__}:{type(policy).__qualname__}"
    if config.policy is not None and _has(policy, "save"):
        if _has(policy, "kwargs_to_restore"):
            return PolicyRecord("kwargs", name, dict(policy.kwargs_to_restore(config.policy.kwargs)))
        if _has(policy, "load"):
            return PolicyRecord("policy", name)
        remedy = "give it load(path) or kwargs_to_restore(kwargs)"
        raise BundleError(f"policy {name} has save() and nothing that reads it back; {remedy}")
    if _has(algorithm, "save_checkpoint") and _has(algorithm, "load_checkpoint"):
        return PolicyRecord("algorithm", name)
    remedy = "give the policy save(path) and load(path), or the algorithm save_checkpoint and load_checkpoint"
    raise BundleError(f"policy {name} of {type(algorithm).__name__} cannot be saved; {remedy}")


def save_policy(algorithm: Any, config: AlgorithmConfig, place: Path) -> PolicyRecord:
    """Write the algorithm's policy to `place`, which does not exist yet, and say how to restore it.

    Raises:
        InputError: As `how_to_restore`, or if saving fails or writes nothing.
    """
    record = how_to_restore(algorithm, config)
    if record.restored_by == "algorithm":
        _written(f"{type(algorithm).__name__}.save_checkpoint", algorithm.save_checkpoint, place)
    else:
        _written(f"{record.class_name}.save", algorithm.policy.save, place)
    return record


def restore_policy(
    record: PolicyRecord,
    document: Document,
    spaces: Spaces,
    place: Path,
    policy_kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """The policy that `save_policy` wrote to `place`.

    Args:
        record: What `save_policy` returned.
        document: The run's; only its section `algorithm` is looked at, so that nothing else it names
            need be installed.
        spaces: Those the policy was made for.
        place: Where the weights are.
        policy_kwargs: Keywords of the policy's factory that stand above the recorded ones.

    Raises:
        InputError: If something it needs is not installed, or the weights do not fit.
    """
    if record.restored_by == "algorithm":
        algorithm_config = _section(AlgorithmConfig, document, "algorithm")
        if policy_kwargs and algorithm_config.policy is None:
            raise BundleError(
                f"policy_kwargs {dict(policy_kwargs)!r}: {algorithm_config.name!r} takes no policy"
            )
        if policy_kwargs and algorithm_config.policy is not None:
            chosen = _with_kwargs(algorithm_config.policy, policy_kwargs)
            algorithm_config = algorithm_config.model_copy(update={"policy": chosen})
        algorithm = build_algorithm(algorithm_config, spaces)
        _read(f"{type(algorithm).__name__}.load_checkpoint", algorithm.load_checkpoint, place)
        return algorithm.policy
    config = _section(PolicyConfig, document, "algorithm", "policy")
    if record.restored_by == "kwargs":
        stored = with_leaves(record.kwargs or {}, lambda _, value: str(place) if value == SAVED else value)
        return build_policy(_with_kwargs(config, {**stored, **(policy_kwargs or {})}, instead=True), spaces)
    policy = build_policy(_with_kwargs(config, policy_kwargs or {}), spaces)
    _read(f"{type(policy).__name__}.load", policy.load, place)
    return policy


def _with_kwargs(config: PolicyConfig, kwargs: Mapping[str, Any], *, instead: bool = False) -> PolicyConfig:
    return config.model_copy(update={"kwargs": dict(kwargs) if instead else {**config.kwargs, **kwargs}})


def _section(model: type[Model], document: Document, *names: str) -> Model:
    content: Any = document.content
    for name in names:
        content = content.get(name) if isinstance(content, Mapping) else None
    try:
        return model.model_validate(content)
    except ValidationError as error:
        within = Document(content if isinstance(content, Mapping) else {}, document.path)
        raise BundleError(f"{'.'.join(names)}: {explain(error, within, model)}") from None


def _has(owner: Any, name: str) -> bool:
    return callable(getattr(owner, name, None))


def _written(what: str, save: Callable[[Path], Any], place: Path) -> None:
    try:
        save(place)
    except SkyfallError:
        raise
    except Exception as error:
        raise BundleError(f"{what} failed: {type(error).__name__}: {error}") from error
    if not place.exists():
        raise BundleError(f"{what} wrote nothing to the path it was given; it has to write a file or folder")


def _read(what: str, load: Callable[[Path], Any], place: Path) -> None:
    try:
        load(place)
    except SkyfallError:
        raise
    except Exception as error:
        raise BundleError(f"{place}: {what} failed: {type(error).__name__}: {error}") from error
