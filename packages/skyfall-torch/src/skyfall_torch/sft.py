"""The supervised warm start itself: TRL's trainer on the policy's own prompts, then the critic.

The prompts are the ones the policy will act on, so reinforcement learning continues from exactly what
was imitated. The loss is on the action's tokens alone.
"""

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from transformers import PrinterCallback

from skyfall_core.atomic import partial_beside, put_in_place
from skyfall_core.errors import ConfigError, MissingExtraError
from skyfall_torch.collation import TextSample
from skyfall_torch.loading import save_language_model
from skyfall_torch.policy import LanguagePolicy, language_policy
from skyfall_torch.prompts import prompt_ids
from skyfall_torch.sft_config import SFTDocument, TrainingConfig, ValueConfig
from skyfall_torch.sft_data import Example, read_examples
from skyfall_torch.value_head import write_value_head

__all__ = ["encode_example", "train_sft", "warm_start_value"]

Report = Callable[[str], None]


def train_sft(
    document: SFTDocument, report: Report = lambda _: None, *, overwrite: bool = False
) -> dict[str, float]:
    """Imitate the document's examples and write a directory that `language_policy` loads, or nothing.

    Args:
        document: What to do.
        report: Told about each phase in words.
        overwrite: Whether a model that is there is replaced.

    Returns:
        `examples`, `loss` (mean over training), and with a `value` section `value_loss_first` and
        `value_loss_last`.

    Raises:
        MissingExtraError: If TRL is not installed.
        ConfigError: If the policy or an example cannot be used, or something is in the way.
    """
    if importlib.util.find_spec("trl") is None:
        raise MissingExtraError(
            "skyfall sft needs TRL, which is not installed: pip install 'skyfall-crl[torch,trl]'"
        )
    check_place(document.output_dir, overwrite=overwrite)
    gamma = document.value.gamma if document.value else 0.99
    examples = read_examples(document.data, gamma)
    options = {name: value for name, value in document.policy.items() if name != "model"}
    policy = language_policy(document.policy["model"], **options)
    samples = [encode_example(policy, example, document.training.max_length) for example in examples]
    report(f"imitating {len(samples)} examples")
    document.output_dir.parent.mkdir(parents=True, exist_ok=True)
    with partial_beside(document.output_dir) as folder:
        folder.mkdir()
        measured = _learned(policy, samples, examples, document, folder, report)
        put_in_place(folder, document.output_dir)
    return measured


def check_place(folder: Path, *, overwrite: bool) -> None:
    """Say what is in the way of a model.

    Raises:
        ConfigError: If `folder` holds a model that is not to be replaced, or anything else.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not any((folder / name).is_file() for name in ("config.json", "adapter_config.json")):
        raise ConfigError(f"output_dir {str(folder)!r}: is there and holds no model; choose another folder")
    if not overwrite:
        raise ConfigError(f"output_dir {str(folder)!r}: already holds a model; replace it with --overwrite")


def _learned(
    policy: LanguagePolicy,
    samples: Sequence[TextSample],
    examples: Sequence[Example],
    document: SFTDocument,
    folder: Path,
    report: Report,
) -> dict[str, float]:
    """Train on the samples and write what was learned to `folder`."""
    loss = _imitate(policy, samples, document.training, folder)
    measured = {"examples": float(len(samples)), "loss": loss}
    save_language_model(policy.model, folder)
    policy.tokenizer.save_pretrained(folder)
    if document.value is not None:
        returns = [example.observed_return for example in examples]
        known = [value for value in returns if value is not None]
        if len(known) != len(returns):
            raise ConfigError("value: some examples have no `return`; add it to every record, or use a trace")
        report("fitting the critic to returns")
        losses = warm_start_value(policy, samples, known, document.value)
        write_value_head(folder, policy.value_head, "v_head.pt")
        measured |= {"value_loss_first": losses[0], "value_loss_last": losses[-1]}
    elif policy.loaded_value_head:
        write_value_head(folder, policy.value_head)
    return measured


def encode_example(policy: LanguagePolicy, example: Example, max_length: int) -> TextSample:
    """An example as the tokens that the policy would have seen and written.

    The end token is part of what is learned. A prompt that is too long loses its beginning.

    Raises:
        ConfigError: If the action lacks the policy's response prefix or suffix, or alone is too long.
    """
    tokenizer, prefix, suffix = (
        policy.tokenizer,
        policy.sampling.response_prefix,
        policy.sampling.response_suffix,
    )
    if not example.action.startswith(prefix):
        raise ConfigError(
            f"action {example.action!r}: does not begin with the policy's response_prefix {prefix!r}"
        )
    if not example.action[len(prefix) :].endswith(suffix):
        raise ConfigError(
            f"action {example.action!r}: does not end with the policy's response_suffix {suffix!r}"
        )
    prompt = _prompt(policy, example)
    if prefix:
        prompt += tokenizer.encode(prefix, add_special_tokens=False)
    action = tokenizer.encode(example.action[len(prefix) :].removesuffix(suffix), add_special_tokens=False)
    if tokenizer.eos_token_id is not None:
        action.append(tokenizer.eos_token_id)
    room = max_length - len(action)
    if room < 1 or not action:
        raise ConfigError(
            f"action of {len(action)} tokens: needs at least 1 and fewer than max_length {max_length}"
        )
    return TextSample(torch.tensor(prompt[-room:]), torch.tensor(action))


def warm_start_value(
    policy: LanguagePolicy, samples: Sequence[TextSample], returns: Sequence[float], config: ValueConfig
) -> list[float]:
    """Fit the critic to returns by least squares, the language model unchanged.

    Args:
        policy: Whose critic learns.
        samples: What was seen and done.
        returns: One a sample.
        config: Epochs, learning rate and batch size.

    Returns:
        Mean squared error of each epoch, measured while it was trained.
    """
    policy.train(False)
    optimizer = torch.optim.AdamW(policy.value_head.parameters(), lr=config.learning_rate, weight_decay=0.0)
    targets = torch.tensor(returns, dtype=torch.float32, device=policy.device)
    losses = []
    for _ in range(config.epochs):
        total = 0.0
        for begin in range(0, len(samples), config.batch_size):
            end = begin + config.batch_size
            values = policy.evaluate(samples[begin:end]).values
            loss = functional.mse_loss(values, targets[begin:end].to(values.dtype))
            gradients = torch.autograd.grad(loss, list(policy.value_head.parameters()))
            for parameter, gradient in zip(policy.value_head.parameters(), gradients, strict=True):
                parameter.grad = gradient
            optimizer.step()
            total += loss.item() * len(values)
        losses.append(total / len(samples))
    return losses


def _prompt(policy: LanguagePolicy, example: Example) -> list[int]:
    if example.messages is None:
        return prompt_ids(policy.prompt(example.observation, policy.tokenizer), policy.tokenizer)
    if getattr(policy.tokenizer, "chat_template", None):
        ids: list[int] = policy.tokenizer.apply_chat_template(
            example.messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
        return ids
    text = "\n".join(message["content"] for message in example.messages)
    return prompt_ids(f"{text}\nAction:", policy.tokenizer)


def _imitate(
    policy: LanguagePolicy, samples: Sequence[TextSample], config: TrainingConfig, folder: Path
) -> float:
    """Run TRL's trainer over encoded samples; the mean loss."""
    datasets: Any = import_module("datasets")  # comes with TRL
    bars = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    rows = [
        {
            "input_ids": sample.prompt_ids.tolist() + sample.response_ids.tolist(),
            "completion_mask": [0] * sample.prompt_ids.numel() + [1] * sample.length,
        }
        for sample in samples
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TRL and its dependencies deprecate each other's names
        trainer = _trainer(policy, datasets.Dataset.from_list(rows), config, folder)
        trainer.remove_callback(PrinterCallback)  # it would write to standard output, which is for results
        result = trainer.train()
    if not bars:
        datasets.enable_progress_bars()
    return float(result.training_loss)


def _trainer(policy: LanguagePolicy, dataset: Any, config: TrainingConfig, folder: Path) -> Any:
    trl: Any = import_module("trl")
    arguments = trl.SFTConfig(
        output_dir=str(folder),
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=policy.device.type == "cpu",
        num_train_epochs=config.epochs,
        learning_rate=config.learning_rate,
        per_device_train_batch_size=config.batch_size,
        gradient_accumulation_steps=config.gradient_accumulation,
        warmup_steps=config.warmup_steps,
        max_length=None,
        completion_only_loss=True,
        gradient_checkpointing=False,
        bf16=False,
        fp16=False,
        seed=config.seed,
        pad_token=policy.tokenizer.pad_token,
    )
    return trl.SFTTrainer(
        model=policy.model, args=arguments, train_dataset=dataset, processing_class=policy.tokenizer
    )
