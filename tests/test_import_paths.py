"""The umbrella's documented import paths: they exist, say what they re-export, and stay light."""

import importlib
import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

CORE = {
    "skyfall_crl.train.base": "skyfall_core.base",
    "skyfall_crl.train.protocols": "skyfall_core.protocols",
    "skyfall_crl.train.registry": "skyfall_core.registry",
    "skyfall_crl.train.config": "skyfall_core.config",
    "skyfall_crl.train.rollout": "skyfall_core.rollout",
    "skyfall_crl.train.experiment": "skyfall_core.experiment",
    "skyfall_crl.train.sweep": "skyfall_core.sweep",
    "skyfall_crl.train.plasticity": "skyfall_core.plasticity",
    "skyfall_crl.train.advantage": "skyfall_core.advantage",
    "skyfall_crl.env.regime": "skyfall_core.regime",
    "skyfall_crl.regime": "skyfall_core.regime",
    "skyfall_crl.metrics": "skyfall_metrics.api",
}
MORPHEUS = {"skyfall_crl.env.vector": "skyfall_morpheus.vector"}
TORCH_DISTRIBUTION = {
    "skyfall_crl.train.tokens": "skyfall_torch.tokens",
    "skyfall_crl.train.her": "skyfall_torch.her",
}
TORCH = {
    "skyfall_crl.train.policy": "skyfall_torch.policy",
    "skyfall_crl.train.ppo": "skyfall_torch.ppo",
    "skyfall_crl.train.ewc": "skyfall_torch.ewc",
    "skyfall_crl.train.lcm": "skyfall_torch.lcm",
}
NAMES = {
    "train.base": "Transition RolloutWindow Policy Algorithm",
    "train.protocols": "DescribesRuns capability describe_run regime_from_info regime_origin_from_info "
    "record_from_info",
    "train.registry": "register available is_registered resolve create",
    "train.config": "EnvironmentConfig PolicyConfig AlgorithmConfig RolloutConfig RegimeConfig RewardConfig "
    "RunConfig ExperimentConfig",
    "train.rollout": "RolloutCollector",
    "train.experiment": "RunResult trace_path_for run_experiment",
    "train.sweep": "SEED SweepConfig merge expand_sweep",
    "train.plasticity": "effective_rank_entropy stable_rank",
    "train.advantage": "GAEMode episode_lengths_from compute_gae",
    "train.ewc": "DEFAULT_SAMPLE_MIX FisherDropout EWCMode ParameterScope EWCBackend select_fisher_samples "
    "build_parameter_filter",
    "train.her": "RelabelStrategy HERBuffer relabel_episode",
    "train.lcm": "CANONICAL_REGIMES HashMode RegimeContextEncoder LCMBackend state_features "
    "regime_description consistency_loss",
    "train.policy": "ValueHead LanguagePolicy language_policy",
    "train.ppo": "GAEMode ActionTokens RatioMode OldPolicyPass TokenBatch PPOBackend",
    "train.tokens": "ActionTokens action_token_start",
    "env.vector": "PersistentVectorEnv",
    "env.regime": "DEFAULT_REGIME_ID ConstantRegime Regime RegimeProvider RegimeSchedule ScheduledRegime",
}
"""What the reference documents at each path; more may be there, nothing of it may be missing."""

TORCH_FREE = CORE | MORPHEUS | TORCH_DISTRIBUTION

HIDE = """
import sys

class Hide:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Hide(finder) for finder in sys.meta_path]
"""
"""Makes the packages in HIDDEN as absent as if they had never been installed."""

IMPORT_EACH = """
import importlib, json
outcome = {}
for path in PATHS:
    try:
        importlib.import_module(path)
        outcome[path] = None
    except ImportError as error:
        outcome[path] = [str(error), type(error.__cause__).__name__]
print(json.dumps(outcome))
"""


def fresh_process(source: str, **names: Any) -> Any:
    """What `source` prints as JSON in a new interpreter where `names` are bound."""
    bound = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    done = subprocess.run(
        [sys.executable, "-c", bound + textwrap.dedent(source)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("path", "owner"), (TORCH_FREE | TORCH).items())
def test_documented_path_re_exports_its_owner(path: str, owner: str) -> None:
    umbrella, owning = importlib.import_module(path), importlib.import_module(owner)
    assert sorted(umbrella.__all__) == sorted(owning.__all__)
    for name in umbrella.__all__:
        assert getattr(umbrella, name) is getattr(owning, name)


@pytest.mark.parametrize(("path", "names"), NAMES.items())
def test_documented_names_are_at_their_path(path: str, names: str) -> None:
    module = importlib.import_module(f"skyfall_crl.{path}")
    assert set(names.split()) <= set(module.__all__)


def test_torch_free_paths_leave_torch_unimported() -> None:
    loaded = fresh_process(
        """
        import importlib, json, sys
        heavy = {}
        for path in PATHS:
            importlib.import_module(path)
            heavy[path] = sorted({"torch", "transformers", "peft"} & set(sys.modules))
        print(json.dumps(heavy))
        """,
        PATHS=list(TORCH_FREE),
    )
    assert loaded == {path: [] for path in TORCH_FREE}


def test_gathered_names_are_those_of_the_torch_free_modules() -> None:
    train = importlib.import_module("skyfall_crl.train")
    gathered = {"registry"}  # its functions have names that only say something behind the module's own
    for path in CORE:
        if path.startswith("skyfall_crl.train.") and not path.endswith(".registry"):
            gathered.update(importlib.import_module(path).__all__)
    assert set(train.__all__) == gathered
    assert all(hasattr(train, name) for name in train.__all__)


def test_without_torch_only_what_needs_it_is_missing_and_says_what_to_install() -> None:
    paths = [*TORCH_FREE, *TORCH]
    outcome = fresh_process(HIDE + IMPORT_EACH, HIDDEN=["torch"], PATHS=paths)
    needs = {
        path: [f"{path} needs: pip install 'skyfall-crl[torch]'", "ModuleNotFoundError"] for path in TORCH
    }
    assert outcome == dict.fromkeys(TORCH_FREE) | needs


@pytest.mark.parametrize(
    ("extra", "package", "paths"),
    [
        ("torch", "skyfall_torch", TORCH_DISTRIBUTION | TORCH),
        ("morpheus", "skyfall_morpheus", MORPHEUS),
    ],
)
def test_without_an_extra_its_paths_say_what_to_install(
    extra: str, package: str, paths: dict[str, str]
) -> None:
    outcome = fresh_process(HIDE + IMPORT_EACH, HIDDEN=[package], PATHS=list(paths))
    needs = f"needs: pip install 'skyfall-crl[{extra}]'"
    assert outcome == {path: [f"{path} {needs}", "ModuleNotFoundError"] for path in paths}
