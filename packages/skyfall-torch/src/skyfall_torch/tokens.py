"""Which tokens of a response carry the policy gradient.

A response is seldom all action: there may be a block of thinking or a sentence of prose in front.
Where the reinforced slice begins is a pure function of the token ids, so the pass that measures the
old policy and the passes that train the new one cannot disagree about it. It also sets the divisor
of the sequence-mean ratio, hence the scale of the whole surrogate: a choice with consequences, not
a detail. Nothing here imports torch.
"""

from collections.abc import Collection, Sequence
from enum import Enum

__all__ = ["ActionTokens", "action_token_start"]


class ActionTokens(str, Enum):
    """Which part of a response is reinforced.

    `QWEN_THINK` is the reference's rule: everything for a response that thinks, else from the last
    token that opens JSON. `ALL` reinforces the whole response, for models with neither convention.
    """

    QWEN_THINK = "qwen_think"
    ALL = "all"


def action_token_start(
    ids: Sequence[int],
    *,
    mode: ActionTokens | str = ActionTokens.QWEN_THINK,
    json_open_ids: Collection[int] = (),
    think_open_id: int | None = None,
    think_close_id: int | None = None,
) -> tuple[int, bool]:
    """The index at which the reinforced slice of a response begins.

    Under `QWEN_THINK`, in order of priority: a response that thinks is reinforced whole (thinking
    tokens without gradient disappear within a few updates); otherwise the slice begins at the last
    token that opens JSON; otherwise everything is reinforced. The closing tag counts wherever it
    stands, since models like to put a newline first; the opening tag counts only at the front.

    Args:
        ids: Token ids of the response alone.
        mode: The rule.
        json_open_ids: Ids of the tokens that begin with `{`.
        think_open_id: Id of `<think>`, if the tokenizer has one.
        think_close_id: Id of `</think>`, if the tokenizer has one.

    Returns:
        The first reinforced index, and whether the response thinks (always False under `ALL`).

    Raises:
        ValueError: If `mode` names no rule.
    """
    if ActionTokens(mode) is ActionTokens.ALL:
        return 0, False
    opens = think_open_id is not None and len(ids) > 0 and ids[0] == think_open_id
    if opens or (think_close_id is not None and think_close_id in ids):
        return 0, True
    for index in range(len(ids) - 1, -1, -1):
        if ids[index] in json_open_ids:
            return index, False
    return 0, False
