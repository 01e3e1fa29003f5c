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

__all__ = ["call_factory", "parameters_of"]


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
    parameters = parameters_of(factory)
    given = {name: value for name, value in offered.items() if name in parameters} | dict(kwargs)
    name = getattr(getattr(factory, "func", factory), "__qualname__", type(factory).__name__)
    _check_keywords(name, parameters, given, place)
    try:
        return factory(**given)
    except SkyfallError:
        raise
    except Exception as error:
        raise ConfigError(f"{place}: building {name} failed: {type(error).__name__}: {error}") from error


def parameters_of(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What `factory` takes, by name; anything at all, where that cannot be told."""
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some callables written in C have no signature
        return {"kwargs": inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)}


def _check_keywords(
    name: str, parameters: Mapping[str, inspect.Parameter], given: Mapping[str, Any], place: str
) -> None:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    takes = [key for key, parameter in parameters.items() if parameter.kind in kinds]
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        for key in given:
            if key not in takes:
                raise ConfigError(f"{place}.{key}: {name} takes no {key!r}; {suggestion(key, takes)}")
    for key in takes:
        if parameters[key].default is inspect.Parameter.empty and key not in given:
            raise ConfigError(f"{place}: {name} needs {key!r}, which is not given")
