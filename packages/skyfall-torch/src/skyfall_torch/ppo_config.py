"""The options of the PPO backend, with the reference's behavior as their defaults."""

from dataclasses import dataclass
from enum import Enum

from skyfall_core.advantage import GAEMode
from skyfall_core.errors import ConfigError
from skyfall_torch.her import RelabelStrategy
from skyfall_torch.losses import RatioMode
from skyfall_torch.option_types import check_types
from skyfall_torch.tokens import ActionTokens

__all__ = ["AdvantageScope", "OldPolicyPass", "PPOConfig", "Precision", "Truncation"]


class OldPolicyPass(str, Enum):
    """Whether dropout is active while the old policy is measured.

    `TRAIN`, the reference: it is, so with dropout the ratio is not 1 even on the first minibatch.
    `EVAL` switches it off for that pass.
    """

    TRAIN = "train"
    EVAL = "eval"


class AdvantageScope(str, Enum):
    """What advantages are normalized over: the whole batch, as in the reference, or each minibatch."""

    BATCH = "batch"
    MINIBATCH = "minibatch"


class Truncation(str, Enum):
    """What lies behind the last step of an episode that was cut rather than ended.

    `TERMINAL`, the reference: nothing, like behind any other end. `BOOTSTRAP` the critic's estimate for
    the observation after it, which `skyfall_torch.successors:RecordSuccessors` keeps.
    """

    TERMINAL = "terminal"
    BOOTSTRAP = "bootstrap"


class Precision(str, Enum):
    """What the forward passes compute in; weights and optimizer keep their own precision."""

    FULL = "full"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


_BOUNDS = frozenset({"clip_range", "max_grad_norm", "replay_threshold", "target_kl", "value_clip_range"})


@dataclass(frozen=True, slots=True)
class PPOConfig:
    """Options of `PPOBackend`. Switches take a member or its value.

    Attributes:
        gae: Whether advantages see episodes.
        ratio: What the importance ratio is taken of.
        action_tokens: Which part of a response is reinforced.
        old_policy_pass: Whether dropout is active while the old policy is measured.
        replay_size: Capacity of hindsight replay; -1 switches it off.
        replay_threshold: A relabelled sample enters when its reward is strictly greater.
        replay_success_reward: What relabelling raises rewards to; made for MORPHEUS's scale.
        replay_strategy: Which steps relabelling raises.
        kl_coeff: Weight of the squared distance to the initial weights, once per optimizer step. Not
            a KL weight, whatever the name says; at 0.0 no copy of the weights is held.
        gamma: Discount factor; inert unless `gae` is episodic.
        lam: Trace decay; inert unless `gae` is episodic.
        clip_range: ε of the clipped surrogate.
        value_coeff: Weight of the critic's squared error.
        learning_rate: Of the optimizer that is built when none is given (AdamW, no weight decay).
        warmup_steps: Optimizer steps over which the learning rate rises linearly from near zero.
        epochs: Passes over each batch.
        minibatch_size: Samples in one optimizer step.
        gradient_accumulation: Passes that a minibatch is split into, to fit memory. The gradient is
            the whole minibatch's whatever the split.
        max_grad_norm: Longest gradient, critic and auxiliary penalties included.
        precision: What the forward passes compute in.
        entropy_coeff: Weight of an entropy bonus; the policy must report entropies.
        value_clip_range: How far a value may move from the old one before its error stops counting;
            None bounds nothing.
        advantage_scope: What advantages are normalized over.
        anneal_steps: Optimizer steps over which the learning rate falls linearly to zero; 0 keeps it.
        target_kl: An update stops early before a step at which `approx_kl` exceeds 1.5 times this; None
            never stops.
        truncation: What lies behind an episode that was cut; `bootstrap` needs `gae` episodic.
        shrink: At a shift, weights are multiplied by this; 1 leaves them.
        perturb: At a shift, this much of a fresh initialization is added; 0 adds nothing.
        redo_every: Updates between two passes that recycle dormant units; 0 never does.
        redo_threshold: The largest relative response of a unit that counts as dormant.
        seed: Seeds the order of minibatches, dropout and replay; None takes entropy from the system.
    """

    gae: GAEMode = GAEMode.DEGENERATE
    ratio: RatioMode = RatioMode.SEQUENCE_MEAN
    action_tokens: ActionTokens = ActionTokens.QWEN_THINK
    old_policy_pass: OldPolicyPass = OldPolicyPass.TRAIN
    replay_size: int = -1
    replay_threshold: float = 0.0
    replay_success_reward: float = 0.5
    replay_strategy: RelabelStrategy = RelabelStrategy.FINAL
    kl_coeff: float = 0.0
    gamma: float = 0.99
    lam: float = 0.95
    clip_range: float = 0.2
    value_coeff: float = 0.5
    learning_rate: float = 1e-5
    warmup_steps: int = 0
    epochs: int = 4
    minibatch_size: int = 16
    gradient_accumulation: int = 1
    max_grad_norm: float = 1.0
    precision: Precision = Precision.FULL
    entropy_coeff: float = 0.0
    value_clip_range: float | None = None
    advantage_scope: AdvantageScope = AdvantageScope.BATCH
    anneal_steps: int = 0
    target_kl: float | None = None
    truncation: Truncation = Truncation.TERMINAL
    shrink: float = 1.0
    perturb: float = 0.0
    redo_every: int = 0
    redo_threshold: float = 0.025
    seed: int | None = 0

    def __post_init__(self) -> None:
        check_types(self, may_be_infinite=_BOUNDS)
        self._check(self.replay_size >= -1, "replay_size", "-1 to switch replay off, or a capacity")
        self._check(self.kl_coeff >= 0, "kl_coeff", "0 or more")
        for name in ("gamma", "lam"):
            self._check(0 <= getattr(self, name) <= 1, name, "between 0 and 1")
        for name in ("clip_range", "learning_rate", "max_grad_norm"):
            self._check(getattr(self, name) > 0, name, "positive")
        self._check(self.value_coeff >= 0, "value_coeff", "0 or more")
        self._check(self.warmup_steps >= 0, "warmup_steps", "0 or more")
        self._check(0 <= self.shrink <= 1, "shrink", "between 0 and 1")
        for name in ("perturb", "redo_every", "redo_threshold"):
            self._check(getattr(self, name) >= 0, name, "0 or more")
        self._check(self.entropy_coeff >= 0, "entropy_coeff", "0 or more")
        self._check(self.anneal_steps >= 0, "anneal_steps", "0 or more")
        for name in ("value_clip_range", "target_kl"):
            self._check(getattr(self, name) is None or getattr(self, name) > 0, name, "positive or null")
        if self.truncation is Truncation.BOOTSTRAP and self.gae is not GAEMode.EPISODIC:
            raise ConfigError(
                "truncation 'bootstrap': without episodes there is no cut one; set gae to 'episodic'"
            )
        for name in ("epochs", "minibatch_size", "gradient_accumulation"):
            self._check(getattr(self, name) >= 1, name, "1 or more")

    def _check(self, holds: bool, name: str, expected: str) -> None:
        if not holds:
            raise ConfigError(f"{name} {getattr(self, name)!r}: expected {expected}")
