"""Gymnasium spaces for JSON: what a tool call and a world's state are.

Both are open: an action space must contain whatever a policy may utter, because refusing a malformed
action is the environment's job and not an exception.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from gymnasium import Space

__all__ = ["ActionSpace", "StateSpace"]

LARGEST_ACTION = 20_000


def json_size(value: Any) -> int | None:
    """Bytes of `value` as JSON, None when it is no JSON."""
    try:
        return len(msgspec.json.encode(value))
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError, OverflowError):
        return None


class ActionSpace(Space[Any]):
    """JSON objects and strings of moderate size; samples name a tool.

    Args:
        tools: Names that `sample` draws from.
        seed: Of the draws.
    """

    def __init__(self, tools: tuple[str, ...], seed: int | None = None) -> None:
        super().__init__(None, None, seed)
        self.tools = tools

    @property
    def is_np_flattenable(self) -> bool:
        """False: a tool call is no vector."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> dict[str, str]:  # noqa: ARG002
        """A call of one tool, its target left to the environment."""
        return {"tool": self.tools[int(self.np_random.integers(len(self.tools)))]}

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string or a JSON object of moderate size."""
        size = json_size(x) if isinstance(x, str | dict) else None
        return size is not None and size <= LARGEST_ACTION

    def json_schema(self) -> dict[str, Any]:
        """What an export bundle says of an action; the limit of its size has no word in a schema."""
        tool = {"type": "object", "properties": {"tool": {"examples": list(self.tools)}}}
        return {"anyOf": [{"type": "string", "maxLength": LARGEST_ACTION}, tool]}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActionSpace) and self.tools == other.tools

    __hash__ = None  # type: ignore[assignment]  # spaces compare by value

    def __repr__(self) -> str:
        return f"ActionSpace({len(self.tools)} tools)"


class StateSpace(Space[Any]):
    """JSON objects up to a number of bytes.

    Args:
        limit: Largest size as JSON.
        seed: Of the samples.
    """

    def __init__(self, limit: int, seed: int | None = None) -> None:
        super().__init__(None, None, seed)
        self.limit = limit

    @property
    def is_np_flattenable(self) -> bool:
        """False: a state is no vector."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Some JSON object; no state a world would be in."""
        return {"sample": int(self.np_random.integers(np.iinfo(np.int32).max))}

    def contains(self, x: Any) -> bool:
        """Whether `x` is a JSON object within the limit."""
        size = json_size(x) if isinstance(x, dict) else None
        return size is not None and size <= self.limit

    def json_schema(self) -> dict[str, Any]:
        """What an export bundle says of a state; the limit of its size has no word in a schema."""
        return {"type": "object"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateSpace) and self.limit == other.limit

    __hash__ = None  # type: ignore[assignment]  # spaces compare by value

    def __repr__(self) -> str:
        return f"StateSpace({self.limit})"
