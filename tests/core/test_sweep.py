"""A matrix of experiments: its order, its cells, and what is wrong with it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core.config import ExperimentConfig, load_config, parse_config
from skyfall_core.documents import Document
from skyfall_core.errors import ConfigError
from skyfall_core.executors.settings import ExecutorConfig
from skyfall_core.seeding import spread_seed
from skyfall_core.sweep import (
    SEED,
    SweepConfig,
    expand_sweep,
    load_sweep,
    merge,
    read_sweep,
    seed_places,
)

BASE: dict[str, Any] = {
    "environment": {"id": "CartPole-v1", "kwargs": {"a": 1}},
    "algorithm": {"name": "random", "kwargs": {"seed": SEED}},
    "rollout": {"total_steps": 10, "window_steps": 5},
    "reward": {"spec": "weighted"},
}
MINIMAL = """\
base:
  environment: {id: CartPole-v1}
  algorithm: {name: random}
  rollout: {total_steps: 10}
families: {one: {}, two: {algorithm: {name: frozen}}}
seeds: [0, 1]
output_dir: runs
"""


def sweep(**given_: Any) -> SweepConfig:
    content = {"base": BASE, "families": {"one": {}}, "seeds": [0], "output_dir": "/runs"}
    return SweepConfig.model_validate(content | given_)


def cells(**given_: Any) -> list[ExperimentConfig]:
    return expand_sweep(sweep(**given_))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sweep.yaml"


def load(file: Path, text: str, *settings_: str) -> list[ExperimentConfig]:
    file.write_text(text)
    return load_sweep(file, settings_)


def faults(file: Path, text: str, *settings_: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(file, text, *settings_)
    return str(caught.value).replace(str(file), "FILE").splitlines()


# ---------------------------------------------------------------- order and identity


def test_cells_come_family_by_family_then_task_by_task_then_seed_by_seed() -> None:
    found = cells(families={"z": {}, "a": None}, tasks=["t2", "t1"], seeds=[3, 1])
    assert [cell.run.name for cell in found] == [
        "z-t2-seed3",
        "z-t2-seed1",
        "z-t1-seed3",
        "z-t1-seed1",
        "a-t2-seed3",
        "a-t2-seed1",
        "a-t1-seed3",
        "a-t1-seed1",
    ]


def test_every_cell_carries_family_task_and_seed_in_its_metadata() -> None:
    found = cells(families={"one": {}, "two": {}}, tasks=["t"], seeds=[3, 4])
    assert [cell.run.meta() for cell in found] == [
        {"run_id": f"{family}-t-seed{seed}", "algorithm_id": family, "task": "t", "seed": seed}
        for family in ("one", "two")
        for seed in (3, 4)
    ]


def test_sweep_without_tasks_keeps_the_task_of_its_base() -> None:
    (cell,) = cells(
        base=BASE | {"run": {"task": "mine", "reward_upper_bounds": {"a": 1.0}, "name": "x", "seed": 9}}
    )
    assert cell.run.meta() == {
        "run_id": "one-seed0",
        "algorithm_id": "one",
        "task": "mine",
        "seed": 0,
        "reward_upper_bounds": {"a": 1.0},
    }


def test_families_may_share_an_algorithm() -> None:
    families = {f"gamma{gamma}": {"algorithm": {"kwargs": {"gamma": gamma}}} for gamma in (1, 2)}
    found = cells(families=families)
    assert [(cell.algorithm.name, cell.run.algorithm_id) for cell in found] == [
        ("random", "gamma1"),
        ("random", "gamma2"),
    ]


def test_task_mapping_overrides_and_task_list_only_names() -> None:
    named = cells(tasks=["hard"])
    overridden = cells(tasks={"easy": None, "hard": {"environment": {"kwargs": {"b": 2}}}})
    assert [cell.environment.kwargs for cell in named] == [{"a": 1}]
    assert [cell.environment.kwargs for cell in overridden] == [{"a": 1}, {"b": 2}]
    assert [cell.run.task for cell in overridden] == ["easy", "hard"]


def test_task_has_the_last_word_over_the_family() -> None:
    (cell,) = cells(
        families={"f": {"rollout": {"window_steps": 2}}}, tasks={"t": {"rollout": {"window_steps": 3}}}
    )
    assert cell.rollout.window_steps == 3
    assert cell.rollout.total_steps == 10


@given(
    st.lists(st.text("abc-", min_size=1, max_size=4), min_size=1, max_size=4, unique=True),
    st.lists(st.text("abc-", min_size=1, max_size=4), max_size=4, unique=True),
    st.lists(st.integers(0, 50), min_size=1, max_size=3, unique=True),
)
@settings(deadline=None, max_examples=60)
def test_no_two_cells_share_an_output_path(families: list[str], tasks: list[str], seeds: list[int]) -> None:
    try:
        found = cells(families=dict.fromkeys(families), tasks=tasks, seeds=seeds)
    except ConfigError as error:
        # two pairs can only give one name where a hyphen in them can be read both ways
        assert "two pairs of family and task give this name" in str(error)  # noqa: PT017
        assert any("-" in name for name in families + tasks)
        return
    paths = [(cell.run.output_dir, cell.run.name) for cell in found]
    assert len(set(paths)) == len(paths) == len(families) * max(len(tasks), 1) * len(seeds)


def test_two_pairs_that_give_one_name_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        cells(families={"a-b": {}, "a": {}}, tasks=["c", "b-c"])
    assert str(caught.value) == "cell a-b-c-seed0: two pairs of family and task give this name; rename one"


def test_cells_share_no_mutable_part() -> None:
    first, second = cells(seeds=[0, 1])
    first.environment.kwargs["a"] = 99
    assert second.environment.kwargs == {"a": 1}
    assert BASE["environment"]["kwargs"] == {"a": 1}


# ---------------------------------------------------------------- merging


def test_merge_goes_one_level_into_each_section_and_no_deeper() -> None:
    base = {"a": {"x": 1, "y": {"p": 1}}, "b": {"z": 1}}
    overlay = {"a": {"y": {"q": 2}}, "c": {"w": 3}}
    assert merge(base, overlay) == {"a": {"x": 1, "y": {"q": 2}}, "b": {"z": 1}, "c": {"w": 3}}
    assert base == {"a": {"x": 1, "y": {"p": 1}}, "b": {"z": 1}}


def test_merge_with_null_takes_a_section_out() -> None:
    assert merge({"a": {"x": 1}, "b": {}}, {"a": None, "absent": None}) == {"b": {}}


def test_merge_replaces_what_is_no_section() -> None:
    assert merge({"a": 1, "b": {"x": 1}}, {"a": {"y": 2}, "b": 3}) == {"a": {"y": 2}, "b": 3}


def test_arm_can_say_that_it_has_no_reward() -> None:
    with_, without = cells(families={"with": {}, "without": {"reward": None}})
    assert with_.reward is not None
    assert without.reward is None


def test_section_that_was_taken_out_can_be_put_back_by_the_task() -> None:
    (cell,) = cells(
        families={"f": {"reward": None}}, tasks={"t": {"reward": {"spec": "weighted", "params": {"a": 1}}}}
    )
    assert cell.reward is not None
    assert cell.reward.params == {"a": 1}


# ---------------------------------------------------------------- seeds


def test_seed_reaches_wherever_it_is_written_in_every_cell() -> None:
    deep = {"seed": SEED, "list": [SEED, [SEED, {"x": SEED}]], "word": "SEEDS"}
    found = cells(families={"f": {"algorithm": {"kwargs": deep}}}, seeds=[5, 6])
    assert [cell.algorithm.kwargs for cell in found] == [
        {"seed": seed, "list": [seed, [seed, {"x": seed}]], "word": "SEEDS"} for seed in (5, 6)
    ]


def test_seed_that_is_written_nowhere_reaches_the_run_alone() -> None:
    base = BASE | {"algorithm": {"name": "random", "kwargs": {"replay_seed": 3}}}
    assert [cell.algorithm.kwargs for cell in cells(base=base, seeds=[5, 6])] == [{"replay_seed": 3}] * 2


def _leaves(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return [leaf for value in content.values() for leaf in _leaves(value)]
    return [leaf for value in content for leaf in _leaves(value)] if isinstance(content, list) else [content]


names = st.text("abc", min_size=1, max_size=3)
free = st.recursive(
    st.just(SEED) | st.integers() | st.booleans() | st.none() | st.text("./~abS", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
sections = st.fixed_dictionaries(
    {},
    optional={
        "algorithm": st.fixed_dictionaries(
            {
                "name": st.sampled_from(["random", "frozen", "ppo"]),
                "kwargs": st.dictionaries(names, free, max_size=3),
            }
        ),
        "environment": st.fixed_dictionaries(
            {
                "id": st.sampled_from(["CartPole-v1", "morpheus"]),
                "kwargs": st.dictionaries(names, free, max_size=3),
            }
        ),
        "regime": st.fixed_dictionaries({"params": st.dictionaries(names, free, max_size=2)}),
        "reward": st.none() | st.just({"spec": "weighted"}),
        "rollout": st.fixed_dictionaries({"total_steps": st.integers(1, 99)}),
    },
)
matrices = st.fixed_dictionaries(
    {
        "families": st.dictionaries(names, st.none() | sections, min_size=1, max_size=3),
        "tasks": st.lists(names, unique=True, max_size=3)
        | st.dictionaries(names, st.none() | sections, max_size=3),
        "seeds": st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=4, unique=True),
    }
)


@given(matrices)
@settings(deadline=None, max_examples=150)
def test_expansion_gives_every_combination_in_order_validated_and_without_seed_left(matrix: Any) -> None:
    before = repr(matrix)
    made = sweep(**matrix)
    found = expand_sweep(made)
    tasks = list(matrix["tasks"]) or [None]
    expected = [
        (family, task, seed) for family in matrix["families"] for task in tasks for seed in matrix["seeds"]
    ]
    assert [(cell.run.algorithm_id, cell.run.task, cell.run.seed) for cell in found] == expected
    assert repr(matrix) == before  # pure
    assert expand_sweep(made) == found  # the same once more
    for cell in found:
        content = cell.model_dump()
        assert SEED not in _leaves(content)
        assert ExperimentConfig.model_validate(content) == cell


@given(matrices)
@settings(deadline=None, max_examples=100)
def test_later_cells_of_a_group_are_what_their_whole_document_gives(matrix: Any) -> None:
    made = sweep(**matrix)
    found = iter(expand_sweep(made))
    for family, overrides in matrix["families"].items():
        for task, of_task in made.overrides_by_task.items():
            for seed in matrix["seeds"]:
                run = {"run": {"seed": seed, "algorithm_id": family, "output_dir": "/runs"}}
                run["run"]["name"] = "-".join(part for part in (family, task, f"seed{seed}") if part)
                run["run"] |= {} if task is None else {"task": task}
                content = merge(merge(merge(BASE, overrides or {}), of_task), run)
                assert next(found) == parse_config(Document(content))


def test_seed_in_a_schedule_is_checked_in_every_cell() -> None:
    schedule = {"regimes": [{"regime_id": "a", "duration_steps": SEED}, {"regime_id": "b"}]}
    regime = {"provider": "scheduled", "params": {"schedule": schedule}}
    with pytest.raises(ConfigError, match=r"cell one-seed0: .*duration_steps"):
        cells(base=BASE | {"regime": regime}, seeds=[3, 0])


def test_seed_where_only_some_values_are_allowed_is_refused_with_its_cell() -> None:
    with pytest.raises(ConfigError) as caught:
        cells(base=BASE | {"rollout": {"total_steps": SEED}}, seeds=[5, 0])
    assert str(caught.value) == (
        "cell one-seed0: rollout.total_steps: 0 should be greater than or equal to 1"
    )


def test_places_that_the_seed_reaches_are_named(file: Path) -> None:
    file.write_text(MINIMAL.replace("name: random", "name: random, kwargs: {seed: SEED, more: [1, SEED]}"))
    (one, _), (two, _) = read_sweep(file).groups
    assert seed_places(one) == ["run.seed", "algorithm.kwargs.seed", "algorithm.kwargs.more[1]"]
    assert seed_places(two) == seed_places(one)


def test_neighboring_seeds_share_no_world() -> None:
    worlds = [seed for base in range(40) for seed in spread_seed(base, 8)]
    assert len(set(worlds)) == len(worlds)


# ---------------------------------------------------------------- the executor it names


def test_sweep_names_its_executor_and_the_command_line_has_the_last_word(file: Path) -> None:
    file.write_text(
        MINIMAL + "executor: {name: ray, jobs: 3, resources: {cpus: 2}, params: {address: 'a:1'}}\n"
    )
    config = read_sweep(file).config.executor
    assert (config.name, config.jobs, config.params) == ("ray", 3, {"address": "a:1"})
    assert config.chosen() == config
    assert config.chosen("ray", 5).params == {"address": "a:1"}
    chosen = config.chosen("local", 5)  # what another executor was told means nothing to this one
    assert (chosen.name, chosen.jobs, chosen.params, chosen.resources.cpus) == ("local", 5, {}, 2)


def test_executor_refuses_params_it_does_not_know(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        ExecutorConfig(params={"adress": "a:1"}).build(tmp_path)
    assert str(caught.value).startswith("executor.params.adress: LocalExecutor takes no 'adress'; known: ")


# ---------------------------------------------------------------- bad sweeps


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("base: {}\n", "FILE: families: missing; it has no default"),
        (MINIMAL.replace("[0, 1]", "[0, 1, 0]"), "FILE:6: seeds: 0 stands 2 times; each cell needs its own"),
        (MINIMAL.replace("[0, 1]", "[]"), "FILE:6: seeds: [] is empty; give at least one"),
        (MINIMAL.replace("[0, 1]", "3"), "FILE:6: seeds: 3 should be a list"),
        (MINIMAL.replace("[0, 1]", "[0, -1]"), "FILE:6: seeds[1]: -1 should be greater than or equal to 0"),
        (MINIMAL.replace("[0, 1]", "[0, true]"), "FILE:6: seeds[1]: True should be a valid integer"),
        (MINIMAL.replace("seeds: [0, 1]\n", ""), "FILE: seeds: missing; it has no default"),
        (MINIMAL.replace("{one: {}, two: {algorithm: {name: frozen}}}", "{}"),
         "FILE:5: families: {} is empty; give at least one"),
        (MINIMAL.replace("one: {}", "one: 3"), "FILE:5: families.one: 3 should be a mapping"),
        (MINIMAL.replace("one: {}", "a/b: {}"),
         ("FILE:5: families.a/b: 'a/b' becomes a directory's name: "
          "printable, no separators, not '.' or '..', at most 200 bytes")),
        (MINIMAL.replace("one: {}", "1: {}"), "FILE:5: families.1: the key 1 is not text; put it in quotes"),
        (MINIMAL.replace("output_dir: runs", "output_dir: 3"), "FILE:7: output_dir: 3 should be a path"),
        (MINIMAL.replace("output_dir", "output"),
         "FILE: output_dir: missing; it has no default"),
        (MINIMAL + "seed: 3\n",
         ("FILE:8: seed: unknown key; did you mean 'seeds'? "
          "known: 'base', 'executor', 'families', 'output_dir', 'seeds', 'tasks'")),
        (MINIMAL + "executor: {name: lokal}\n",
         ("FILE:8: executor.name: unknown executor 'lokal': did you mean 'local'? "
          "known: 'local', 'ray', 'slurm'")),
        (MINIMAL + "executor: {jobs: 0}\n", "FILE:8: executor.jobs: 0 should be greater than or equal to 1"),
        (MINIMAL + "executor: {resources: {cpu: 1}}\n",
         ("FILE:8: executor.resources.cpu: unknown key; did you mean 'cpus'? "
          "known: 'cpus', 'gpus', 'memory_mb'")),
        (MINIMAL + "executor: {resources: {memory_mb: 0}}\n",
         "FILE:8: executor.resources.memory_mb: 0 should be greater than or equal to 1"),
        (MINIMAL + "executor: {resources: {gpus: -1}}\n",
         "FILE:8: executor.resources.gpus: -1 should be greater than or equal to 0"),
        (MINIMAL.replace("one: {}", "one: {algorithm: {nam: ppo}}"),
         "cell one-seed0: FILE:5: algorithm.nam: unknown key; did you mean 'name'?"),
        (MINIMAL + "tasks: 3\n", "FILE:8: tasks: 3 should be a list of names or a mapping"),
        (MINIMAL + "tasks:\n", "FILE:8: tasks: None should be a list of names or a mapping"),
        (MINIMAL + "tasks: [a, 3]\n",
         "FILE:8: tasks[1]: 3 should be text; put it in quotes if that is what it is"),
        (MINIMAL + "tasks: [a, b, a]\n", "FILE:8: tasks: 'a' stands 2 times; each cell needs its own"),
        (MINIMAL + "tasks: {a: 3}\n", "FILE:8: tasks.a: 3 should be a mapping"),
        (MINIMAL + "tasks: {'..': {}}\n",
         ("FILE:8: tasks...: '..' becomes a directory's name: "
          "printable, no separators, not '.' or '..', at most 200 bytes")),
        (MINIMAL.replace("random", "randm"),
         "cell one-seed0: FILE:3: algorithm.name: unknown algorithm 'randm': did you mean 'random'?"),
        (MINIMAL.replace("frozen", "frozn"),
         "cell two-seed0: FILE:5: algorithm.name: unknown algorithm 'frozn': did you mean 'frozen'?"),
        (MINIMAL.replace("10", "-1"),
         "cell one-seed0: FILE:4: rollout.total_steps: -1 should be greater than or equal to 1"),
        (MINIMAL.replace("one: {}", "one: {rollout: null}"),
         "cell one-seed0: FILE:5: rollout: missing; it has no default"),
        (MINIMAL.replace("total_steps: 10}", "total_steps: 10}\n  reward:"),
         "cell one-seed0: FILE:5: reward: the section is empty; fill it in or leave it out"),
        (MINIMAL + "tasks:\n  t:\n    rollout: {total_step: 3}\n",
         "cell one-t-seed0: FILE:10: rollout.total_step: unknown key; did you mean 'total_steps'?"),
    ],
)  # fmt: skip
def test_bad_sweep_is_refused_with_cell_place_and_remedy(file: Path, text: str, problem: str) -> None:
    assert any(line.startswith(problem) for line in faults(file, text)), faults(file, text)


def test_every_fault_of_a_cell_is_told_with_its_name(file: Path) -> None:
    text = MINIMAL.replace("random", "randm").replace("10", "-1").replace("CartPole-v1", "CartPol-v1")
    found = faults(file, text)
    assert len(found) == 3
    assert all(line.startswith("cell one-seed0: FILE:") for line in found)


# ---------------------------------------------------------------- files and settings


def test_paths_start_at_the_sweep_and_typed_ones_where_they_are_typed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "s.yaml").write_text("regimes: [{regime_id: here}]\n")
    (elsewhere / "s.yaml").write_text("regimes: [{regime_id: there}]\n")
    monkeypatch.chdir(elsewhere)
    text = MINIMAL.replace("one: {}", "one: {regime: {provider: scheduled, params: {schedule: s.yaml}}}")
    one, *_, two = load(file, text.replace("name: frozen", "name: frozen, kwargs: {p: ./x}"))
    assert one.run.output_dir == tmp_path / "runs"
    assert one.regime.params == {"schedule": str(tmp_path / "s.yaml")}
    assert two.algorithm.kwargs == {"p": str(tmp_path / "x")}
    typed = load(
        file,
        text,
        "output_dir=runs",
        "families.one.regime.params.schedule=s.yaml",
        "families.two.algorithm.kwargs.p=./x",
    )
    assert typed[0].run.output_dir == elsewhere / "runs"
    assert typed[0].regime.params == {"schedule": str(elsewhere / "s.yaml")}
    assert typed[-1].algorithm.kwargs == {"p": str(elsewhere / "x")}


def test_setting_reaches_every_cell_and_is_named_where_it_is_wrong(file: Path) -> None:
    assert {cell.rollout.total_steps for cell in load(file, MINIMAL, "base.rollout.total_steps=7")} == {7}
    assert faults(file, MINIMAL, "base.rollout.total_steps=0") == [
        (
            "cell one-seed0: --set base.rollout.total_steps=0: rollout.total_steps: "
            "0 should be greater than or equal to 1"
        )
    ]
    assert [cell.run.seed for cell in load(file, MINIMAL, "seeds=[9]")] == [9, 9]


def test_cell_is_an_experiment_that_reads_back_equal(file: Path, tmp_path: Path) -> None:
    for cell in load(file, MINIMAL):
        written = tmp_path / "elsewhere.yaml"
        written.write_text(cell.to_yaml())
        assert load_config(written) == cell


def test_expanding_without_a_file_names_the_cell_alone() -> None:
    with pytest.raises(ConfigError) as caught:
        cells(base=BASE | {"rollout": {"total_steps": 0}})
    assert str(caught.value) == "cell one-seed0: rollout.total_steps: 0 should be greater than or equal to 1"
