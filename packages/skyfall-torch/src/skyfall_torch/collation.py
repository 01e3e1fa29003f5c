"""Text samples, and how several become one padded batch.

Prompts are padded on the left and responses on the right, so that in every row the response begins
in the same column. The output layer then needs only those columns, which for a long prompt and a
large vocabulary is most of the memory of an update.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skyfall_torch.tokens import ActionTokens

__all__ = ["IGNORED", "TextBatch", "TextSample", "collate"]

IGNORED = -100
"""Target of a position that has none, as `torch.nn.functional.cross_entropy` knows it."""


@dataclass(frozen=True, slots=True)
class TextSample:
    """One generated response and the prompt it answered.

    Attributes:
        prompt_ids: (P,) token ids on the CPU, P ≥ 1.
        response_ids: (T,) token ids on the CPU, the end-of-sequence token included.
        qwen_think_start: First reinforced token under `ActionTokens.QWEN_THINK`.
    """

    prompt_ids: Tensor
    response_ids: Tensor
    qwen_think_start: int = 0

    @property
    def length(self) -> int:
        """Tokens in the response."""
        return self.response_ids.numel()

    def action_start(self, mode: ActionTokens) -> int:
        """The first reinforced token of the response under `mode`."""
        return 0 if mode is ActionTokens.ALL else self.qwen_think_start

    def state(self) -> dict[str, Any]:
        """The sample as tensors and integers."""
        return {
            "prompt_ids": self.prompt_ids,
            "response_ids": self.response_ids,
            "qwen_think_start": self.qwen_think_start,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "TextSample":
        """The sample that `state` described."""
        return cls(state["prompt_ids"], state["response_ids"], int(state["qwen_think_start"]))


@dataclass(frozen=True, slots=True)
class TextBatch:
    """B samples as one padded sequence each, of width P + T.

    Attributes:
        input_ids: (B, P + T) prompt and response.
        attention_mask: (B, P + T) 1 on real tokens.
        position_ids: (B, P + T) counted from each row's first real token.
        prompt_width: P; the response begins in this column.
        lengths: (B,) tokens of each response.
        targets: (B, T + 1) the token that each kept position predicts; `IGNORED` where there is none.
    """

    input_ids: Tensor
    attention_mask: Tensor
    position_ids: Tensor
    prompt_width: int
    lengths: Tensor
    targets: Tensor

    @property
    def kept_positions(self) -> Tensor:
        """(T + 1,) the columns the output layer is needed for: before the response to its end."""
        width = self.input_ids.shape[1]
        return torch.arange(self.prompt_width - 1, width, device=self.input_ids.device)

    @property
    def response_mask(self) -> Tensor:
        """(B, T) True where the response has a token."""
        return self.targets[:, :-1] != IGNORED


def collate(samples: Sequence[TextSample], pad_id: int, device: torch.device) -> TextBatch:
    """Pad samples into one batch on `device`.

    Args:
        samples: At least one.
        pad_id: Filler token; never attended to.
        device: Where the batch is needed.

    Raises:
        ValueError: If there is no sample, or one without a prompt.
    """
    if not samples:
        raise ValueError("no samples to evaluate: act first, or pass what `take_generated` returned")
    prompt_width = max(sample.prompt_ids.numel() for sample in samples)
    if min(sample.prompt_ids.numel() for sample in samples) == 0:
        raise ValueError("a sample without prompt tokens: nothing predicts its first response token")
    response_width = max(sample.length for sample in samples)
    shape = (len(samples), prompt_width + response_width)
    input_ids = torch.full(shape, pad_id, dtype=torch.long)
    attention_mask = torch.zeros(shape, dtype=torch.long)
    targets = torch.full((len(samples), response_width + 1), IGNORED, dtype=torch.long)
    for row, sample in enumerate(samples):
        begin, end = prompt_width - sample.prompt_ids.numel(), prompt_width + sample.length
        input_ids[row, begin:prompt_width] = sample.prompt_ids
        input_ids[row, prompt_width:end] = sample.response_ids
        attention_mask[row, begin:end] = 1
        targets[row, : sample.length] = sample.response_ids
    return TextBatch(
        input_ids=input_ids.to(device),
        attention_mask=attention_mask.to(device),
        position_ids=(attention_mask.cumsum(dim=1) - 1).clamp(min=0).to(device),
        prompt_width=prompt_width,
        lengths=torch.tensor([sample.length for sample in samples], device=device),
        targets=targets.to(device),
    )
