"""Tokens per second of sixteen worlds: one `act_batch`, sixteen `act`, and a bare batched `generate`.

    uv run --group dev python benchmarks/bench_torch_generation.py [--repeats 7]

The three alternate in one process; medians. Responses have full length (no end token).
"""

import argparse
import statistics
import time

import torch
from transformers import GenerationConfig

from skyfall_torch.policy import LanguagePolicy, SamplingConfig
from skyfall_torch.tiny import TinyConfig, tiny_model, tiny_tokenizer

WORLDS, LENGTH = 16, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    tokenizer = tiny_tokenizer()
    tokenizer.eos_token = None
    policy = LanguagePolicy(
        tiny_model(TinyConfig()), tokenizer, sampling=SamplingConfig(max_new_tokens=LENGTH)
    )
    observations = [f"world {index}: " + "load " * (index % 5) for index in range(WORLDS)]
    padded = tokenizer([f"{text}\nAction:" for text in observations], return_tensors="pt", padding=True)
    how = GenerationConfig(
        max_new_tokens=LENGTH, do_sample=True, top_k=0, pad_token_id=tokenizer.pad_token_id
    )
    ways = {
        "act_batch": lambda: policy.act_batch(observations),
        "act": lambda: [policy.act(observation) for observation in observations],
        "generate": lambda: policy.model.generate(
            input_ids=padded["input_ids"],
            attention_mask=padded["attention_mask"],
            generation_config=how,
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats + 1):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - begin)
        policy.take_generated()
    rate = {name: WORLDS * LENGTH / statistics.median(times[1:]) for name, times in seconds.items()}
    print(" | ".join(f"{name} {value:,.0f} tokens/s" for name, value in rate.items()))
    print(f"act_batch / act {rate['act_batch'] / rate['act']:.1f} | ", end="")
    print(f"act_batch / generate {rate['act_batch'] / rate['generate']:.2f}")


if __name__ == "__main__":
    main()
