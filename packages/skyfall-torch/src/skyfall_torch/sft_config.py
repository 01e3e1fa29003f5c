"""The document of a supervised warm start: which policy learns from which records, and where it goes.

Reading it imports no tensor library. Relative paths are relative to the document.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from skyfall_core.documents import overridden, read_document
from skyfall_core.errors import ConfigError
from skyfall_core.validation import Section, explain

__all__ = ["DataConfig", "SFTDocument", "TrainingConfig", "ValueConfig", "load_sft"]

PathField = Annotated[Path, Field(strict=False)]


class DataConfig(Section):
    """Where the examples come from: exactly one of a records file and a trace."""

    records: PathField | None = Field(
        default=None,
        description="JSONL of `{observation, action}` or `{messages}`, optionally with `return`.",
    )
    trace: PathField | None = Field(default=None, description="A recorded `traces.jsonl` with observations.")
    min_reward: float | None = Field(
        default=None, description="Keep only the trace's steps with this reward or more."
    )

    @model_validator(mode="after")
    def _one_source(self) -> "DataConfig":
        if (self.records is None) == (self.trace is None):
            raise ValueError("give either `records` or `trace`")
        if self.min_reward is not None and self.trace is None:
            raise ValueError("`min_reward` filters a `trace`; records are taken whole")
        return self


class TrainingConfig(Section):
    """How long and how fast."""

    epochs: float = Field(default=3.0, gt=0, strict=False)
    learning_rate: float = Field(default=1e-4, gt=0)
    batch_size: int = Field(default=16, ge=1)
    gradient_accumulation: int = Field(default=1, ge=1)
    warmup_steps: int = Field(default=0, ge=0)
    max_length: int = Field(
        default=1024, ge=2, description="Tokens of prompt and action; longer ones lose their beginning."
    )
    seed: int = Field(default=0, ge=0)


class ValueConfig(Section):
    """The critic's own warm start: regression on returns, with the language model held fixed."""

    epochs: int = Field(default=4, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    batch_size: int = Field(default=16, ge=1)
    gamma: float = Field(default=0.99, ge=0, le=1, description="Discount of returns computed from a trace.")


class SFTDocument(Section):
    """A complete supervised warm start."""

    policy: dict[str, Any] = Field(description="The keywords of `language_policy`; `model` is needed.")
    data: DataConfig
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    value: ValueConfig | None = None
    output_dir: PathField = Field(description="Directory that `language_policy(model=…)` will load.")


def load_sft(path: str | Path, settings: Iterable[str] = ()) -> SFTDocument:
    """Read and check a document.

    Args:
        path: The YAML file.
        settings: `dotted.path=value` each, replacing single values.

    Raises:
        ConfigError: Naming file, dotted path, value and remedy of every fault.
    """
    document = overridden(read_document(path), settings)
    try:
        read = SFTDocument.model_validate(document.content)
    except ValidationError as error:
        raise ConfigError(explain(error, document, SFTDocument)) from None
    if "model" not in read.policy:
        raise ConfigError(f"{document.place('policy')}: `model` is missing; 'tiny', a path or a hub name")
    base = Path(path).parent
    data = read.data.model_copy(
        update={name: base / value for name in ("records", "trace") if (value := getattr(read.data, name))}
    )
    policy = dict(read.policy)
    if str(policy["model"]).startswith(("./", "../")):
        policy["model"] = str(base / str(policy["model"]))
    return read.model_copy(
        update={"data": data, "policy": policy, "output_dir": Path(os.path.normpath(base / read.output_dir))}
    )
