"""One PPO update against the bare sum of the passes it cannot avoid, and the memory of sliced logits.

    uv run --group dev python benchmarks/bench_torch_update.py [--repeats 7]

Time: the update and the bare passes alternate in one process, on the same padded tokens; medians. The
bare side is what nobody can leave out: one forward without gradients over all samples, then for every
minibatch of every epoch one forward, one cross-entropy, one value, one backward and one optimizer step.

Memory: two child processes each run one forward and backward over long prompts with a vocabulary of
32,000, one through `LanguagePolicy.evaluate`, one computing every logit; growth of the peak resident size.
"""

import argparse
import multiprocessing
import statistics
import time
from pathlib import Path

import torch
from torch.nn import functional

from skyfall_core.base import RolloutWindow, Transition
from skyfall_torch.collation import IGNORED, TextSample, collate
from skyfall_torch.policy import LanguagePolicy, SamplingConfig
from skyfall_torch.ppo import PPOBackend
from skyfall_torch.tiny import TinyConfig, tiny_model, tiny_tokenizer

SAMPLES, PROMPT, RESPONSE, EPOCHS, MINIBATCH = 32, 96, 24, 2, 16


def samples(count: int, prompt: int, response: int, vocabulary: int) -> list[TextSample]:
    generator = torch.Generator().manual_seed(0)
    return [
        TextSample(
            torch.randint(vocabulary, (prompt,), generator=generator),
            torch.randint(vocabulary, (response,), generator=generator),
        )
        for _ in range(count)
    ]


def policy(hidden: int, context: int, vocabulary: int | None = None) -> LanguagePolicy:
    model = tiny_model(TinyConfig(hidden_size=hidden, layers=4, heads=4, context=context), vocabulary)
    return LanguagePolicy(model, tiny_tokenizer(), sampling=SamplingConfig(max_new_tokens=RESPONSE))


def bare_passes(subject: LanguagePolicy, batch: list[TextSample], optimizer: torch.optim.Optimizer) -> None:
    subject.train(True)

    def run(rows: list[TextSample]) -> torch.Tensor:
        padded = collate(rows, 0, subject.device)
        states = subject.model.model(
            padded.input_ids, padded.attention_mask, padded.position_ids, use_cache=False
        )
        hidden = states.last_hidden_state[:, padded.kept_positions]
        logits = subject.model.lm_head(hidden)
        value = subject.value_head(hidden[:, -1]).sum()
        return (
            functional.cross_entropy(logits.flatten(0, 1), padded.targets.flatten(), ignore_index=IGNORED)
            + value
        )

    with torch.no_grad():
        for begin in range(0, len(batch), MINIBATCH):
            run(batch[begin : begin + MINIBATCH])
    for _ in range(EPOCHS):
        for begin in range(0, len(batch), MINIBATCH):
            optimizer.zero_grad(set_to_none=True)
            run(batch[begin : begin + MINIBATCH]).backward()
            optimizer.step()


def timings(repeats: int) -> tuple[float, float]:
    subject = policy(128, 256)
    batch = samples(SAMPLES, PROMPT, RESPONSE, len(subject.tokenizer))
    backend = PPOBackend(subject, epochs=EPOCHS, minibatch_size=MINIBATCH)
    optimizer = torch.optim.AdamW(subject.trainable_parameters(), lr=1e-5)
    window = RolloutWindow([Transition(i, "", "", i % 3, True, False, "a", False) for i in range(SAMPLES)])
    stored = [subject.sample_state(sample) for sample in batch]
    update, bare = [], []
    for _ in range(repeats + 1):
        subject.load_acting_state(subject.acting_state() | {"generated": stored})
        begin = time.perf_counter()
        backend.update(window)
        middle = time.perf_counter()
        bare_passes(subject, batch, optimizer)
        update.append(middle - begin)
        bare.append(time.perf_counter() - middle)
    return statistics.median(update[1:]), statistics.median(bare[1:])


def peak_resident() -> int:
    """KiB, as Linux counts them since the peak was last reset."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def peak_growth(every_logit: bool, queue: "multiprocessing.Queue[int]") -> None:
    torch.set_num_threads(1)
    subject = policy(64, 1024, 32_000)
    batch = samples(4, 512, 32, 32_000)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak that importing and building left
    before = peak_resident()
    if every_logit:
        ids = torch.stack([torch.cat([row.prompt_ids, row.response_ids]) for row in batch])
        logits, values = subject.forward(ids)
        chosen = logits.log_softmax(-1)[:, 511:-1].gather(2, ids[:, 512:].unsqueeze(2))
        (chosen.sum() + values.sum()).backward()
    else:
        scored = subject.evaluate(batch)
        (scored.logprobs.sum() + scored.values.sum()).backward()
    queue.put(peak_resident() - before)


def memory() -> tuple[float, float]:
    context = multiprocessing.get_context("spawn")
    grown = []
    for every_logit in (False, True):
        queue = context.Queue()
        child = context.Process(target=peak_growth, args=(every_logit, queue))
        child.start()
        grown.append(queue.get(timeout=600) / 1024)
        child.join()
    return grown[0], grown[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    torch.set_num_threads(1)
    update, bare = timings(parser.parse_args().repeats)
    print(
        f"update {update * 1000:.0f} ms | unavoidable passes {bare * 1000:.0f} ms | ratio {update / bare:.2f}"
    )
    sliced, whole = memory()
    ratio = sliced / whole
    print(f"peak growth: response logits {sliced:.0f} MiB | all logits {whole:.0f} MiB | ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
