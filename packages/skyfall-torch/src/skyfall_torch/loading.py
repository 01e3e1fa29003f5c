"""Language models and tokenizers from names, directories, adapters, or nothing at all.

Whatever is loaded is loaded wholly: a weight that a checkpoint lacks, has too much of, or holds in
another shape is an error here, where Transformers would warn and draw it at random. Files are read
as tensors only, and no code from a model repository is run.
"""

import json
import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.utils import load_peft_weights, set_peft_model_state_dict
from peft.utils.save_and_load import get_peft_model_state_dict
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from skyfall_core.errors import CheckpointError, ConfigError
from skyfall_torch.devices import resolve_device
from skyfall_torch.options import LanguagePolicyConfig
from skyfall_torch.randomness import OwnRandomness
from skyfall_torch.tiny import TinyConfig, tiny_model, tiny_tokenizer

__all__ = ["is_adapter", "load_language_model", "load_tokenizer", "restore_weights", "save_language_model"]

TINY = "tiny"
_TINY_BASE = "tiny_base.json"
_ADAPTER = "adapter_config.json"
_WHOLE = ("model*.safetensors", "pytorch_model*.bin")
_READ_ERRORS = (OSError, ValueError, KeyError, RuntimeError, SafetensorError, pickle.UnpicklingError)


def is_adapter(source: str | PathLike[str]) -> bool:
    """Whether `source` is a directory that holds a LoRA adapter rather than a whole model.

    Raises:
        CheckpointError: If it holds both, since nothing says which one is meant.
    """
    folder = Path(source)
    if not (folder / _ADAPTER).is_file():
        return False
    if _holds_whole_weights(folder):
        raise CheckpointError(f"{source}: holds both an adapter and whole weights; keep what is meant")
    return True


def _holds_whole_weights(folder: Path) -> bool:
    return any(True for pattern in _WHOLE for _ in folder.glob(pattern))


def load_language_model(config: LanguagePolicyConfig) -> Any:
    """The causal language model that `config` describes, with its adapter, on its device.

    Raises:
        ConfigError: If the model cannot be found, or `lora` is asked for on top of an adapter.
        CheckpointError: If a directory's weights are incomplete, too many, or of other shapes.
    """
    source = str(config.model)
    dtype: torch.dtype = getattr(torch, config.dtype)
    if is_adapter(source):
        if config.lora is not None:
            raise ConfigError(
                f"lora: {source!r} already is an adapter; leave `lora` out to go on training it"
            )
        model = _with_stored_adapter(source, dtype)
    else:
        model = _base_model(source, dtype, config.tiny)
        if config.lora is not None:
            model = _with_new_adapter(model, config.lora, config.seed)
    model = model.to(resolve_device(config.device))
    if config.gradient_checkpointing:
        enable = (
            getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
        )
        enable({"use_reentrant": False})
    return model


def load_tokenizer(config: LanguagePolicyConfig) -> Any:
    """The tokenizer that `config` describes; the model's own unless it names another."""
    source = str(config.tokenizer or config.model)
    if source == TINY:
        return tiny_tokenizer()
    _refuse_empty(source)
    try:
        return AutoTokenizer.from_pretrained(source)
    except _READ_ERRORS as error:
        raise ConfigError(f"tokenizer {source!r}: cannot be loaded ({error})") from error


def save_language_model(model: Any, directory: Path) -> None:
    """Write a model's weights, or only its adapter where it has one.

    Raises:
        CheckpointError: If the directory holds the other kind: both together could not be told apart.
    """
    mine, other, taken = "whole weights", "an adapter", (directory / _ADAPTER).is_file()
    if is_peft(model):
        mine, other, taken = other, mine, _holds_whole_weights(directory)
    if taken:
        raise CheckpointError(f"{directory}: holds {other} already; write {mine} to another directory")
    with _quiet():
        model.save_pretrained(directory)
    tiny = getattr(model.config, "skyfall_tiny", None)
    if is_peft(model) and tiny is not None:
        # An adapter names its base model by path; this base has none and is rebuilt from its options.
        (directory / _TINY_BASE).write_text(json.dumps(tiny), encoding="utf-8")


def restore_weights(model: Any, directory: Path) -> None:
    """Fill `model` in place with the weights that `save_language_model` wrote.

    Raises:
        CheckpointError: If they are damaged or belong to another kind of model.
    """
    if is_peft(model) != is_adapter(directory):
        holds = "an adapter" if is_adapter(directory) else "whole weights"
        raise CheckpointError(
            f"{directory}: holds {holds}, but the policy is of the other kind; check `lora`"
        )
    if is_peft(model):
        _fill_adapter(model, directory)
        return
    stored = _pretrained(str(directory), model.dtype)
    try:
        model.load_state_dict(stored.state_dict())
    except RuntimeError as error:
        raise CheckpointError(f"{directory}: made for another model ({error})") from error


def is_peft(model: Any) -> bool:
    """Whether the model carries an adapter."""
    return isinstance(model, PeftModel)


def _base_model(source: str, dtype: torch.dtype, tiny: Mapping[str, Any] | None) -> Any:
    if source != TINY:
        return _pretrained(source, dtype)
    options = TinyConfig.of(tiny or {})
    model: Any = tiny_model(options)
    model.to(dtype)
    model.config.skyfall_tiny = options.to_dict()
    return model


def _refuse_empty(source: str) -> None:
    folder = Path(source)
    if folder.is_dir() and not any(folder.iterdir()):
        raise CheckpointError(f"model {source!r}: an empty directory; `skyfall sft` writes a model into one")


def _pretrained(source: str, dtype: torch.dtype) -> Any:
    """A whole model from a hub name or directory."""
    _refuse_empty(source)
    wrong = CheckpointError if Path(source).is_dir() else ConfigError
    loader: Any = AutoModelForCausalLM
    try:
        with _quiet():
            model, report = loader.from_pretrained(source, dtype=dtype, output_loading_info=True)
    except _READ_ERRORS as error:
        raise wrong(
            f"model {source!r}: cannot be loaded ({error}); give 'tiny', a directory with weights and "
            "config.json, or a hub name that is reachable from here"
        ) from error
    extra = [key for key in report["unexpected_keys"] if "v_head" not in key]
    if report["missing_keys"] or extra or report.get("mismatched_keys"):
        raise CheckpointError(
            f"model {source!r}: missing weights {sorted(report['missing_keys'])[:4]}, unknown weights "
            f"{sorted(extra)[:4]}, weights of another shape {sorted(report.get('mismatched_keys') or [])[:4]}"
        )
    return model


def _with_new_adapter(model: Any, lora: Mapping[str, Any], seed: int | None) -> Any:
    """The model with a fresh LoRA adapter; everything else is frozen."""
    try:
        options = LoraConfig(task_type="CAUSAL_LM", **lora)
        with OwnRandomness(seed).active(), _quiet():
            return get_peft_model(model, options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"lora {dict(lora)!r}: {error}; see peft.LoraConfig for its options") from error


def _with_stored_adapter(directory: str, dtype: torch.dtype) -> Any:
    """The base model an adapter was trained on, with that adapter, ready to train on."""
    folder = Path(directory)
    try:
        settings = json.loads((folder / _ADAPTER).read_text(encoding="utf-8"))
        tiny = folder / _TINY_BASE
        if tiny.is_file():
            base = _base_model(TINY, dtype, json.loads(tiny.read_text(encoding="utf-8")))
        else:
            base = _base_model(str(settings["base_model_name_or_path"]), dtype, None)
        with _quiet():
            options = LoraConfig.from_pretrained(directory)
            options.inference_mode = False  # as saved it would come back frozen
            model = get_peft_model(base, options)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise CheckpointError(f"{directory}: damaged adapter description ({error!r})") from error
    _fill_adapter(model, folder)
    return model


def _fill_adapter(model: Any, directory: Path) -> None:
    try:
        stored = load_peft_weights(str(directory), device="cpu")
        expected = get_peft_model_state_dict(model)
        wrong = sorted(
            {key for key in stored.keys() & expected.keys() if stored[key].shape != expected[key].shape}
            | (stored.keys() ^ expected.keys())
        )
        if wrong:
            raise CheckpointError(
                f"{directory}: adapter weights that are missing, unknown or misshapen: {wrong[:4]}"
            )
        set_peft_model_state_dict(model, stored)
    except _READ_ERRORS as error:
        raise CheckpointError(f"{directory}: adapter weights cannot be read ({error})") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars over shards, and without PEFT's use of a name Transformers deprecates."""
    bars: Any = transformers_logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated")
            yield
    finally:
        if shown:
            bars.enable_progress_bar()
