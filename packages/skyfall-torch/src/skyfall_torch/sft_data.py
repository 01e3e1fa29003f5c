"""Reading examples for a supervised warm start. Imports no tensor library."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skyfall_core.errors import ConfigError, InputError
from skyfall_torch.sft_config import DataConfig

__all__ = ["Example", "action_text", "read_examples"]


@dataclass(frozen=True, slots=True)
class Example:
    """One thing to imitate.

    Attributes:
        observation: What was seen; None where `messages` says it.
        action: The text to produce.
        messages: A chat up to the action, or None.
        observed_return: Discounted reward from here on, where it is known.
    """

    observation: Any
    action: str
    messages: list[dict[str, str]] | None = None
    observed_return: float | None = None


def action_text(action: Any) -> str:
    """An action as a model would write it: text as it is, anything else as compact JSON."""
    return (
        action if isinstance(action, str) else json.dumps(action, ensure_ascii=False, separators=(",", ":"))
    )


def read_examples(data: DataConfig, gamma: float = 0.99) -> list[Example]:
    """Every example that `data` describes.

    Args:
        data: A records file, or a trace with an optional filter.
        gamma: Discount of the returns computed from a trace.

    Raises:
        ConfigError: If the file cannot be read or a line is no usable record; names file and line.
        InputError: If nothing is left.
    """
    if data.records is not None:
        examples = [_record(row, place) for row, place in _rows(data.records)]
    else:
        examples = _from_trace(Path(str(data.trace)), data.min_reward, gamma)
    if not examples:
        kept = f" with reward {data.min_reward} or more" if data.min_reward is not None else ""
        raise InputError(f"{data.records or data.trace}: no examples{kept}; there is nothing to imitate")
    return examples


def _rows(path: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Each line's object and where it stands. A torn last line, as a killed run leaves it, is left out."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise ConfigError(f"{path}:{number}: no JSON ({error}); one object a line is expected") from error
        if not isinstance(row, Mapping):
            raise ConfigError(f"{path}:{number}: a {type(row).__name__}; one object a line is expected")
        yield row, f"{path}:{number}"


def _record(row: Mapping[str, Any], place: str) -> Example:
    known = row.get("return")
    observed = float(known) if isinstance(known, int | float) else None
    messages = row.get("messages")
    if messages is None:
        if "observation" not in row or "action" not in row:
            raise ConfigError(
                f"{place}: keys {sorted(row)}; `observation` and `action`, or `messages`, are needed"
            )
        return Example(row["observation"], action_text(row["action"]), observed_return=observed)
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise ConfigError(f"{place}: `messages` must be a list of objects with texts `role` and `content`")
    if messages[-1]["role"] != "assistant":
        raise ConfigError(
            f"{place}: the last message is by {messages[-1]['role']!r}; it must be the assistant's"
        )
    return Example(None, messages[-1]["content"], messages[:-1], observed)


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and all(isinstance(message.get(key), str) for key in ("role", "content"))


def _from_trace(path: Path, min_reward: float | None, gamma: float) -> list[Example]:
    rows = [row for row, _ in _rows(path)]
    if rows and not any("observation" in row for row in rows):
        raise ConfigError(f"{path}: no observations in it; record with `rollout.record_observations: true`")
    returns = _returns(rows, gamma)
    return [
        Example(row["observation"], action_text(row["action"]), observed_return=value)
        for row, value in zip(rows, returns, strict=True)
        if {"observation", "action"} <= row.keys()
        and row.get("reward") is not None
        and (min_reward is None or row["reward"] >= min_reward)
    ]


def _returns(rows: list[Mapping[str, Any]], gamma: float) -> list[float]:
    """Discounted rewards to each episode's end, world by world; the trace's end ends every episode."""
    returns = [0.0] * len(rows)
    following: dict[Any, float] = {}
    for index in range(len(rows) - 1, -1, -1):
        row = rows[index]
        world = (row.get("run_id"), row.get("world"))
        ended = row.get("terminated") or row.get("truncated")
        later = 0.0 if ended else following.get(world, 0.0)
        returns[index] = following[world] = float(row.get("reward") or 0.0) + gamma * later
    return returns
