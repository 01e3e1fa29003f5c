"""What a policy has to know of its tokenizer's vocabulary."""

from collections.abc import Mapping, Sequence
from typing import Any

from skyfall_torch.tokens import ActionTokens, action_token_start

__all__ = ["Vocabulary"]


class Vocabulary:
    """The ids that end, fill and structure responses.

    Args:
        model: The language model; the end tokens of its generation config count beside the tokenizer's.
        tokenizer: Its tokenizer. Without a pad token an end token fills in; without an end token every
            response has full length.

    Attributes:
        json_open_ids: Ids of the tokens that begin with `{`.
        end_ids: Ids of the tokens that end a response.
        pad_id: The filler, never attended to.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        known: Mapping[str, int] = getattr(tokenizer, "get_vocab", dict)()
        self.json_open_ids = {index for token, index in known.items() if str(token).startswith("{")}
        self._think_open_id = known.get("<think>")
        self._think_close_id = known.get("</think>")
        ends = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
        end_ids = {ends} if isinstance(ends, int) else set(ends or ())
        if tokenizer.eos_token_id is not None:
            end_ids.add(tokenizer.eos_token_id)
        self.end_ids = frozenset(end_ids)
        pad = tokenizer.pad_token_id
        self.pad_id: int = pad if pad is not None else min(end_ids, default=0)

    def until_end(self, ids: list[int]) -> list[int]:
        """A response up to its first end token, which belongs to it."""
        for index, token in enumerate(ids):
            if token in self.end_ids:
                return ids[: index + 1]
        return ids

    def qwen_think_start(self, response: Sequence[int]) -> int:
        """The first reinforced token of a response under `ActionTokens.QWEN_THINK`."""
        start, _ = action_token_start(
            response,
            mode=ActionTokens.QWEN_THINK,
            json_open_ids=self.json_open_ids,
            think_open_id=self._think_open_id,
            think_close_id=self._think_close_id,
        )
        return start
