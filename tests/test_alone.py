"""Each distribution in an environment that holds it, what it needs, and nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.alone, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "tests/plugin_package"
SHORT_RUN = """
environment: {id: CartPole-v1, kwargs: {sutton_barto_reward: true}}
algorithm: {name: actor-critic}
rollout: {window_steps: 100, total_steps: 250, auto_reset: true}
run: {name: alone, seed: 0, task: cartpole, output_dir: runs}
"""
ABSENT = """
import importlib.util, json, sys
print(json.dumps([name for name in sys.argv[1:] if importlib.util.find_spec(name) is not None]))
"""


def uv() -> str:
    """The uv that runs these tests, or the one on the path."""
    found = os.environ.get("UV") or shutil.which("uv")
    assert found, "these tests build environments with uv: pip install uv"
    return found


def call(*command: str | Path, cwd: Path = ROOT, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command outside of this process's environment and check how it ends."""
    outside = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=outside, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done


def alone(distribution: str, *command: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in an environment that holds one distribution of the workspace."""
    return call(uv(), "run", "--isolated", "--package", distribution, *command, status=status)


def importable(distribution: str, *names: str) -> list[str]:
    """Those of `names` that can be imported where only `distribution` is installed."""
    done = alone(distribution, "python", "-c", ABSENT, *names)
    return list(json.loads(done.stdout))


def rows(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "traces.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("distribution", "absent"),
    [
        ("skyfall-metrics", ["torch", "gymnasium", "skyfall_core"]),
        ("skyfall-core", ["torch", "httpx", "skyfall_metrics", "skyfall_crl"]),
        ("skyfall-morpheus", ["torch", "skyfall_metrics", "skyfall_crl"]),
        ("skyfall-torch", ["skyfall_metrics", "skyfall_morpheus", "skyfall_crl"]),
        ("skyfall-crl", ["torch", "httpx", "skyfall_torch", "skyfall_morpheus"]),
    ],
)
def test_a_distribution_brings_only_what_it_needs(distribution: str, absent: list[str]) -> None:
    assert importable(distribution, *absent, distribution.replace("-", "_")) == [
        distribution.replace("-", "_")
    ]


def test_core_alone_runs_a_document_and_says_how_to_score_it(tmp_path: Path) -> None:
    document = tmp_path / "short.yaml"
    document.write_text(SHORT_RUN)
    done = alone("skyfall-core", "skyfall", "run", document)
    assert len(rows(tmp_path / "runs/alone")) == 250
    assert "pip install skyfall-metrics" in done.stderr


def test_metrics_alone_scores_a_recorded_run(tmp_path: Path) -> None:
    rewards = {"A": [0, 1, 1, 1], "B": [0, 0, 0.5, 1], "A again": [0.5, 1, 1, 1]}
    with (tmp_path / "traces.jsonl").open("w") as trace:
        for step, (label, reward) in enumerate(
            (label, reward) for label, earned in rewards.items() for reward in earned
        ):
            row = {"trace_version": 1, "run_id": "worked", "step": step, "reward": reward}
            row |= {"terminated": False, "truncated": False, "regime_id": label}
            row |= {"boundary": step in {4, 8}} | ({"origin": "A"} if label == "A again" else {})
            trace.write(json.dumps(row) + "\n")
    parameters = ("--window", "1", "--hold", "1", "--settled-fraction", "0.5")
    done = alone("skyfall-metrics", "skyfall-metrics", "score", tmp_path, *parameters)
    values = dict(
        re.findall(
            r"^ +(Reward per configuration|Adaptation speed|Forgetting|Recovery time) +(\S+)",
            done.stdout,
            re.M,
        )
    )
    assert values == {
        "Reward per configuration": "0.5938",
        "Adaptation speed": "0.5",
        "Forgetting": "0.5",
        "Recovery time": "2",
    }


def test_without_torch_a_torch_document_validates_and_running_it_says_what_to_install(tmp_path: Path) -> None:
    document = tmp_path / "ppo.yaml"
    document.write_text(SHORT_RUN.replace("actor-critic", "ppo"))
    resolved = alone("skyfall-crl", "skyfall", "validate", document).stdout
    assert "name: ppo" in resolved
    refused = alone("skyfall-crl", "skyfall", "run", document, status=2)
    assert "pip install 'skyfall-crl[torch]'" in refused.stderr
    assert not (tmp_path / "runs").exists()


def test_wheels_install_with_pip_and_run_the_quickstart(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    call(uv(), "build", "--all-packages", "--out-dir", wheels)
    distributions = {"core", "crl", "metrics", "morpheus", "torch"}
    assert {path.name for path in wheels.glob("*.whl")} == {
        f"skyfall_{name}-0.1.0-py3-none-any.whl" for name in distributions
    }
    assert {path.name for path in wheels.glob("*.tar.gz")} == {
        f"skyfall_{name}-0.1.0.tar.gz" for name in distributions
    }

    call(sys.executable, "-m", "venv", tmp_path / "environment")
    programs = tmp_path / "environment/bin"
    call(programs / "python", "-m", "pip", "install", "--quiet", "--find-links", wheels, "skyfall-crl")
    document = tmp_path / "quickstart.yaml"
    shutil.copy(ROOT / "examples/quickstart.yaml", document)
    short = ("--set", "rollout.total_steps=500", "--set", f"run.output_dir={tmp_path}")
    done = call(programs / "skyfall", "run", document, *short, cwd=tmp_path)
    assert "Reward per configuration" in done.stdout
    assert len(rows(tmp_path / "quickstart")) == 500
    call(programs / "python", "-c", "import skyfall_crl.train, skyfall_crl.metrics", cwd=tmp_path)


WORLD = """
import gymnasium

class World(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(3, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(action == 6), False, False, {}
"""
ACTS = """
import importlib.util, json, sys
from skyfall_core.bundle import load_bundle
bundle = load_bundle(sys.argv[1])
actions = [int(bundle.act([0.1, 0.2])) for _ in range(200)]
gone = importlib.util.find_spec("somebodys_world") is None
print(json.dumps([gone, min(actions), max(actions), actions.count(6)]))
"""


def test_core_alone_acts_from_a_bundle_whose_environment_is_nowhere(tmp_path: Path) -> None:
    """Trained where a world can be imported, used in an environment that holds one wheel."""
    (tmp_path / "somebodys_world.py").write_text(WORLD)
    document = tmp_path / "far.yaml"
    document.write_text(
        "environment: {id: 'somebodys_world:World'}\n"
        "algorithm: {name: actor-critic, kwargs: {temperature: 0.5}}\n"
        "rollout: {window_steps: 100, total_steps: 2000}\n"
        "run: {name: far, seed: 0, output_dir: runs}\n"
    )
    bundle = tmp_path / "bundle"
    train = (Path(sys.executable).with_name("skyfall"), "run", document, "--export", bundle, "--quiet")
    here = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run(list(map(str, train)), cwd=tmp_path, env=here, capture_output=True, check=True)

    wheels, environment = tmp_path / "wheels", tmp_path / "environment"
    call(uv(), "build", "--wheel", "--package", "skyfall-core", "--out-dir", wheels)
    call(uv(), "venv", "--python", sys.executable, environment)
    (wheel,) = wheels.glob("*.whl")
    call(uv(), "pip", "install", "--python", environment / "bin/python", wheel)
    elsewhere = shutil.copytree(bundle, tmp_path / "elsewhere/bundle")
    done = call(environment / "bin/python", "-W", "error", "-c", ACTS, elsewhere, cwd=elsewhere.parent)
    gone, lowest, highest, best = json.loads(done.stdout)
    assert gone
    assert 5 <= lowest <= highest <= 7
    assert best > 100  # a third by chance: what it learned came along


def test_plugin_of_a_third_party_runs_from_yaml(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    call(uv(), "venv", "--python", sys.executable, environment)
    python = environment / "bin/python"
    call(uv(), "pip", "install", "--python", python, ROOT / "packages/skyfall-core", PLUGIN)
    skyfall = environment / "bin/skyfall"

    listed = json.loads(call(skyfall, "plugins", "--json", cwd=tmp_path).stdout)
    ours = {
        plugin["name"]: plugin["version"]
        for members in listed.values()
        for plugin in members
        if plugin["distribution"] == "skyfall-thermostat"
    }
    assert ours == {"table-q": "1.2.3", "thermostat": "1.2.3", "day-night": "1.2.3", "diary": "1.2.3"}

    document = PLUGIN / "thermostat.yaml"
    bundle = tmp_path / "bundle"
    call(skyfall, "run", document, "--set", f"run.output_dir={tmp_path}", "--export", bundle, cwd=tmp_path)
    record = rows(tmp_path / "thermostat")
    assert [row["step"] for row in record if row["boundary"]] == [1000, 2000, 3000]
    assert [row["regime_id"] for row in record[::1000]] == ["day", "night", "day", "night"]
    first_day, second_day = (
        sum(row["reward"] for row in record[start : start + 1000]) for start in (0, 2000)
    )
    assert second_day > first_day / 2  # rewards are negative: less than half of the discomfort is left
    diary = (tmp_path / "thermostat/diary.txt").read_text().splitlines()
    assert diary[:2] == ["thermostat begins.", "Step 1000: day gives way to night."]
    assert diary[-1].startswith("It lasted 4000 steps; the best window earned -")

    act = "import sys; from skyfall_core.bundle import *; print(load_bundle(sys.argv[1]).act([18.0]))"
    assert call(python, "-c", act, bundle, cwd=tmp_path).stdout.strip() in {"0", "1"}
    call(uv(), "pip", "uninstall", "--python", python, "skyfall-thermostat")
    absent = call(python, "-c", act, bundle, cwd=tmp_path, status=1)
    assert "unknown algorithm 'table-q'" in absent.stderr
