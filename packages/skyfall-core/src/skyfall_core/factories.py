"""Building what a document names: factories called with the document's keywords.

A factory is any callable. One that names `observation_space`, `action_space` or another thing the
run can offer among its parameters is given it. A keyword it does not take is refused with the
nearest one, and whatever it raises is reported with the place in the document that caused it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from skyfall_core.errors import ConfigError, SkyfallError, suggestion

__all__ = ["call_factory", "takes_keyword"]


def call_factory(factory: Callable[..., Any], kwargs: Mapping[str, Any], place: str, **offered: Any) -> Any:
    """Call `factory` with a document's keywords and with those of `offered` that it names.

    Args:
        factory: Any callable.
        kwargs: The document's keywords; they win over `offered`.
        place: Dotted path of those keywords in the document, such as `algorithm.kwargs`.
        **offered: What the run can supply, such as `observation_space`.

    Returns:
        Whatever the factory returns.

    Raises:
        ConfigError: If a keyword is unknown to the factory, one it needs is missing, or it raises.
    """
    takes, takes_any = _keywords(factory)
    given = {name: value for name, value in offered.items() if name in takes} | dict(kwargs)
    name = getattr(getattr(factory, "func", factory), "__qualname__", type(factory).__name__)
    for key in given:
        if key not in takes and not takes_any:
            raise ConfigError.at(f"{place}.{key}", f"{name} takes no {key!r}; {suggestion(key, takes)}")
    for key, parameter in takes.items():
        if parameter.default is inspect.Parameter.empty and key not in given:
            raise ConfigError.at(place, f"{name} needs {key!r}, which is not given")
    try:
        return factory(**given)
    except SkyfallError as error:
        if type(error) is not ConfigError or error.place is not None:
            raise
        raise ConfigError.at(place, error) from error.__cause__
    except Exception as error:
        problem = f"building {name} failed: {type(error).__name__}: {error}"
        raise ConfigError.at(place, problem) from error


def takes_keyword(factory: Callable[..., Any], name: str) -> bool:
    """Whether `factory` can be given `name` as a keyword."""
    takes, takes_any = _keywords(factory)
    return name in takes or takes_any


def _keywords(factory: Callable[..., Any]) -> tuple[dict[str, inspect.Parameter], bool]:
    """The keywords `factory` names, and whether it takes others too."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some callables written in C have no signature
        return {}, True
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    takes = {key: parameter for key, parameter in parameters.items() if parameter.kind in kinds}
    return takes, any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
