"""Small policies and windows that several test modules share."""

from collections.abc import Callable

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from skyfall_core.base import RolloutWindow, Transition
from skyfall_torch.options import SamplingConfig
from skyfall_torch.policy import LanguagePolicy, language_policy
from skyfall_torch.tiny import tiny_tokenizer

SMALL = {"hidden_size": 16, "layers": 1, "heads": 2, "context": 96}


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def build_policy() -> Callable[..., LanguagePolicy]:
    """Builds a policy over a very small random model; `tiny` overrides its sizes."""

    def build(tiny: dict | None = None, **options) -> LanguagePolicy:
        options = {"max_new_tokens": 6, "device": "cpu"} | options
        return language_policy("tiny", tiny=SMALL | (tiny or {}), **options)

    return build


@pytest.fixture
def build_double_policy() -> Callable[..., LanguagePolicy]:
    """Builds a policy that computes in float64 throughout, which Llama's norm and rotations do not."""

    def build(dropout: float = 0.0, **options) -> LanguagePolicy:
        tokenizer = tiny_tokenizer()
        config = GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=96,
            n_embd=16,
            n_layer=1,
            n_head=2,
            resid_pdrop=dropout,
            embd_pdrop=dropout,
            attn_pdrop=dropout,
            initializer_range=0.3,
            bos_token_id=None,
            eos_token_id=None,
        )
        torch.manual_seed(0)
        return LanguagePolicy(
            GPT2LMHeadModel(config).double(), tokenizer, sampling=SamplingConfig(max_new_tokens=6), **options
        )

    return build


@pytest.fixture
def build_window() -> Callable[..., RolloutWindow]:
    """Builds a window with the given rewards; `terminals` and `streams` as the window takes them."""

    def build(rewards, terminals=None, streams=None, first_step=0) -> RolloutWindow:
        terminals = terminals or [False] * len(rewards)
        transitions = [
            Transition(first_step + index, "seen", "done", reward, terminal, False, "baseline", False)
            for index, (reward, terminal) in enumerate(zip(rewards, terminals, strict=True))
        ]
        return RolloutWindow(transitions, streams=streams)

    return build
