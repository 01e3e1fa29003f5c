"""The update phase of one PPO step beside TRL 1.12's `PPOTrainer`, on the very same tokens.

    uv run --group dev python benchmarks/bench_torch_trl.py [--repeats 7]

TRL's trainer has one loop for rollout and update, so the two are told apart from outside. Each of its steps
generates, scores (reference model, critic, reward model), computes advantages, then runs its epochs of
minibatches. Timed is what stands beside `PPOBackend.update`:

- *update*: from the end of its generation to its report, less its reference and reward models, which ours
  has no counterpart for. Left in it: the critic's estimates, advantages, epochs, the report. Ours likewise
  measures the old policy first, log-probabilities included, which TRL takes from its generation for free.
- *epochs*: from the first minibatch to the report, beside `seconds_optimize` of ours.

Ours runs at the end of every step of TRL's, on the tokens that TRL generated in it: same prompts, batch,
epochs, minibatches, lengths, temperature, optimizer and threads, in turn in one process; medians, ratios
medians of ratios. TRL's critic is a model of its own. It is given once one of the policy's size, as its
scripts do, and once one of next to no size, so that what is left is the policy's own cost.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
from datasets import Dataset
from transformers import LlamaForSequenceClassification, PrinterCallback, TrainerCallback
from trl.experimental.ppo import PPOConfig, PPOTrainer, ppo_trainer

from skyfall_core.base import RolloutWindow, Transition
from skyfall_torch.collation import TextSample
from skyfall_torch.policy import LanguagePolicy, SamplingConfig
from skyfall_torch.ppo import PPOBackend
from skyfall_torch.tiny import TinyConfig, tiny_model, tiny_tokenizer

SAMPLES, PROMPT, RESPONSE, EPOCHS, MINIBATCH = 32, 96, 24, 2, 16
TEMPERATURE, RATE = 0.7, 1e-5
SIZES = TinyConfig(hidden_size=128, layers=4, heads=4, context=256)
NO_SIZE = TinyConfig(hidden_size=4, layers=1, heads=1, context=256)


class Ours:
    """The same step with `PPOBackend`, on tokens that were generated elsewhere."""

    def __init__(self) -> None:
        sampling = SamplingConfig(max_new_tokens=RESPONSE, temperature=TEMPERATURE)
        self.policy = LanguagePolicy(tiny_model(SIZES), tiny_tokenizer(), sampling=sampling)
        self.backend = PPOBackend(
            self.policy,
            gae="episodic",
            ratio="per_token",
            action_tokens="all",
            value_clip_range=0.2,
            epochs=EPOCHS,
            minibatch_size=MINIBATCH,
            learning_rate=RATE,
        )

    def update(self, tokens: torch.Tensor) -> tuple[float, float]:
        """Seconds of one update, and of its epochs, on (samples, prompt and response) tokens."""
        rows = [TextSample(row[:PROMPT], row[PROMPT:]) for row in tokens]
        stored = [self.policy.sample_state(row) for row in rows]
        self.policy.load_acting_state(self.policy.acting_state() | {"generated": stored})
        window = RolloutWindow(
            [Transition(i, "", "", i % 3, True, False, "a", False) for i in range(len(rows))]
        )
        begin = time.perf_counter()
        measured = self.backend.update(window)
        return time.perf_counter() - begin, measured["seconds_optimize"]


class Stopwatch(TrainerCallback):
    """Marks the phases of TRL's steps, and lets ours run between them."""

    def __init__(self, ours: Ours) -> None:
        self.ours = ours
        self.tokens = torch.empty(0)
        self.generated = self.first_minibatch = self.aside = 0.0
        self.rows: list[tuple[float, float, float, float]] = []
        self._step: tuple[float, float] = (0.0, 0.0)

    def generation(self, generate: Callable[..., Any]) -> Callable[..., Any]:
        """TRL's generation; the update begins where it ends."""

        def timed(*args: Any) -> Any:
            found = generate(*args)
            self.tokens = found[0].clone()
            self.first_minibatch = self.aside = 0.0
            self.generated = time.perf_counter()
            return found

        return timed

    def passes(self, function: Callable[..., Any], *others: torch.nn.Module) -> Callable[..., Any]:
        """A function of TRL's that runs a model; the time of `others` is put aside."""

        def timed(model: Any, *args: Any) -> Any:
            begin = time.perf_counter()
            if torch.is_grad_enabled() and not self.first_minibatch:
                self.first_minibatch = begin
            found = function(model, *args)
            if model in others:
                self.aside += time.perf_counter() - begin
            return found

        return timed

    def on_log(self, *_: Any, **__: Any) -> None:
        end = time.perf_counter()
        self._step = end - self.generated - self.aside, end - self.first_minibatch

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.rows.append((*self._step, *self.ours.update(self.tokens)))


def judge(sizes: TinyConfig) -> Any:
    """A model with one output over states, as TRL wants its critic and its reward model."""
    config = deepcopy(tiny_model(sizes).config)
    config.num_labels = 1
    torch.manual_seed(1)
    return LlamaForSequenceClassification(config)


def prompts() -> Dataset:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(256, (SAMPLES, PROMPT), generator=generator)
    return Dataset.from_dict({"input_ids": ids.tolist()})


def run(critic: TinyConfig, repeats: int, folder: str) -> list[tuple[float, float, float, float]]:
    """Seconds of TRL's update and epochs, and of ours, of every step behind the first."""
    tokenizer, reward = tiny_tokenizer(), judge(NO_SIZE)
    model, reference = tiny_model(SIZES), tiny_model(SIZES)
    stopwatch = Stopwatch(Ours())
    arguments = PPOConfig(
        output_dir=folder,
        per_device_train_batch_size=SAMPLES,
        num_mini_batches=SAMPLES // MINIBATCH,
        num_ppo_epochs=EPOCHS,
        local_rollout_forward_batch_size=MINIBATCH,
        total_episodes=SAMPLES * (repeats + 1),
        response_length=RESPONSE,
        temperature=TEMPERATURE,
        learning_rate=RATE,
        num_sample_generations=0,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
    )
    whole = ppo_trainer.batch_generation, ppo_trainer.forward, ppo_trainer.get_reward
    ppo_trainer.batch_generation = stopwatch.generation(ppo_trainer.batch_generation)
    ppo_trainer.forward = stopwatch.passes(ppo_trainer.forward, reference)
    ppo_trainer.get_reward = stopwatch.passes(ppo_trainer.get_reward, reward)
    try:
        trainer = PPOTrainer(
            args=arguments,
            processing_class=tokenizer,
            model=model,
            ref_model=reference,
            reward_model=reward,
            value_model=judge(critic),
            train_dataset=prompts(),
            eval_dataset=prompts(),
            callbacks=[stopwatch],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    finally:
        ppo_trainer.batch_generation, ppo_trainer.forward, ppo_trainer.get_reward = whole
    return stopwatch.rows[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    for name, critic in (("critic of the policy's size", SIZES), ("critic of next to no size", NO_SIZE)):
        with tempfile.TemporaryDirectory() as folder:
            rows = run(critic, repeats, folder)
        for what, column in (("update", 0), ("epochs", 1)):
            theirs, ours = ([row[place] for row in rows] for place in (column, column + 2))
            ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
            print(
                f"TRL with a {name}, {what}: ours {statistics.median(ours) * 1000:,.0f} ms | TRL "
                f"{statistics.median(theirs) * 1000:,.0f} ms | ratio {ratio:.2f}"
            )


if __name__ == "__main__":
    main()
