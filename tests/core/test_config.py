"""The experiment document: what it accepts, and how it says what is wrong."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from skyfall_core import plugins
from skyfall_core.config import (
    AlgorithmConfig,
    EnvironmentConfig,
    ExperimentConfig,
    PolicyConfig,
    RegimeConfig,
    RewardConfig,
    RolloutConfig,
    RunConfig,
    WrapperConfig,
    load_config,
    parse_config,
)
from skyfall_core.documents import Document, yaml_text
from skyfall_core.errors import ConfigError, suggestion
from skyfall_core.plugins import Group

MINIMAL = """\
environment: {id: CartPole-v1}
algorithm: {name: random}
rollout: {total_steps: 10}
"""
ALGORITHMS = ", ".join(map(repr, plugins.catalogue(Group.ALGORITHMS)))
POLICIES = suggestion("nope", plugins.catalogue(Group.POLICIES))
REGIMES = ", ".join(map(repr, plugins.catalogue(Group.REGIMES)))
REWARDS = ", ".join(map(repr, plugins.catalogue(Group.REWARDS)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


def load(file: Path, text: str, *settings_: str) -> ExperimentConfig:
    file.write_text(text)
    return load_config(file, settings_)


def faults(file: Path, text: str, *settings_: str) -> list[str]:
    """What a document is refused with, a line a fault, the file's path shortened to `FILE`."""
    with pytest.raises(ConfigError) as caught:
        load(file, text, *settings_)
    return str(caught.value).replace(str(file), "FILE").splitlines()


def document(**sections: Any) -> Document:
    content = {
        "environment": {"id": "CartPole-v1"},
        "algorithm": {"name": "random"},
        "rollout": {"total_steps": 10},
    }
    return Document(content | sections)


# ---------------------------------------------------------------- defaults and identity


def test_smallest_document_gets_defaults_but_never_a_reward(file: Path) -> None:
    config = load(file, MINIMAL)
    assert config.reward is None
    assert config.regime == RegimeConfig(provider="constant", params={})
    assert config.rollout == RolloutConfig(window_steps=256, total_steps=10, auto_reset=False)
    assert config.environment.worlds == 1
    assert config.run.output_dir is None


@pytest.mark.parametrize(
    ("run", "name", "algorithm_id"),
    [
        ({}, "random", "random"),
        ({"seed": 3}, "random-seed3", "random"),
        ({"seed": 0, "algorithm_id": "arm"}, "arm-seed0", "arm"),
        ({"name": "mine", "seed": 3}, "mine", "random"),
        ({"name": None, "algorithm_id": None}, "random", "random"),
    ],
)
def test_identity_is_filled_in_from_what_was_selected(
    run: dict[str, Any], name: str, algorithm_id: str
) -> None:
    config = parse_config(document(run=run))
    assert (config.run.name, config.run.algorithm_id) == (name, algorithm_id)


def test_meta_leaves_out_what_was_not_set() -> None:
    assert RunConfig().meta() == {}
    assert parse_config(document(run={"seed": 0, "task": "t"})).run.meta() == {
        "run_id": "random-seed0",
        "algorithm_id": "random",
        "task": "t",
        "seed": 0,
    }


def test_sections_are_frozen() -> None:
    with pytest.raises(ValidationError):
        parse_config(document()).rollout.total_steps = 3  # type: ignore[misc]


# ---------------------------------------------------------------- bad input, each with its whole message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            MINIMAL + "polcy: {}\n",
            (
                "FILE:4: polcy: unknown key; known: "
                "'algorithm', 'environment', 'regime', 'reward', 'rollout', 'run', 'trackers'"
            ),
        ),
        (
            MINIMAL.replace("total_steps: 10", "total_step: 10, total_steps: 10"),
            (
                "FILE:3: rollout.total_step: unknown key; did you mean 'total_steps'? "
                "known: 'auto_reset', 'record_observations', 'total_steps', 'window_steps'"
            ),
        ),
        (
            MINIMAL.replace("v1}", "v1, wrappers: [{factory: 'a:b'}, {factory: 'a:b', kwarg: 1}]}"),
            (
                "FILE:1: environment.wrappers[1].kwarg: unknown key; did you mean 'kwargs'? "
                "known: 'factory', 'kwargs'"
            ),
        ),
        (
            MINIMAL.replace("random}", "random, policy: {factory: 'a:b', kwarg: {}}}"),
            "FILE:2: algorithm.policy.kwarg: unknown key; did you mean 'kwargs'? known: 'factory', 'kwargs'",
        ),
        (MINIMAL.replace("10", "ten"), "FILE:3: rollout.total_steps: 'ten' should be a valid integer"),
        (MINIMAL.replace("10", "'10'"), "FILE:3: rollout.total_steps: '10' should be a valid integer"),
        (MINIMAL.replace("10", "1e6"), "FILE:3: rollout.total_steps: 1000000.0 should be a valid integer"),
        (MINIMAL.replace("10", "true"), "FILE:3: rollout.total_steps: True should be a valid integer"),
        (MINIMAL.replace("10", "-5"), "FILE:3: rollout.total_steps: -5 should be greater than or equal to 1"),
        (MINIMAL.replace("10", "0"), "FILE:3: rollout.total_steps: 0 should be greater than or equal to 1"),
        (MINIMAL.replace("10", ""), "FILE:3: rollout.total_steps: None should be a valid integer"),
        (
            MINIMAL.replace("10", "10, auto_reset: 1"),
            "FILE:3: rollout.auto_reset: 1 should be a valid boolean",
        ),
        (MINIMAL.replace("{total_steps: 10}", "[1, 2]"), "FILE:3: rollout: [1, 2] should be a mapping"),
        (MINIMAL.replace("{total_steps: 10}", "fast"), "FILE:3: rollout: 'fast' should be a mapping"),
        (
            MINIMAL.replace("{total_steps: 10}", ""),
            "FILE:3: rollout: the section is empty; fill it in or leave it out",
        ),
        (MINIMAL.replace("total_steps: 10", ""), "FILE:3: rollout.total_steps: missing; it has no default"),
        ("\n".join(MINIMAL.splitlines()[:2]), "FILE: rollout: missing; it has no default"),
        (MINIMAL + "reward: {}\n", "FILE:4: reward.spec: missing; it has no default"),
        (MINIMAL + "reward:\n", "FILE:4: reward: the section is empty; fill it in or leave it out"),
        (MINIMAL + "reward: weighted\n", "FILE:4: reward: 'weighted' should be a mapping"),
        (
            MINIMAL + "reward: {spec: wieghted}\n",
            (
                "FILE:4: reward.spec: unknown reward 'wieghted': did you mean 'weighted'? "
                f"known: {REWARDS}"
            ),
        ),
        (MINIMAL + "regime:\n", "FILE:4: regime: the section is empty; fill it in or leave it out"),
        (
            MINIMAL + "regime: {provider: schedule}\n",
            (
                "FILE:4: regime.provider: unknown regime 'schedule': did you mean 'scheduled'? "
                f"known: {REGIMES}"
            ),
        ),
        (MINIMAL + "run:\n", "FILE:4: run: the section is empty; fill it in or leave it out"),
        (MINIMAL + "run: {seed: -1}\n", "FILE:4: run.seed: -1 should be greater than or equal to 0"),
        (MINIMAL + "run: {seed: 1.0}\n", "FILE:4: run.seed: 1.0 should be a valid integer"),
        (
            MINIMAL + f"run: {{seed: {2**63}}}\n",
            f"FILE:4: run.seed: {2**63} should be less than {2**63}",
        ),
        (
            MINIMAL + "run: {task: on}\n",
            "FILE:4: run.task: True should be text; put it in quotes if that is what it is",
        ),
        (MINIMAL + "run: {output_dir: 3}\n", "FILE:4: run.output_dir: 3 should be a path"),
        (
            MINIMAL + "run: {name: a/b}\n",
            (
                "FILE:4: run.name: 'a/b' becomes a directory's name: "
                "printable, no separators, not '.' or '..', at most 200 bytes"
            ),
        ),
        (
            MINIMAL + "run: {reward_upper_bounds: {a: .nan}}\n",
            "FILE:4: run.reward_upper_bounds.a: nan should be a finite number",
        ),
        (
            MINIMAL.replace("random", "randm"),
            f"FILE:2: algorithm.name: unknown algorithm 'randm': did you mean 'random'? known: {ALGORITHMS}",
        ),
        (
            MINIMAL.replace("random", "'mine:Own'"),
            (
                f"FILE:2: algorithm.name: unknown algorithm 'mine:Own': known: {ALGORITHMS}; "
                "give 'mine:Own' a name in the entry-point group 'skyfall.algorithms'"
            ),
        ),
        (
            MINIMAL.replace("random}", "random, policy: {factory: nope}}"),
            f"FILE:2: algorithm.policy.factory: unknown policy 'nope': {POLICIES}",
        ),
        (
            MINIMAL.replace("random}", "random, policy:}"),
            "FILE:2: algorithm.policy: the section is empty; fill it in or leave it out",
        ),
        (
            MINIMAL.replace("CartPole-v1", "CartPole-v1, wrappers: [{factory: nope}]"),
            (
                "FILE:1: environment.wrappers[0].factory: 'nope' is not of the form "
                "'package.module:factory'"
            ),
        ),
        (
            MINIMAL.replace("CartPole-v1", "CartPole-v1, vector: persistant, worlds: 2"),
            (
                "FILE:1: environment.vector: unknown vector 'persistant': did you mean 'persistent'? "
                "known: 'persistent'"
            ),
        ),
        (
            MINIMAL.replace("CartPole-v1", "CartPol-v1"),
            "FILE:1: environment.id: 'CartPol-v1' is no registered environment; did you mean 'CartPole-v1'?",
        ),
        (
            MINIMAL.replace("CartPole-v1", "'my-package:make'"),
            "FILE:1: environment.id: 'my-package:make' is not of the form 'package.module:factory'",
        ),
        (
            MINIMAL.replace("CartPole-v1", "''"),
            "FILE:1: environment.id: '' is empty; give at least one",
        ),
        (MINIMAL + "1: x\n", "FILE:4: 1: the key 1 is not text; put it in quotes"),
        (MINIMAL + "null: x\n", "FILE:4: None: the key None is not text; put it in quotes"),
        (
            MINIMAL.replace("random}", "random, kwargs: {on: 1}}"),
            "FILE:2: algorithm.kwargs.True: the key True is not text; put it in quotes",
        ),
        (
            MINIMAL.replace("random}", "random, kwargs: [1]}"),
            "FILE:2: algorithm.kwargs: [1] should be a mapping",
        ),
        (
            MINIMAL.replace("random}", "random, kwargs: {a: [SEED]}}"),
            (
                "FILE:2: algorithm.kwargs.a[0]: 'SEED' stands for run.seed, which is None; "
                "set an integer"
            ),
        ),
        (
            MINIMAL + "run: {seed: SEED}\n",
            "FILE:4: run.seed: 'SEED' stands for run.seed, which is 'SEED'; set an integer",
        ),
    ],
)  # fmt: skip
def test_bad_value_is_refused_with_file_line_path_value_and_remedy(
    file: Path, text: str, problem: str
) -> None:
    assert faults(file, text)[0] == problem


@pytest.mark.parametrize(
    "name",
    ["a.b", "a.b:", ":c", "a..b:c", "a b:c", "a.b:c:d", "a.b:c d", "a/b:c", "../a:b", "a.b:c()", ".a:b"],
)
@pytest.mark.parametrize(
    ("place", "section"),
    [
        (
            "environment.wrappers[0].factory",
            {"environment": {"id": "CartPole-v1", "wrappers": [{"factory": "X"}]}},
        ),
        ("reward.spec", {"reward": {"spec": "X"}}),
        ("algorithm.policy.factory", {"algorithm": {"name": "random", "policy": {"factory": "X"}}}),
        ("environment.id", {"environment": {"id": "X"}}),
    ],
)
def test_name_that_is_not_dotted_as_it_should_be_is_refused(
    name: str, place: str, section: dict[str, Any]
) -> None:
    text = yaml_text(section).replace("X", json.dumps(name))
    with pytest.raises(ConfigError) as caught:
        parse_config(document(**yaml.safe_load(text)))
    assert str(caught.value).startswith(f"{place}: ")
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["a:b", "pkg.mod:make", "pkg.mod:Class.build", "pkg.mod:Env-v0", "pkg:ns/Env-v3"]
)
def test_dotted_environment_is_taken_as_given(name: str) -> None:
    assert parse_config(document(environment={"id": name})).environment.id == name


def test_every_fault_is_told_at_once(file: Path) -> None:
    text = """\
environment: {id: CartPol-v1, worlds: 0}
algorithm:
  name: randm
  kwargs: {seed: SEED}
  policy:
rollout:
  total_steps: -4
  window: 3
reward:
regime:
  provider: scheduled
  params:
    schedule:
      regimes:
      - {regime_id: a, duration_steps: 0}
"""
    found = faults(file, text)
    assert sorted(line.partition(": ")[0] + " " + line.split(": ")[1] for line in found) == [
        "FILE:1 environment.id",
        "FILE:1 environment.worlds",
        "FILE:15 regime.params.schedule.regimes[0].duration_steps",
        "FILE:3 algorithm.name",
        "FILE:4 algorithm.kwargs.seed",
        "FILE:5 algorithm.policy",
        "FILE:7 rollout.total_steps",
        "FILE:8 rollout.window",
        "FILE:9 reward",
    ]


def test_long_value_is_cut_in_the_message(file: Path) -> None:
    (problem,) = faults(file, MINIMAL.replace("10", f"'{'x' * 5000}'"))
    assert len(problem) < 300
    assert "xxx... should be a valid integer" in problem


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "../up", "n" * 201, "é" * 101, "a\nb", "\x1b[31m"]
)
def test_run_name_stays_inside_its_folder(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^run\.name: .* becomes a directory's name"):
        parse_config(document(run={"name": name}))


@pytest.mark.parametrize("name", ["a", "a.b", "..a", "é" * 100, "ppo-seed0", "two words"])
def test_ordinary_run_name_is_kept(name: str) -> None:
    assert parse_config(document(run={"name": name})).run.name == name


# ---------------------------------------------------------------- schedules


def test_inline_schedule_is_checked_with_its_line(file: Path) -> None:
    text = MINIMAL + (
        "regime:\n  provider: scheduled\n  params:\n    schedule:\n      regimes:\n"
        "      - {regime_id: a, duration_steps: 5}\n      - {regime_id: b, alias_of: z}\n"
    )
    assert faults(file, text) == [
        "FILE:10: regime.params.schedule.regimes[1].alias_of: 'z' is no earlier entry; known: 'a'"
    ]


def test_referenced_schedule_is_checked_and_both_files_are_named(file: Path, tmp_path: Path) -> None:
    schedule = tmp_path / "shifts.yaml"
    schedule.write_text("regimes:\n- {regime_id: a, duration_steps: 5}\n- {regime_id: a}\n")
    text = MINIMAL + "regime: {provider: scheduled, params: {schedule: shifts.yaml}}\n"
    assert faults(file, text) == [
        (
            f"FILE:4: regime.params.schedule: {schedule}:3: regimes[1].regime_id: "
            "'a' stands twice; give the revisit its own label and alias_of"
        )
    ]


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ("", "regime.params.schedule: missing; give a mapping with 'regimes' or the path of a YAML file"),
        (
            ", params: {schedule: 3}",
            "regime.params.schedule: a schedule is a mapping with 'regimes', not int",
        ),
        (
            ", params: {schedule: {}}",
            "regime.params.schedule.regimes: missing; list at least one entry with a regime_id",
        ),
    ],
)
def test_schedule_that_is_none_is_refused(file: Path, params: str, problem: str) -> None:
    assert faults(file, MINIMAL + f"regime: {{provider: scheduled{params}}}\n") == [f"FILE:4: {problem}"]


def test_missing_schedule_file_is_named_with_its_place(file: Path, tmp_path: Path) -> None:
    text = MINIMAL + "regime: {provider: scheduled, params: {schedule: no.yaml}}\n"
    assert faults(file, text) == [
        f"FILE:4: regime.params.schedule: {tmp_path}/no.yaml: cannot be read: No such file or directory"
    ]


# ---------------------------------------------------------------- --set


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("rollout.total_steps=x", "rollout.total_steps: 'x' should be a valid integer"),
        ("rollout.total_steps=-1", "rollout.total_steps: -1 should be greater than or equal to 1"),
        ("rollout.total_steps=", "rollout.total_steps: None should be a valid integer"),
        ("reward=", "reward: the section is empty; fill it in or leave it out"),
        ("reward.params={}", "reward.spec: missing; it has no default"),
        ("regime.provider=nope", f"regime.provider: unknown regime 'nope': known: {REGIMES}"),
    ],
)
def test_setting_is_checked_like_the_document(file: Path, setting: str, problem: str) -> None:
    found = faults(file, MINIMAL, setting)
    assert found in ([f"--set {setting}: {problem}"], [f"FILE: {problem}"])


def test_setting_replaces_a_value_before_anything_is_checked(file: Path) -> None:
    assert load(file, MINIMAL.replace("10", "-1"), "rollout.total_steps=7").rollout.total_steps == 7


# ---------------------------------------------------------------- paths and seeds


def test_relative_paths_start_at_the_document_and_typed_ones_where_they_are_typed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    text = MINIMAL.replace("random}", "random, kwargs: {a: ./w, b: [../w], c: w, d: ./x}}") + (
        "run: {output_dir: runs}\n"
    )
    config = load(file, text, "algorithm.kwargs.d=./y")
    assert config.run.output_dir == tmp_path / "runs"
    assert config.algorithm.kwargs == {
        "a": str(tmp_path / "w"),
        "b": [str(tmp_path.parent / "w")],
        "c": "w",
        "d": str(elsewhere / "y"),
    }
    assert load(file, text, "run.output_dir=runs").run.output_dir == elsewhere / "runs"


def test_home_is_expanded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert load(file, MINIMAL + "run: {output_dir: ~/runs}\n").run.output_dir == Path("/somewhere/runs")


def test_seed_stands_wherever_it_is_written(file: Path) -> None:
    text = MINIMAL.replace("random}", "random, kwargs: {seed: SEED, deep: [{s: SEED}, SEEDS]}}")
    config = load(file, text + "run: {seed: 7}\n")
    assert config.algorithm.kwargs == {"seed": 7, "deep": [{"s": 7}, "SEEDS"]}


def test_seed_set_on_the_command_line_is_the_one_filled_in(file: Path) -> None:
    text = MINIMAL.replace("random}", "random, kwargs: {seed: SEED}}")
    assert load(file, text, "run.seed=9").algorithm.kwargs == {"seed": 9}


# ---------------------------------------------------------------- round trip


def test_resolved_file_reads_back_equal_from_anywhere(file: Path, tmp_path: Path) -> None:
    (tmp_path / "shifts.yaml").write_text("regimes: [{regime_id: a}]\n")
    config = load(
        file,
        MINIMAL.replace(
            "random}", "random, kwargs: {s: SEED, p: ./x, n: null, t: '1e-3', k: {0: a}, d: 2026-01-31}}"
        )
        + "regime: {provider: scheduled, params: {schedule: shifts.yaml}}\n"
        + "run: {seed: 1, output_dir: runs, reward_upper_bounds: {a: 1}}\n",
    )
    assert config.algorithm.kwargs["k"] == {0: "a"}
    moved = tmp_path / "moved" / "config.yaml"
    moved.parent.mkdir()
    moved.write_text(config.to_yaml())
    assert load_config(moved) == config


NAMES = st.text(
    st.characters(exclude_characters="\0/\\", exclude_categories=["C", "Z"]), min_size=1, max_size=8
).filter(lambda name: name not in {".", "..", "SEED"})
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8).filter(
    lambda text: text != "SEED" and not text.startswith(("./", "../"))
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | TEXT
    | st.sampled_from(["1e5", "on"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT | st.integers(), inner, max_size=2),
    max_leaves=5,
)
KWARGS = st.dictionaries(TEXT, VALUES, max_size=3)
POSITIVE = st.integers(1, 10**9)
CONFIGS = st.builds(
    ExperimentConfig,
    environment=st.builds(
        EnvironmentConfig,
        id=st.sampled_from(["CartPole-v1", "pkg.mod:make"]),
        kwargs=KWARGS,
        wrappers=st.lists(st.builds(WrapperConfig, factory=st.just("a.b:C"), kwargs=KWARGS), max_size=2),
        worlds=POSITIVE,
        vector=st.just("persistent"),
    ),
    algorithm=st.builds(
        AlgorithmConfig,
        name=st.sampled_from(["ppo", "random"]),
        kwargs=KWARGS,
        policy=st.none() | st.builds(PolicyConfig, factory=st.just("a:b"), kwargs=KWARGS),
    ),
    rollout=st.builds(RolloutConfig, window_steps=POSITIVE, total_steps=POSITIVE, auto_reset=st.booleans()),
    regime=st.builds(RegimeConfig, provider=st.just("constant"), params=KWARGS),
    reward=st.none() | st.builds(RewardConfig, spec=st.just("weighted"), params=KWARGS),
    run=st.builds(
        RunConfig,
        name=st.none() | NAMES,
        seed=st.none() | st.integers(0, 2**63 - 1),
        task=st.none() | TEXT,
        algorithm_id=st.none() | NAMES,
        output_dir=st.none() | st.sampled_from([Path("runs"), Path("/a/ü b")]),
        reward_upper_bounds=st.none()
        | st.dictionaries(TEXT, st.floats(allow_nan=False, allow_infinity=False)),
    ),
)


@given(CONFIGS)
@settings(deadline=None)
def test_resolved_document_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, config: ExperimentConfig
) -> None:
    file = tmp_path_factory.getbasetemp() / "config.yaml"
    output_dir = config.run.output_dir
    file.write_text(config.to_yaml(), encoding="utf-8", newline="")
    again = load_config(file)
    if output_dir is not None:
        assert again.run.output_dir == file.parent / output_dir
        again = again.model_copy(update={"run": again.run.model_copy(update={"output_dir": output_dir})})
    assert again == config
    assert repr(again) == repr(config)


@given(VALUES)
@settings(deadline=None)
def test_no_value_in_any_place_gives_more_than_a_config_error(value: Any) -> None:
    for section in ("environment", "algorithm", "rollout", "regime", "reward", "run", "other"):
        for content in (
            value,
            {"id": value},
            {"name": value, "seed": value},
            {"provider": "scheduled", "params": value},
        ):
            try:
                parse_config(document(**{section: content}))
            except ConfigError as error:
                assert str(error).startswith(section)  # noqa: PT017 - most values are refused, some are fine


# ---------------------------------------------------------------- modules left alone


def test_validating_imports_neither_the_algorithm_nor_the_environment(file: Path) -> None:
    file.write_text(
        "environment: {id: 'not_there.at_all:make', wrappers: [{factory: 'nor.this:Wrapper'}]}\n"
        "algorithm: {name: ppo, policy: {factory: 'skyfall_torch.policy:language_policy'}}\n"
        "rollout: {total_steps: 10}\nreward: {spec: morpheus-operational}\n"
    )
    code = (
        "import sys\nfrom skyfall_core.config import load_config\nload_config(sys.argv[1])\n"
        "heavy = ('torch', 'transformers', 'peft', 'skyfall_torch', 'skyfall_morpheus', 'httpx')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
