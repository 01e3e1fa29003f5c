"""The document of an encoder warm-up: which recorded traces teach which encoder, and where it goes.

Reading it imports no tensor library. Relative paths are relative to the document.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from skyfall_core.documents import overridden, read_document
from skyfall_core.errors import ConfigError
from skyfall_core.validation import Section, explain

__all__ = ["WarmupDocument", "WarmupTraining", "load_warmup_document"]

PathField = Annotated[Path, Field(strict=False)]


class WarmupTraining(Section):
    """How long and how fast, and what is kept back to measure on."""

    steps: int = Field(default=200, ge=1, description="Optimizer steps, each on all training windows.")
    learning_rate: float = Field(default=1e-3, gt=0)
    consistency_coeff: float = Field(default=0.1, ge=0, description="Weight of the consistency loss.")
    held_out: float = Field(
        default=0.2, gt=0, lt=1, description="Share of each stretch, at its end, that is only measured on."
    )
    seed: int = Field(default=0, ge=0, lt=2**63)


class WarmupDocument(Section):
    """A complete warm-up."""

    traces: list[PathField] = Field(
        min_length=1, description="Recorded traces with observations, plain or `.gz`."
    )
    encoder: dict[str, Any] = Field(
        default_factory=dict, description="Fields of `EncoderConfig`, as in a run's `encoder_shape`."
    )
    training: WarmupTraining = Field(default_factory=WarmupTraining)
    output: PathField = Field(description="The `.safetensors` file that a run's `warmup` names.")


def load_warmup_document(path: str | Path, settings: Iterable[str] = ()) -> WarmupDocument:
    """Read and check a document.

    Args:
        path: The YAML file.
        settings: `dotted.path=value` each, replacing single values.

    Raises:
        ConfigError: Naming file, dotted path, value and remedy of every fault.
    """
    document = overridden(read_document(path), settings)
    try:
        read = WarmupDocument.model_validate(document.content)
    except ValidationError as error:
        raise ConfigError(explain(error, document, WarmupDocument)) from None
    if read.output.suffix != ".safetensors":
        raise ConfigError(f"{document.place('output')}: {str(read.output)!r} must end in .safetensors")
    base = Path(path).parent
    traces = [base / trace for trace in read.traces]
    return read.model_copy(update={"traces": traces, "output": base / read.output})
