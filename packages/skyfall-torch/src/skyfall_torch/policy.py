"""A language policy: it writes a response, and remembers exactly which tokens it wrote.

An update needs those tokens, and a window does not carry them because no other kind of policy has
any; so the policy keeps a record that the backend collects. Nothing here updates anything.

Guarantees: the record is emptied when it is read, so a window is never scored against another
window's tokens; draws come from the policy's own generator; a malformed response is an action for
the environment to refuse and never an error.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from skyfall_core.errors import CheckpointError
from skyfall_core.plasticity import effective_rank_entropy
from skyfall_core.plugins import import_attribute
from skyfall_core.protocols import SAVED
from skyfall_torch.actions import parse_action
from skyfall_torch.causal_lm import CausalLM, hidden_size_of
from skyfall_torch.collation import TextSample, collate
from skyfall_torch.generation import generate_responses, generation_config, without_dropout
from skyfall_torch.interface import Evaluation
from skyfall_torch.loading import (
    load_language_model,
    load_tokenizer,
    restore_weights,
    save_language_model,
)
from skyfall_torch.options import LanguagePolicyConfig, SamplingConfig, ValuePosition, checked_options
from skyfall_torch.prompt_encoding import PromptEncoder
from skyfall_torch.prompts import PromptBuilder, chat_or_plain_prompt
from skyfall_torch.randomness import OwnRandomness
from skyfall_torch.text_scores import critic_states, entropies_of, response_logprobs, tempered
from skyfall_torch.value_head import (
    ValueHead,
    build_value_head,
    find_value_head,
    read_value_head,
    write_value_head,
)
from skyfall_torch.vocabulary import Vocabulary

__all__ = ["LanguagePolicy", "SamplingConfig", "ValueHead", "ValuePosition", "language_policy"]


class LanguagePolicy:
    """Wraps a causal language model so that it can act, be scored, be trained and be restored.

    Args:
        model: Any causal language model of Transformers, or one with a PEFT adapter.
        tokenizer: Its tokenizer. Without a pad token the end token fills in; without an end token
            every response has full length.
        sampling: How responses are drawn.
        prompt: How an observation becomes a prompt; the tokenizer's chat template, or a plain form,
            when None.
        value_head: The critic; a fresh one when None.
        value_position: Which hidden state the critic reads when samples are evaluated.
        capture_effective_rank: Measure the representation's effective rank on every action, as
            `last_effective_rank`. Costs a second forward pass and a decomposition an action.
        report_entropies: Report the entropy of every token's distribution when samples are evaluated,
            for an entropy bonus. Costs memory like another set of logits.

    Attributes:
        loaded_value_head: Whether the critic came from a checkpoint rather than from its initial
            weights; a resumed run with a fresh critic has meaningless advantages for a while.

    Raises:
        ConfigError: If the model's context has no room for a prompt and a response.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        sampling: SamplingConfig | None = None,
        prompt: PromptBuilder | None = None,
        value_head: nn.Module | None = None,
        value_position: ValuePosition | str = ValuePosition.SEQUENCE_END,
        capture_effective_rank: bool = False,
        report_entropies: bool = False,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.sampling = sampling or SamplingConfig()
        self.prompt = prompt or chat_or_plain_prompt()
        self.value_position = ValuePosition(value_position)
        self.capture_effective_rank = capture_effective_rank
        self.report_entropies = report_entropies
        if capture_effective_rank:
            self.last_effective_rank: float | list[float | None] | None = None
        self._network = CausalLM(model)
        self._randomness = OwnRandomness(self.sampling.seed, self.device)
        self.value_head = value_head or self._fresh_value_head()
        self.value_head.to(self.device)
        self.loaded_value_head = False
        self._generated: list[TextSample] = []
        self._vocabulary = Vocabulary(model, tokenizer)
        self._prompts = PromptEncoder(model.config, tokenizer, self.sampling, self._vocabulary.pad_id)
        self._generation = generation_config(self.sampling, self._vocabulary)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        found: torch.device = next(self.model.parameters()).device
        return found

    @property
    def json_open_ids(self) -> set[int]:
        """Ids of the tokens that begin with `{`."""
        return self._vocabulary.json_open_ids

    @property
    def truncated_prompts(self) -> int:
        """Prompts so far that were longer than the context and lost their beginning."""
        return self._prompts.cut

    # Acting

    def act(self, observation: Any) -> Any:
        """The action in one generated response, whose tokens are recorded.

        Returns:
            The response's first JSON object, or its text when it holds none.
        """
        action = self.act_batch([observation])[0]
        if self.capture_effective_rank and isinstance(self.last_effective_rank, list):
            self.last_effective_rank = self.last_effective_rank[0]
        return action

    def act_batch(self, observations: Sequence[Any]) -> list[Any]:
        """One action an observation, from a single call to generate; recorded in the same order."""
        if not observations:
            return []
        prompts = [self._prompt_ids(observation) for observation in observations]
        with without_dropout(self.model):
            responses = generate_responses(
                self.model, prompts, self._generation, self._vocabulary, self._randomness
            )
            samples = [
                self.sample_of(prompt, response) for prompt, response in zip(prompts, responses, strict=True)
            ]
            if self.capture_effective_rank:
                self.last_effective_rank = self._effective_ranks(samples)
        self._generated.extend(samples)
        texts = self.tokenizer.batch_decode(responses, skip_special_tokens=True)
        prefix, suffix = self.sampling.response_prefix, self.sampling.response_suffix
        return [self.parse(prefix + text + suffix) for text in texts]

    @staticmethod
    def parse(text: str) -> Any:
        """The action in a response: its first complete JSON object, or the stripped text itself.

        Time is linear in the text. Never raises: what is no action, the environment refuses.
        """
        return parse_action(text)

    def sample_of(self, prompt: Sequence[int], response: Sequence[int]) -> TextSample:
        """A prompt's and a response's token ids as what is recorded of an action."""
        start = self._vocabulary.qwen_think_start(response)
        return TextSample(
            torch.tensor(prompt, dtype=torch.long), torch.tensor(response, dtype=torch.long), start
        )

    def take_generated(self) -> list[TextSample]:
        """The samples recorded since the last call, in acting order; the record is emptied."""
        taken, self._generated = self._generated, []
        return taken

    # Scoring

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits over whole sequences, and the value at each one's final token.

        Args:
            input_ids: (B, S) token ids, padded on either side.
            attention_mask: (B, S) 1 on real tokens; all of them when None.

        Returns:
            Logits (B, S, vocabulary) and values (B,).
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        logits, hidden = self._network(input_ids, mask, positions)
        last = (mask * torch.arange(mask.shape[1], device=mask.device)).argmax(dim=1)
        return logits, self._values(hidden[torch.arange(len(last), device=last.device), last])

    def evaluate(self, samples: Sequence[TextSample]) -> Evaluation:
        """Score samples under the current weights in one padded forward pass.

        Log-probabilities are those of the distribution that is sampled from, so logits are divided
        by the temperature. The output layer runs only where a response token is predicted.

        Raises:
            ValueError: If there are no samples, or one has no prompt.
        """
        batch = collate(samples, self._vocabulary.pad_id, self.device)
        logits, hidden = self._network(
            batch.input_ids, batch.attention_mask, batch.position_ids, batch.kept_positions
        )
        logits = tempered(logits, self.sampling.temperature)
        return Evaluation(
            logprobs=response_logprobs(logits, batch),
            mask=batch.response_mask,
            values=self._values(critic_states(hidden, batch, self.value_position)),
            entropies=entropies_of(logits[:, :-1]) if self.report_entropies else None,
        )

    @torch.no_grad()
    def values_of(self, observations: Sequence[Any]) -> Tensor:
        """(N,) the critic's estimates for observations that were not acted on; nothing is recorded.

        Read at the prompt's last token whatever `value_position` says, since there is no response:
        a critic that learned at the end of the sequence has then seen states of another kind.

        Raises:
            ValueError: If there are no observations.
        """
        return self.evaluate([self.sample_of(self._prompt_ids(each), ()) for each in observations]).values

    def trainable_parameters(self) -> list[nn.Parameter]:
        """Every parameter an optimizer steps: the model's trainable ones, then the critic's."""
        return [parameter for _, parameter in self.named_trainable_parameters()]

    def named_trainable_parameters(self) -> list[tuple[str, nn.Parameter]]:
        """The same under their names in the model; the critic's begin with `v_head.`."""
        model = [(name, value) for name, value in self.model.named_parameters() if value.requires_grad]
        return model + [(f"v_head.{name}", value) for name, value in self.value_head.named_parameters()]

    def train(self, mode: bool = True) -> "LanguagePolicy":
        """Switch dropout on or off for `evaluate` and `forward`."""
        self.model.train(mode)
        self.value_head.train(mode)
        return self

    # Saving and restoring

    def save(self, path: str | PathLike[str]) -> None:
        """Write model (or adapter), tokenizer and critic into a directory `language_policy` loads.

        The critic gets its own file, since it is no part of the language model.
        """
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        save_language_model(self.model, folder)
        self.tokenizer.save_pretrained(folder)
        write_value_head(folder, self.value_head)

    def load(self, path: str | PathLike[str]) -> None:
        """Restore model and critic in place from what `save` wrote.

        Raises:
            CheckpointError: If something is missing, damaged or made for another model.
        """
        restore_weights(self.model, Path(path))
        if not self.load_value_head(path):
            raise CheckpointError(f"{path}: no value head file; a checkpoint of this policy has one")

    def load_value_head(self, path: str | PathLike[str]) -> bool:
        """Restore a saved critic from a directory, under any of its four file names.

        Returns:
            Whether one was found; `loaded_value_head` is set accordingly.

        Raises:
            CheckpointError: If there are several, or the one there is does not fit.
        """
        found = find_value_head(path)
        if found is not None:
            read_value_head(found, self.value_head)
        self.loaded_value_head = found is not None
        return self.loaded_value_head

    def kwargs_to_restore(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The options with which `language_policy` makes this policy from what `save` wrote.

        Args:
            kwargs: The options it was built with; those that say where weights come from are replaced.
        """
        weights = {"model", "tokenizer", "tiny", "lora"}
        kept = {name: value for name, value in kwargs.items() if name not in weights}
        return {"model": SAVED, **kept}

    @classmethod
    def from_checkpoint(cls, path: str | PathLike[str], **options: Any) -> "LanguagePolicy":
        """Rebuild a policy from a directory of whole weights or of an adapter, critic included.

        Args:
            path: The directory.
            **options: As for `language_policy`.

        Raises:
            CheckpointError: If the directory is missing, incomplete or damaged.
            ConfigError: If an option is unknown or impossible.
        """
        if not Path(path).is_dir():
            raise CheckpointError(f"{path}: no such directory; give one that `save` wrote")
        policy = cls._build(LanguagePolicyConfig(path, **_known(options)))
        policy.load_value_head(path)
        return policy

    def acting_state(self) -> dict[str, Any]:
        """Generator states, unread samples and counters."""
        return {
            "randomness": self._randomness.state(),
            "generated": [self.sample_state(sample) for sample in self._generated],
            "truncated_prompts": self.truncated_prompts,
        }

    def load_acting_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `acting_state` returned."""
        self._randomness.load_state(state["randomness"])
        self._generated = [self.sample_from_state(sample) for sample in state["generated"]]
        self._prompts.cut = int(state["truncated_prompts"])

    def sample_state(self, sample: TextSample) -> dict[str, Any]:
        """A sample as tensors and integers."""
        return sample.state()

    def sample_from_state(self, state: Mapping[str, Any]) -> TextSample:
        """The sample that `sample_state` described."""
        return TextSample.from_state(state)

    # Inside

    @classmethod
    def _build(cls, config: LanguagePolicyConfig) -> "LanguagePolicy":
        builder: PromptBuilder = (
            import_attribute(config.prompt) if config.prompt else chat_or_plain_prompt(config.system_prompt)
        )
        tokenizer = load_tokenizer(config)
        return cls(
            load_language_model(config),
            tokenizer,
            sampling=config.sampling(),
            prompt=builder,
            value_position=config.value_position,
            capture_effective_rank=config.capture_effective_rank,
            report_entropies=config.report_entropies,
        )

    def _fresh_value_head(self) -> nn.Module:
        with OwnRandomness(self.sampling.seed).active():
            return build_value_head(hidden_size_of(self.model.config), self.model.dtype)

    def _prompt_ids(self, observation: Any) -> list[int]:
        return self._prompts.ids(self.prompt(observation, self.tokenizer))

    def _values(self, hidden: Tensor) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):  # the critic keeps its own precision
            values: Tensor = self.value_head(hidden)
        return values.squeeze(-1)

    def _effective_ranks(self, samples: Sequence[TextSample]) -> list[float | None]:
        batch = collate(samples, self._vocabulary.pad_id, self.device)
        features = self._network.penultimate(batch.input_ids, batch.attention_mask, batch.position_ids)
        return [
            effective_rank_entropy(row[mask.bool()].double().cpu().numpy())
            for row, mask in zip(features, batch.attention_mask, strict=True)
        ]


def language_policy(model: str | PathLike[str], **options: Any) -> LanguagePolicy:
    """Build a policy from a name or a path; what configurations call.

    A checkpoint directory with a critic is restored wholly, so that a supervised stage carries into
    reinforcement learning. Anything else is loaded with a fresh critic.

    Args:
        model: A hub name, a local path, a checkpoint directory (whole weights or an adapter), or
            `tiny`: a small randomly initialized model built in code.
        **options: The fields of `LanguagePolicyConfig`.

    Raises:
        ConfigError: If an option is unknown or impossible, or the model cannot be found.
        CheckpointError: If a directory is incomplete or damaged.
    """
    if Path(model).is_dir() and find_value_head(model) is not None:
        return LanguagePolicy.from_checkpoint(model, **options)
    return LanguagePolicy._build(LanguagePolicyConfig(model, **_known(options)))  # noqa: SLF001 - same module


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    return checked_options(LanguagePolicyConfig, options, "language_policy")
