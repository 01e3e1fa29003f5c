"""The `skyfall morpheus` commands: demonstrations, bounds, and a light import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from skyfall_core import plugins
from skyfall_core.plugins import Group
from skyfall_morpheus.cli import app
from skyfall_morpheus.configurations import CANONICAL, canonical
from skyfall_morpheus.demo import best_level, demonstrate, measure_bounds
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.tools import TOOL_NAMES

RUNNER = CliRunner()


def test_demo_writes_what_supervised_training_reads(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "demo.jsonl"
    result = RUNNER.invoke(app, ["demo", "-o", str(path), "--steps", "30", "--seed", "3"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 30 * len(CANONICAL)
    assert list(dict.fromkeys(row["configuration"] for row in rows)) == list(CANONICAL)
    assert all(isinstance(row["observation"], str) and row["action"]["tool"] in TOOL_NAMES for row in rows)
    again = tmp_path / "again.jsonl"
    RUNNER.invoke(app, ["demo", "-o", str(again), "--steps", "30", "--seed", "3"])
    assert again.read_bytes() == path.read_bytes()


def test_demo_records_the_whole_state_on_request_and_one_configuration_alone(tmp_path: Path) -> None:
    path = tmp_path / "demo.jsonl"
    options = ["--observe", "full", "--bare", "--configuration", "edi_spike", "--steps", "5"]
    assert RUNNER.invoke(app, ["demo", "-o", str(path), *options]).exit_code == 0
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["configuration"] for row in rows] == ["edi_spike"] * 5
    assert set(rows[0]["observation"]) == {"state", "text"}
    assert all(set(row["action"]) == {"tool"} for row in rows)


def test_an_unknown_configuration_is_input_that_cannot_be_used(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["demo", "-o", str(tmp_path / "x"), "--configuration", "edi_spke"])
    assert result.exit_code == 2
    assert "did you mean 'edi_spike'" in result.output
    assert not (tmp_path / "x").exists()


def test_bounds_are_printed_as_one_json_object() -> None:
    result = RUNNER.invoke(app, ["bounds", "--steps", "20", "--seeds", "1"])
    found = json.loads(result.stdout)
    assert list(found) == [*CANONICAL, "baseline_revisit"]
    assert found["baseline"] == found["baseline_revisit"]


def test_the_best_level_is_that_of_any_quarter_but_the_first() -> None:
    assert best_level([9.0, 9.0, 0.0, 1.0, 3.0, 2.0, 0.0, 0.0]) == 2.5
    assert best_level([4.0]) == 4.0


def test_the_command_is_a_plugin_whose_import_is_light() -> None:
    assert plugins.load(plugins.find(Group.COMMANDS, "morpheus")) is app
    heavy = "{'gymnasium', 'httpx', 'uvicorn', 'numpy', 'pydantic'}"
    probe = f"import sys, skyfall_morpheus.cli; sys.exit(str({heavy} & set(sys.modules) or '') or 0)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_canonical_provider_runs_through_six_configurations_with_a_revisit() -> None:
    provider = plugins.load(plugins.find(Group.REGIMES, "morpheus-canonical"))(duration_steps=10)
    labels = [provider.regime_id(step) for step in range(0, 70, 10)]
    assert labels == [*CANONICAL, "baseline_revisit", "baseline_revisit"]
    assert provider.regime_at(55).origin == "baseline"
    assert provider.regime_at(55).axes == CANONICAL["baseline"]
    assert [regime.regime_id for regime in canonical().regimes] == [*CANONICAL, "baseline_revisit"]


def test_a_playbook_beats_acting_at_random_in_its_own_configuration() -> None:
    bounds = measure_bounds(150, [21])
    for configuration, bound in bounds.items():
        env = MorpheusEnv()
        provider = canonical(duration_steps=10**6)
        env.bind_regime(type(provider).from_dict({"regimes": [
            {"regime_id": "one", "axes": CANONICAL[configuration.removesuffix("_revisit")]}]}))  # fmt: skip
        env.reset(seed=21)
        env.action_space.seed(1)
        rewards = [env.step(env.action_space.sample())[1] for _ in range(150)]
        env.close()
        assert bound > sum(rewards) / 150 + 0.03, configuration


@pytest.mark.parametrize("configuration", ["edi_spike", "infra_degradation", "financial_pressure"])
def test_the_best_way_of_working_depends_on_the_configuration(configuration: str) -> None:
    def mean(playbook: str) -> float:
        rewards = [
            one.reward
            for seed in (31, 32)
            for one in demonstrate(configuration, 250, seed, playbook=playbook)
        ]
        return sum(rewards) / len(rewards)

    assert mean(configuration) > mean("baseline") + 0.005


EXAMPLES = Path(__file__).parents[2] / "examples"


def shipped_bounds(name: str) -> dict[str, float]:
    document = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    bounds: dict[str, float] = document.get("base", document)["run"]["reward_upper_bounds"]
    return bounds


@pytest.mark.parametrize("configuration", CANONICAL)
def test_no_script_settles_above_the_bounds_that_the_examples_ship(configuration: str) -> None:
    bounds = shipped_bounds("morpheus_local.yaml")
    assert shipped_bounds("morpheus_ppo.yaml") == shipped_bounds("study/morpheus.yaml") == bounds
    assert list(bounds) == [*CANONICAL, "baseline_revisit"]
    for playbook in dict.fromkeys((configuration, "baseline")):
        rewards = [one.reward for one in demonstrate(configuration, 300, 77, playbook=playbook)]
        assert sum(rewards[225:]) / 75 < bounds[configuration]
