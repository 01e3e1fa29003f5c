"""Proximal policy optimization as the reference computes it, with every peculiarity switchable.

The defaults reproduce the reference, including what looks like a defect: advantages without episodes,
a ratio of sequence means, a gradient through the action's tokens only, dropout while the old policy is
measured. Without a switch: no entropy bonus, `kl_coeff` anchors to the initial weights instead of
weighting a KL divergence, and what the old policy thought is measured again at every update. Hindsight
replay is a buffer of this backend (`replay_size`), not an algorithm of its own.

The backend sees its policy through `skyfall_torch.interface` alone and never a tokenizer, so it trains
a language model and a small actor-critic alike.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from skyfall_core.advantage import GAEMode, compute_gae
from skyfall_core.base import RolloutWindow
from skyfall_core.errors import CheckpointError, ConfigError
from skyfall_torch.checkpoints import read_state, write_state
from skyfall_torch.errors import NonFiniteLossError
from skyfall_torch.her import HERBuffer
from skyfall_torch.interface import SupportsRenewal, TrainablePolicy
from skyfall_torch.losses import RatioMode, kl_estimate, normalized
from skyfall_torch.options import checked_options
from skyfall_torch.ppo_batch import Targets, TokenBatch, batch_of
from skyfall_torch.ppo_config import AdvantageScope, OldPolicyPass, PPOConfig, Precision, Truncation
from skyfall_torch.ppo_loss import Minibatch, minibatch_loss
from skyfall_torch.ppo_report import put_statistics
from skyfall_torch.ppo_scoring import Scorer, chunks, judge_of
from skyfall_torch.randomness import OwnRandomness
from skyfall_torch.remedies.l2_init import add_l2_init_gradient
from skyfall_torch.remedies.shrink_perturb import shrink_and_perturb
from skyfall_torch.successors import cut_successors
from skyfall_torch.tally import Tally
from skyfall_torch.tokens import ActionTokens
from skyfall_torch.weights import snapshot, temporary_weights

__all__ = [
    "ActionTokens",
    "AdvantageScope",
    "GAEMode",
    "OldPolicyPass",
    "PPOBackend",
    "PPOConfig",
    "Precision",
    "RatioMode",
    "TokenBatch",
    "Truncation",
]


class PPOBackend:
    """Trains a policy by clipped policy gradients and a critic.

    Args:
        policy: Acts, records and scores; see `skyfall_torch.interface`.
        optimizer: Steps `trainable_parameters`; an AdamW over them is built when None.
        config: Options as one object.
        **options: Single options, which win over `config`: the fields of `PPOConfig`.

    Attributes:
        policy: The policy being trained.
        optimizer: The optimizer in use.
        config: The options in use.

    Raises:
        ConfigError: If an option is unknown or impossible.

    A subclass that brings parameters of its own sets them up before calling `super().__init__`,
    and adds them in `trainable_parameters`.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        optimizer: torch.optim.Optimizer | None = None,
        *,
        config: PPOConfig | None = None,
        **options: Any,
    ) -> None:
        self.config = replace(config or PPOConfig(), **checked_options(PPOConfig, options, "ppo"))
        self.policy = policy
        if self.config.truncation is Truncation.BOOTSTRAP:
            judge_of(policy)
        self._parameters = self.trainable_parameters()
        fused = all(parameter.device.type in {"cpu", "cuda"} for parameter in self._parameters)
        self.optimizer = optimizer or torch.optim.AdamW(
            self._parameters, lr=self.config.learning_rate, weight_decay=0.0, fused=fused
        )
        self._base_rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        self._device = self._parameters[0].device
        self._randomness = OwnRandomness(self.config.seed, self._device)
        self._scorer = Scorer(policy, self.config, self._device)
        scaled = self.config.precision is Precision.FLOAT16
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=scaled)
        self._initial = snapshot(policy.trainable_parameters()) if self.config.kl_coeff > 0 else None
        self._replay = HERBuffer(
            self.config.replay_size,
            admission_threshold=self.config.replay_threshold,
            success_reward=self.config.replay_success_reward,
            strategy=self.config.replay_strategy,
            seed=self.config.seed,
        )
        self._updates = 0
        self._optimizer_steps = 0

    @property
    def replay(self) -> HERBuffer:
        """The hindsight replay buffer; disabled unless `replay_size` was set."""
        return self._replay

    def trainable_parameters(self) -> list[nn.Parameter]:
        """Every parameter that is optimized and clipped, the critic's among them."""
        return self.policy.trainable_parameters()

    # One update

    def update(self, window: RolloutWindow) -> dict[str, float]:
        """Learn from one window.

        Returns:
            What was measured: losses, clip fraction, divergences, norms, statistics of advantages
            and rewards, tokens, and the seconds each phase took. `kl` is the divergence from the
            initial weights; 0 where no copy of them is held, and with an adapter, as in the reference.

        Raises:
            SampleCountError: If the policy's record does not match the window.
            NonFiniteLossError: If a loss or gradient is not finite; the step is not taken.
        """
        begin = perf_counter()
        batch = self.mix_replay(self.batch_from(window))
        tally = Tally()
        with self._randomness.active():
            targets = self._measure(batch)
            tally.put("kl", self._divergence_from_start(batch, targets))
            measured = perf_counter()
            self._optimize(batch, targets, tally)
        end = perf_counter()
        self._updates += 1
        put_statistics(tally, batch, targets, float(self.optimizer.param_groups[0]["lr"]))
        if self.config.redo_every and self._updates % self.config.redo_every == 0:
            policy, threshold = self._renewable("redo_every"), self.config.redo_threshold
            with self._randomness.active():
                recycled = policy.recycle_dormant_units(batch.samples, threshold, self.optimizer.state)
            tally.put("redo_recycled", float(recycled))
        tally.put("seconds_measure", measured - begin)
        tally.put("seconds_optimize", end - measured)
        tally.put("seconds_update", end - begin)
        return tally.result()

    def batch_from(self, window: RolloutWindow) -> TokenBatch:
        """Collect what the policy recorded for this window, and pair it with the rewards.

        Episodes come from the window's terminal flags, world by world; without `gae="episodic"` they
        are left out again, which is what the reference trained with.

        Raises:
            SampleCountError: If the policy recorded another number of actions, or none.
        """
        batch = batch_of(self.policy.take_generated(), window, self.config.gae)
        if self.config.truncation is Truncation.TERMINAL:
            return batch
        return replace(batch, successors=cut_successors(window))

    def mix_replay(self, batch: TokenBatch) -> TokenBatch:
        """Add a batch to the replay buffer, then mix as many replayed rows into it.

        In the reference's order: the fresh rows enter before the draw, so a replayed row may be a
        copy of one in this batch; the first update only fills; a mixed batch has no episode lengths,
        so advantages are degenerate from the second update on, whatever `gae` says.
        """
        if not self._replay.enabled:
            return batch
        self._replay.add(batch.samples, batch.rewards, batch.episode_lengths)
        if self._updates == 0:
            return batch
        drawn = self._replay.sample(len(batch))
        return TokenBatch(
            samples=[*batch.samples, *(sample for sample, _ in drawn)],
            rewards=[*batch.rewards, *(reward for _, reward in drawn)],
            episode_lengths=None,
            steps=batch.steps,
        )

    def on_regime_shift(self, shift: Mapping[str, Any]) -> None:  # noqa: ARG002 - the harness's signature
        """Nothing by default: plain PPO carries no memory across configurations.

        With `shrink` or `perturb` set, the weights are scaled down and mixed with fresh ones.
        """
        if self.config.shrink < 1 or self.config.perturb > 0:
            policy = self._renewable("shrink")
            with self._randomness.active():
                fresh = policy.fresh_parameters()
            shrink_and_perturb(
                self.policy.trainable_parameters(),
                fresh,
                shrink=self.config.shrink,
                perturb=self.config.perturb,
            )

    def _apply_auxiliary_regularization(self, batch: TokenBatch) -> Mapping[str, float]:  # noqa: ARG002
        """Add a subclass's penalty to the gradients, once per optimizer step.

        Called when the minibatch's gradients are complete and before they are clipped, with gradients
        enabled: an override calls `backward` on its penalty and returns what to report, which is
        averaged over the update's steps.

        Args:
            batch: All rows of this update.
        """
        return {}

    # Phases

    def _measure(self, batch: TokenBatch) -> Targets:
        """The old policy's view of the batch, and the advantages that follow from it."""
        logprobs, mask, values = self._scorer.score_all(batch.samples)
        advantages, returns = compute_gae(
            self._rewards_beyond_cuts(batch),
            values.double().tolist(),
            batch.episode_lengths,
            self.config.gamma,
            self.config.lam,
        )
        if not all(map(math.isfinite, advantages)):
            raise NonFiniteLossError("an advantage", math.nan, batch.steps)
        raw = values.new_tensor(advantages)
        return Targets(
            logprobs=logprobs,
            mask=mask,
            values=values,
            advantages=normalized(raw) if self.config.advantage_scope is AdvantageScope.BATCH else raw,
            returns=values.new_tensor(returns),
            raw_advantage_mean=float(raw.mean()),
            raw_advantage_std=float(raw.std()) if len(batch) > 1 else 0.0,
        )

    def _rewards_beyond_cuts(self, batch: TokenBatch) -> Sequence[float]:
        """Rewards, with what the critic expects behind a cut added to the step before it.

        γ·V there is what a bootstrap adds to the residual of an episode's last step, and to nothing else.
        """
        if not batch.successors:
            return batch.rewards
        rewards = list(batch.rewards)
        expected = self._scorer.values_of(list(batch.successors.values())).double().tolist()
        for row, value in zip(batch.successors, expected, strict=True):
            rewards[row] += self.config.gamma * value
        return rewards

    def _optimize(self, batch: TokenBatch, targets: Targets, tally: Tally) -> None:
        self.policy.train(True)
        for _ in range(self.config.epochs):
            order = torch.randperm(len(batch)).tolist()
            if not all(
                self._step(batch, targets, rows, tally) for rows in chunks(order, self.config.minibatch_size)
            ):
                break
        self.policy.train(False)

    def _step(self, batch: TokenBatch, targets: Targets, rows: Sequence[int], tally: Tally) -> bool:
        """One optimizer step on the minibatch `rows`; False, and no step, once the policy moved enough."""
        self.optimizer.zero_grad(set_to_none=True)
        ratios = self._scorer.ratio_count([batch.samples[row] for row in rows])
        minibatch = Minibatch(len(rows), ratios, self._advantages_for(targets, rows), [])
        for part in chunks(rows, self._scorer.pass_size):
            loss = self._loss(batch, targets, part, minibatch, tally)
            self._require_finite("the loss", loss, batch, rows)
            torch.autograd.backward(self._scaler.scale(loss))
        if minibatch.has_drifted(self.config.target_kl):
            self.optimizer.zero_grad(set_to_none=True)
            tally.put("stopped_early", 1.0)
            return False
        self._scaler.unscale_(self.optimizer)
        for name, value in self._apply_auxiliary_regularization(batch).items():
            tally.add(name, value)
        if self._initial is not None:
            anchored = self.policy.trainable_parameters()
            tally.add("anchor", add_l2_init_gradient(anchored, self._initial, self.config.kl_coeff))
        norm = nn.utils.clip_grad_norm_(self._parameters, self.config.max_grad_norm)
        if not self._scaler.is_enabled():
            self._require_finite("the gradient's norm", norm, batch, rows)
        if bool(torch.isfinite(norm)):
            tally.add("grad_norm", norm)
        else:  # the loss scale was too large: the scaler skips this step and lowers it
            tally.add("steps_skipped", 1.0)
        self._set_learning_rates()
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self._optimizer_steps += 1
        return True

    def _advantages_for(self, targets: Targets, rows: Sequence[int]) -> Tensor:
        """(N,) advantages of which those of `rows` are ready for the loss."""
        if self.config.advantage_scope is AdvantageScope.BATCH:
            return targets.advantages
        ready, index = targets.advantages.clone(), torch.tensor(list(rows), device=self._device)
        ready[index] = normalized(targets.advantages[index])
        return ready

    def _loss(
        self, batch: TokenBatch, targets: Targets, rows: Sequence[int], minibatch: Minibatch, tally: Tally
    ) -> Tensor:
        """What `rows` contribute to their minibatch's loss."""
        scored, mask = self._scorer.score([batch.samples[row] for row in rows])
        if self.config.entropy_coeff and scored.entropies is None:
            raise ConfigError(
                f"entropy_coeff {self.config.entropy_coeff!r}: {type(self.policy).__name__} reports no "
                "entropies; set it to 0"
            )
        index = torch.tensor(list(rows), device=self._device)
        return minibatch_loss(self.config, scored, mask, targets, index, minibatch, tally)

    def _divergence_from_start(self, batch: TokenBatch, targets: Targets) -> float:
        """KL of the current policy from the initial one on this batch's tokens."""
        adapted = any("lora_" in name for name, _ in self.policy.named_trainable_parameters())
        if self._initial is None or adapted:
            return 0.0
        with temporary_weights(self.policy.trainable_parameters(), self._initial):
            reference, _, _ = self._scorer.score_all(batch.samples)
        return float(kl_estimate(targets.logprobs, reference, targets.mask))

    # Checkpoints

    def save_checkpoint(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on bit for bit into the directory `path`.

        The policy's own files lie in it too, so `language_policy(model=path)` loads them alone.
        """
        self.policy.save(path)
        write_state(path, self._state())

    def load_checkpoint(self, path: str | PathLike[str]) -> None:
        """Restore what `save_checkpoint` wrote, in place.

        Raises:
            CheckpointError: If it is damaged, incomplete, or made for something else.
        """
        state = read_state(path)
        if state.get("algorithm") != type(self).__name__:
            raise CheckpointError(
                f"{path}: written by {state.get('algorithm')!r}, cannot be loaded by {type(self).__name__!r}"
            )
        if (state["initial"] is None) != (self._initial is None):
            raise CheckpointError(
                f"{path}: written with another kl_coeff: only one of the two holds initial weights"
            )
        self.policy.load(path)
        try:
            self._load_state(state)
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise CheckpointError(
                f"{path}: does not fit this run ({type(error).__name__}: {error})"
            ) from error

    def _state(self) -> dict[str, Any]:
        """Training state as tensors and plain values; a subclass adds its own keys to it."""
        entries = [
            {"sample": self.policy.sample_state(sample), "reward": reward}
            for sample, reward in self._replay.entries
        ]
        return {
            "algorithm": type(self).__name__,
            "updates": self._updates,
            "optimizer_steps": self._optimizer_steps,
            "optimizer": self.optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
            "randomness": self._randomness.state(),
            "acting": self.policy.acting_state(),
            "replay": {"entries": entries, "random_state": self._replay.random_state()},
            "initial": self._initial,
        }

    def _load_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `_state` returned; a subclass restores its own keys from it."""
        self.optimizer.load_state_dict(state["optimizer"])
        if self._scaler.is_enabled():
            self._scaler.load_state_dict(state["scaler"])
        self._randomness.load_state(state["randomness"])
        self.policy.load_acting_state(state["acting"])
        entries = [
            (self.policy.sample_from_state(entry["sample"]), float(entry["reward"]))
            for entry in state["replay"]["entries"]
        ]
        self._replay.restore(entries, state["replay"]["random_state"])
        if self._initial is not None:
            self._initial = [tensor.to(self._device) for tensor in state["initial"]]
        self._updates, self._optimizer_steps = int(state["updates"]), int(state["optimizer_steps"])

    # Small things

    def _renewable(self, option: str) -> SupportsRenewal:
        if not isinstance(self.policy, SupportsRenewal):
            raise ConfigError(
                f"{option}: {type(self.policy).__name__} cannot draw fresh weights; use the actor-critic"
            )
        return self.policy

    def _require_finite(self, what: str, value: Tensor, batch: TokenBatch, rows: Sequence[int]) -> None:
        if not bool(torch.isfinite(value)):
            self.optimizer.zero_grad(set_to_none=True)
            fresh = [batch.steps[row] for row in rows if row < len(batch.steps)]
            raise NonFiniteLossError(what, value.item(), sorted(fresh))

    def _set_learning_rates(self) -> None:
        """Linear warm-up to the rates the optimizer came with, and annealing from them; else untouched."""
        warmup, anneal = self.config.warmup_steps, self.config.anneal_steps
        if not (warmup or anneal):
            return
        share = min(1.0, (self._optimizer_steps + 1) / warmup) if warmup else 1.0
        if anneal:
            share *= max(0.0, 1.0 - self._optimizer_steps / anneal)
        for group, rate in zip(self.optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = rate * share
