"""Options of a wrong type are refused by name before anything is built."""

import math
from dataclasses import fields
from enum import Enum

import numpy as np
import pytest
from gymnasium import spaces

from skyfall_core.errors import ConfigError
from skyfall_torch.actor_critic import ActorCriticConfig, actor_critic
from skyfall_torch.ewc import EWCConfig
from skyfall_torch.lcm import EncoderConfig, HashMode, LCMConfig
from skyfall_torch.lcm_encoder import encoder_config
from skyfall_torch.option_types import check_types
from skyfall_torch.options import LanguagePolicyConfig, SamplingConfig
from skyfall_torch.ppo import PPOConfig
from skyfall_torch.tiny import TinyConfig

CLASSES = (
    PPOConfig,
    EWCConfig,
    LCMConfig,
    EncoderConfig,
    ActorCriticConfig,
    SamplingConfig,
    LanguagePolicyConfig,
    TinyConfig,
)


def policy(**options):
    return actor_critic(spaces.Discrete(2), spaces.Discrete(2), **options)


class Alien:
    def __repr__(self):
        return "Alien()"


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        pytest.param(cls, field.name, id=f"{cls.__name__}.{field.name}")
        for cls in CLASSES
        for field in fields(cls)
    ],
)
def test_every_option_refuses_a_value_of_no_type_it_has(cls, name):
    needed = {"model": "tiny"} if cls is LanguagePolicyConfig else {}
    with pytest.raises(ConfigError, match=rf"^{name} Alien\(\): "):
        cls(**needed | {name: Alien()})


@pytest.mark.parametrize(
    ("cls", "name", "value", "expected"),
    [
        (PPOConfig, "epochs", 1.5, "an integer"),
        (PPOConfig, "epochs", True, "an integer"),
        (PPOConfig, "gamma", "0.9", "a finite number"),
        (PPOConfig, "gamma", None, "a finite number"),
        (PPOConfig, "learning_rate", math.inf, "a finite number"),
        (PPOConfig, "entropy_coeff", math.nan, "a finite number"),
        (PPOConfig, "max_grad_norm", math.nan, "a finite number"),
        (PPOConfig, "entropy_coeff", 10**400, "a finite number"),
        (PPOConfig, "target_kl", "x", "a finite number or null"),
        (PPOConfig, "seed", 2**70, "an integer or null"),
        (EWCConfig, "ewc_lambda", True, "a finite number"),
        (EWCConfig, "ewc_lambda", math.inf, "a finite number"),
        (EWCConfig, "fisher_samples", 2.5, "an integer"),
        (EWCConfig, "fisher_sample_mix", [], "a mapping"),
        (LCMConfig, "inject_prefix", "false", "true or false"),
        (LCMConfig, "consistency_coeff", math.nan, "a finite number"),
        (LCMConfig, "warmup", 3, "text or a path or null"),
        (EncoderConfig, "regimes", "abc", "a list of texts"),
        (EncoderConfig, "regimes", [1, 2], "a list of texts"),
        (EncoderConfig, "context_steps", 2.5, "an integer"),
        (ActorCriticConfig, "hidden_sizes", 64, "a list of integers"),
        (ActorCriticConfig, "hidden_sizes", [8, "8"], "a list of integers"),
        (ActorCriticConfig, "shared_trunk", "no", "true or false"),
    ],
)
def test_a_value_that_would_pass_for_another_is_refused(cls, name, value, expected):
    with pytest.raises(ConfigError) as caught:
        cls(**{name: value})
    assert str(caught.value) == f"{name} {value!r}: expected {expected}"


def test_switches_become_members_and_unknown_ones_are_refused_with_the_nearest():
    assert EncoderConfig(hash_mode="python").hash_mode is HashMode.PYTHON
    for field in fields(PPOConfig):
        if isinstance(field.default, Enum):
            assert getattr(PPOConfig(), field.name) is field.default
    with pytest.raises(ConfigError, match=r"hash_mode 'stabel': did you mean 'stable'\?"):
        EncoderConfig(hash_mode="stabel")


def test_numpy_scalars_lists_and_infinite_bounds_pass():
    config = PPOConfig(epochs=np.int64(2), gamma=np.float32(0.5), lam=1, max_grad_norm=math.inf)
    assert config.max_grad_norm == math.inf
    assert EWCConfig(fisher_clip=math.inf).fisher_clip == math.inf
    assert EncoderConfig(regimes=["a", "b"]).regimes == ("a", "b")
    check_types(ActorCriticConfig(hidden_sizes=[8, 8]))


@pytest.mark.parametrize("share", ["x", None, True])
def test_a_share_of_the_sample_mix_must_be_a_number(share):
    with pytest.raises(ConfigError, match=rf"fisher_sample_mix: .*'solved' the share {share!r}"):
        EWCConfig(fisher_sample_mix={"solved": share})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: EWCConfig(fisher_sample_mix={"solvd": 0.1}), "'solvd'"),
        (lambda: encoder_config({"regimes": []}, "encoder_shape"), r"encoder_shape: regimes is \[\]"),
        (lambda: encoder_config({"context_steps": "2"}, "encoder_shape"), "encoder_shape: context_steps '2'"),
        (
            lambda: encoder_config({"context_step": 2}, "encoder_shape"),
            "'context_step'; did you mean 'context_steps'",
        ),
        (lambda: policy(activation="gelu"), "activation is 'gelu'"),
        (lambda: policy(device="abacus"), "device 'abacus': not usable here"),
        (lambda: policy(checkpoint=3), "checkpoint 3: expected a path"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_option_has_no_cause_whose_traceback_would_be_shown(build, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build()
    assert caught.value.__cause__ is None
