"""What EWC's penalty and LCM's encoder add to an optimizer step, and what batching a Fisher saves.

    python benchmarks/bench_ewc_lcm.py

Prints the table of benchmarks/results/ewc_lcm.md. CPU time of this process, medians, one thread, the compared
pieces taken in turn in one run.
"""

import statistics
import time

import numpy as np
import torch
from gymnasium import spaces

from skyfall_core.base import RolloutWindow, Transition
from skyfall_torch.actor_critic import actor_critic
from skyfall_torch.ewc import EWCBackend
from skyfall_torch.ewc_fisher import loop_fisher, mean_squared_gradients
from skyfall_torch.lcm import LCMBackend
from skyfall_torch.policy import LanguagePolicy, SamplingConfig
from skyfall_torch.tiny import TinyConfig, tiny_model, tiny_tokenizer

SHIFT = {"previous": "a", "current": "b", "origin": None, "step": 0}
STATE = {"finance": {"cash": 3, "debts": [{"due": 1}]}, "staff": {"count": 4}}


def language():
    return LanguagePolicy(tiny_model(TinyConfig()), tiny_tokenizer())


def tickets():
    return LanguagePolicy(
        tiny_model(TinyConfig()), tiny_tokenizer(), sampling=SamplingConfig(max_new_tokens=8)
    )


def control():
    return actor_critic(spaces.Box(-1, 1, (4,), np.float32), spaces.Discrete(2))


def window(policy, observations):
    rows = []
    for begin in range(0, len(observations), 64):
        part = observations[begin : begin + 64]
        for observation, action in zip(part, policy.act_batch(part), strict=True):
            rows.append(Transition(len(rows), observation, action, len(rows) % 2, False, False, "a", False))
    return RolloutWindow(rows)


def observations_for(kind, count):
    if kind is tickets:
        return [f"ticket {'abcd'[i % 4]}" for i in range(count)]
    if kind is language:
        return [{**STATE, f"extra {i % 5}": i} for i in range(count)]
    return list(np.random.default_rng(0).uniform(-1, 1, (count, 4)).astype(np.float32))


def cpu_seconds(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def step_shares(backend, kind):
    """Median seconds of an optimizer step without the auxiliary part, and of that part."""
    spent, whole = [], []
    hook, step_name = "_apply_auxiliary_regularization", "_step"
    auxiliary, step = getattr(backend, hook), getattr(backend, step_name)

    def timed_auxiliary(batch):
        begin = time.process_time()
        reported = auxiliary(batch)
        spent.append(time.process_time() - begin)
        return reported

    def timed_step(*arguments):
        begin = time.process_time()
        went_on = step(*arguments)
        whole.append(time.process_time() - begin)
        return went_on

    setattr(backend, hook, timed_auxiliary)
    setattr(backend, step_name, timed_step)
    for _ in range(3):
        backend.update(window(backend.policy, observations_for(kind, 64)))
    bare = [a - b for a, b in zip(whole, spent, strict=True)]
    return statistics.median(bare), statistics.median(spent)


def fisher(policy, observations):
    policy.act_batch(observations)
    samples, parameters = policy.take_generated(), policy.trainable_parameters()
    modules = [policy] if isinstance(policy, torch.nn.Module) else [policy.model, policy.value_head]

    def likelihood(indices):
        return policy.evaluate([samples[i] for i in indices]).logprobs.sum(1)

    policy.train(False)
    counts = [1] * len(samples)
    batched = cpu_seconds(lambda: mean_squared_gradients(parameters, modules, likelihood, counts))
    looped = cpu_seconds(lambda: loop_fisher(parameters, likelihood, counts))
    return batched, looped


def main():
    torch.set_num_threads(1)
    print("| what | policy | step without, ms | added, ms | added |\n|---|---|---|---|---|")
    options = {"minibatch_size": 16, "epochs": 1, "action_tokens": "all"}
    for kind in (language, control):
        ewc = EWCBackend(kind(), parameter_scope="all", **options)
        ewc.update(window(ewc.policy, observations_for(kind, 64)))
        ewc.on_regime_shift(SHIFT)
        row("EWC, one snapshot", kind, step_shares(ewc, kind))
        row("LCM, default encoder", kind, step_shares(LCMBackend(kind(), **options), kind))
    print("\n| Fisher over 256 samples | batched, s | one at a time, s | times faster |\n|---|---|---|---|")
    for kind in (tickets, language, control):
        batched, looped = fisher(kind(), observations_for(kind, 256))
        print(f"| {kind.__name__} | {batched:.2f} | {looped:.2f} | {looped / batched:.1f} |")


def row(what, kind, shares):
    bare, added = shares
    print(
        f"| {what} | {kind.__name__} | {bare * 1e3:.2f} | {added * 1e3:.2f} | {added / bare:.1%} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
