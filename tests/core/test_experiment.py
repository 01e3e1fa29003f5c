"""One experiment from document to trace: who is told what, what is refused when, what is always closed."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from skyfall_core import plugins
from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.config import ExperimentConfig
from skyfall_core.errors import (
    ConfigError,
    EnvironmentFailedError,
    InputError,
    NonFiniteRewardError,
    PluginError,
    RewardSpecError,
    RunError,
    TraceError,
    TraceExistsError,
)
from skyfall_core.experiment import ShiftDetector, WindowReport, run_experiment, trace_path_for
from skyfall_core.plugins import Group
from skyfall_core.regime import RegimeSchedule, ScheduledRegime
from skyfall_core.run_directory import CONFIG_FILE

CYCLE = {
    "regimes": [
        {"regime_id": "a", "duration_steps": 4},
        {"regime_id": "b", "duration_steps": 3},
        {"regime_id": "a2", "alias_of": "a"},
    ]
}


class World(gymnasium.Env[Any, Any]):
    """Counts, and can be told where to fail."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(2)
    closed: list[str] = []  # noqa: RUF012 - what the tests ask for
    built: list[World] = []  # noqa: RUF012

    def __init__(
        self, fails_at: int | None = None, fails_in: str = "", info: dict[str, Any] | None = None
    ) -> None:
        World.built.append(self)
        if fails_in == "build":
            raise LookupError("no world")
        self.fails_at, self.fails_in, self.info = fails_at, fails_in, info or {}
        self.count = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if self.fails_in == "reset":
            raise ConnectionError("no server")
        return np.zeros(1), {}

    def step(self, action: Any) -> Any:
        if self.count == self.fails_at:
            if self.fails_in == "interrupt":
                raise KeyboardInterrupt
            raise OSError("the cable is out")
        self.count += 1
        return np.full(1, self.count), 1.0, False, False, self.info

    def close(self) -> None:
        World.closed.append(self.fails_in)
        if self.fails_in == "close":
            raise OSError("stuck")

    def describe_run(self) -> dict[str, Any]:
        return {"layout": "small"}


class Learner:
    """Writes down what it is told, in order."""

    def __init__(self, *, fails_in: str = "", answer: Any = None) -> None:
        self.policy, self.fails_in, self.answer = self, fails_in, answer
        self.told: list[Any] = []

    def act(self, observation: Any) -> int:
        return 0

    def update(self, window: RolloutWindow) -> Any:
        self.told.append(("update", window.transitions[0].step, window.transitions[-1].step))
        if self.fails_in == "update":
            raise ValueError("diverged")
        return {"steps": float(len(window))} if self.answer is None else self.answer

    def on_regime_shift(self, shift: Any) -> None:
        self.told.append(dict(shift))
        if self.fails_in == "shift":
            raise ValueError("no anchor")


class Minimal:
    """Only what an algorithm cannot do without."""

    def __init__(self) -> None:
        self.policy = Learner()

    def update(self, window: RolloutWindow) -> dict[str, float]:
        return {}


def policyless() -> Any:
    return object()


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("parts")
    vars(module).update(World=World, Learner=Learner, Minimal=Minimal, policyless=policyless)
    monkeypatch.setitem(sys.modules, "parts", module)
    monkeypatch.setattr(World, "closed", [])
    monkeypatch.setattr(World, "built", [])
    for name in ("Learner", "Minimal", "policyless"):
        plugins.register(Group.ALGORITHMS, name.lower(), f"parts:{name}")
    yield
    for name in ("learner", "minimal", "policyless"):
        plugins.unregister(Group.ALGORITHMS, name)


def config(output_dir: Path | None = None, **sections: Any) -> ExperimentConfig:
    document: dict[str, Any] = {
        "environment": {"id": "parts:World"},
        "algorithm": {"name": "learner"},
        "rollout": {"window_steps": 5, "total_steps": 12},
        "run": {"name": "run", "seed": 1},
    }
    for section, content in sections.items():
        document[section] = {**document.get(section, {}), **content}
    if output_dir is not None:
        document["run"]["output_dir"] = str(output_dir)
    return ExperimentConfig.model_validate(document)


def scheduled(schedule: dict[str, Any] = CYCLE) -> dict[str, Any]:
    return {"provider": "scheduled", "params": {"schedule": schedule}}


def rows(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "run" / "traces.jsonl").read_text().splitlines()]


# ---- what a run gives


def test_a_run_records_learns_and_reports(tmp_path: Path) -> None:
    reports: list[WindowReport] = []
    result = run_experiment(config(tmp_path, regime=scheduled()), on_window=reports.append)
    assert (result.run_id, result.steps, result.regimes) == ("run", 12, ("a", "b", "a2"))
    assert result.window_metrics == [{"steps": 5.0}, {"steps": 5.0}, {"steps": 2.0}]
    assert result.provenance == {"layout": "small"}
    assert not result.stationary
    assert result.trace_path == tmp_path / "run" / "traces.jsonl" == trace_path_for(config(tmp_path))
    assert [(one.steps, one.mean_reward, one.regimes) for one in reports] == [
        (5, 1.0, ("a", "b")),
        (10, 1.0, ("b", "a2")),
        (12, 1.0, ("a2",)),
    ]
    written = rows(tmp_path)
    assert [row["step"] for row in written] == list(range(12))
    assert {(row["run_id"], row["algorithm_id"], row["seed"]) for row in written} == {("run", "learner", 1)}
    assert World.closed == [""]


def test_without_an_output_dir_nothing_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_experiment(config())
    assert (result.trace_path, result.stationary) == (None, True)
    assert list(tmp_path.iterdir()) == []


def test_the_resolved_document_gives_the_same_run_byte_for_byte(tmp_path: Path) -> None:
    document = {
        "environment": {"id": "CartPole-v1", "wrappers": [{"factory": "skyfall_core.envs:AttributeShift"}]},
        "algorithm": {"name": "actor-critic", "kwargs": {"seed": 3}},
        "rollout": {"window_steps": 64, "total_steps": 400, "auto_reset": True, "record_observations": True},
        "regime": scheduled(
            {
                "regimes": [
                    {"regime_id": "a", "duration_steps": 150},
                    {"regime_id": "b", "axes": {"gravity": 20.0}},
                ],
                "shift_mode": "linear_drift",
                "drift_window": 50,
            }
        ),
    }
    traces = []
    for name in ("one", "two"):
        sections = {**document, "run": {"name": "same", "seed": 5, "output_dir": str(tmp_path / name)}}
        result = run_experiment(ExperimentConfig.model_validate(sections))
        assert result.trace_path is not None
        traces.append(result.trace_path.read_bytes())
    assert traces[0] == traces[1]
    assert traces[0].count(b"\n") == 400


def test_an_algorithm_without_the_optional_parts_is_fine() -> None:
    assert run_experiment(config(algorithm={"name": "minimal"}, regime=scheduled())).steps == 12


def test_what_is_passed_in_is_used_and_closed() -> None:
    learner = Learner()
    run_experiment(config(), env=World(fails_in="mine"), algorithm=learner)
    assert World.closed == ["mine"]
    assert learner.told == [("update", 0, 4), ("update", 5, 9), ("update", 10, 11)]


# ---- shifts


def test_a_shift_is_told_once_before_the_update_of_its_window() -> None:
    learner = Learner()
    run_experiment(config(regime=scheduled(), rollout={"window_steps": 4}), algorithm=learner)
    assert learner.told == [
        ("update", 0, 3),
        {"previous": "a", "current": "b", "origin": None, "step": 4},
        {"previous": "b", "current": "a2", "origin": "a", "step": 7},
        ("update", 4, 7),
        ("update", 8, 11),
    ]


def test_a_shift_the_environment_reports_is_told() -> None:
    class Own(World):
        def step(self, action: Any) -> Any:
            *rest, _ = super().step(action)
            regime = {"id": "x" if self.count <= 2 else "y", "boundary": self.count in {1, 3}, "origin": "w"}
            return (*rest, {"regime": regime})

    learner = Learner()
    run_experiment(config(regime=scheduled()), env=Own(), algorithm=learner)
    shifts = [one for one in learner.told if isinstance(one, dict)]
    assert shifts == [{"previous": "x", "current": "y", "origin": "w", "step": 2}]


def several_worlds(*shift_steps: int) -> RolloutWindow:
    """Two steps before and after, world by world: label `a` until the shift, `b` from then on."""
    worlds, steps = len(shift_steps), 6
    transitions = [
        Transition(step, 0, 0, 1.0, False, False, "b" if step >= at else "a", step == at)
        for step in range(steps)
        for at in shift_steps
    ]
    return RolloutWindow(transitions, {}, [range(world, worlds * steps, worlds) for world in range(worlds)])


def test_a_shift_all_worlds_share_is_told_once() -> None:
    assert ShiftDetector()(several_worlds(3, 3)) == [
        {"previous": "a", "current": "b", "origin": None, "step": 3}
    ]


def test_a_shift_of_one_world_is_told_with_the_world_in_step_order() -> None:
    assert ShiftDetector()(several_worlds(4, 2)) == [
        {"previous": "a", "current": "b", "origin": None, "step": 2, "world": 1},
        {"previous": "a", "current": "b", "origin": None, "step": 4, "world": 0},
    ]


def test_a_first_step_is_no_shift_and_a_window_edge_hides_none() -> None:
    detector = ShiftDetector(ScheduledRegime(RegimeSchedule.from_dict(CYCLE)))
    first = RolloutWindow([Transition(0, 0, 0, 1.0, False, False, "a", True)])
    second = RolloutWindow([Transition(1, 0, 0, 1.0, False, False, "b", True)])
    assert detector(first) == []
    assert [shift["step"] for shift in detector(second)] == [1]
    assert detector(RolloutWindow([Transition(2, 0, 0, 1.0, False, False, "b", False)])) == []


def test_several_worlds_are_driven_recorded_and_told_alike(tmp_path: Path) -> None:
    env = SyncVectorEnv([World, World, World], autoreset_mode=AutoresetMode.DISABLED)
    learner = Learner()
    result = run_experiment(config(tmp_path, regime=scheduled()), env=env, algorithm=learner)
    assert result.steps == 12
    assert len({(row["world"], row["step"]) for row in rows(tmp_path)}) == 36
    assert [one["step"] for one in learner.told if isinstance(one, dict)] == [4, 7]
    assert World.closed == ["", "", ""]


# ---- providers and rewards


def test_the_provider_is_bound_where_it_can_be() -> None:
    bound = []

    class Binding(World):
        def bind_regime(self, provider: Any) -> None:
            bound.append(provider)

    axes = {"regimes": [{"regime_id": "a", "axes": {"gravity": 1.0}}]}
    run_experiment(
        config(regime=scheduled(axes)), env=gymnasium.wrappers.TimeLimit(Binding(), 99), algorithm=Learner()
    )
    assert [provider.regime_id(0) for provider in bound] == ["a"]


def test_axes_that_nobody_applies_are_refused(tmp_path: Path) -> None:
    axes = {
        "regimes": [{"regime_id": "a", "duration_steps": 1}, {"regime_id": "b", "axes": {"gravity": 1.0}}]
    }
    with pytest.raises(ConfigError, match="'b' sets 'gravity', and nothing in the environment applies it"):
        run_experiment(config(tmp_path, regime=scheduled(axes)))
    assert World.closed == [""]
    assert list(tmp_path.iterdir()) == []


def test_a_reward_spec_scores_and_its_components_are_recorded(tmp_path: Path) -> None:
    terms = [{"component": "field", "params": {"field": "profit"}, "weight": 2}]
    environment = {"kwargs": {"info": {"trace": {"profit": 3.0}}}}
    reward = {"spec": "weighted", "params": {"terms": terms}}
    run_experiment(config(tmp_path, environment=environment, reward=reward))
    assert [(row["reward"], row["reward_components"], row["profit"]) for row in rows(tmp_path)] == [
        (6.0, {"profit": 6.0}, 3.0)
    ] * 12


def test_a_reward_that_can_read_nothing_is_an_error_on_the_first_step(tmp_path: Path) -> None:
    reward = {
        "spec": "weighted",
        "params": {"terms": [{"component": "field", "params": {"field": "profit"}}]},
    }
    with pytest.raises(RewardSpecError, match="World has none of them"):
        run_experiment(config(tmp_path, reward=reward))
    assert World.closed == [""]


def test_a_reward_spec_for_a_vector_environment_is_refused_and_it_is_closed() -> None:
    reward = {
        "spec": "weighted",
        "params": {"terms": [{"component": "field", "params": {"field": "profit"}}]},
    }
    env = SyncVectorEnv([World, World], autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(ConfigError, match=r"not a single gymnasium\.Env"):
        run_experiment(config(reward=reward), env=env, algorithm=Learner())
    assert World.closed == ["", ""]


# ---- traces in the way


def test_an_existing_trace_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    run_experiment(config(tmp_path))
    before = (tmp_path / "run" / "traces.jsonl").read_bytes()
    World.built.clear()
    with pytest.raises(TraceExistsError):
        run_experiment(config(tmp_path))
    assert World.built == []
    assert (tmp_path / "run" / "traces.jsonl").read_bytes() == before


def test_an_existing_trace_closes_the_environment_passed_in(tmp_path: Path) -> None:
    run_experiment(config(tmp_path))
    with pytest.raises(TraceExistsError):
        run_experiment(config(tmp_path), env=World(fails_in="mine"))
    assert World.closed == ["", "mine"]


def test_overwriting_replaces_the_trace(tmp_path: Path) -> None:
    run_experiment(config(tmp_path))
    run_experiment(config(tmp_path, rollout={"total_steps": 3}), trace_mode="overwrite")
    assert len(rows(tmp_path)) == 3


@pytest.mark.parametrize(
    "sections",
    [
        {"environment": {"kwargs": {"fails_in": "build"}}},
        {"environment": {"kwargs": {"fails_in": "reset"}}},
        {"algorithm": {"name": "policyless"}},
        {"algorithm": {"kwargs": {"nonsense": 1}}},
        {"reward": {"spec": "weighted", "params": {"terms": []}}},
    ],
    ids=str,
)
def test_a_run_that_cannot_begin_neither_replaces_a_trace_nor_leaves_one(
    tmp_path: Path, sections: dict[str, Any]
) -> None:
    fresh, used = tmp_path / "fresh", tmp_path / "used"
    run_experiment(config(used))
    before = {path: path.read_bytes() for path in (used / "run").rglob("*") if path.is_file()}
    for output_dir in (fresh, used):
        with pytest.raises((InputError, RunError)):
            run_experiment(config(output_dir, **sections), trace_mode="overwrite")
    assert {path: path.read_bytes() for path in (used / "run").rglob("*") if path.is_file()} == before
    assert not fresh.exists()


def test_a_document_of_somebodys_own_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    mine = tmp_path / "run" / CONFIG_FILE
    mine.write_text("environment: {id: CartPole-v1} # my notes\n")
    with pytest.raises(ConfigError, match="written by no run"):
        run_experiment(config(tmp_path))
    assert mine.read_text() == "environment: {id: CartPole-v1} # my notes\n"
    assert World.built == []


def test_a_trace_path_of_its_own_gets_the_trace_and_nothing_else(tmp_path: Path) -> None:
    mine = tmp_path / CONFIG_FILE
    mine.write_text("mine")
    result = run_experiment(config(), trace_path=tmp_path / "t.jsonl")
    assert result.trace_path == tmp_path / "t.jsonl"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [CONFIG_FILE, "t.jsonl"]
    assert mine.read_text() == "mine"


def test_a_document_cut_short_by_a_full_disk_stands_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for left in ("", "# Written by"):
        (tmp_path / "run" / CONFIG_FILE).write_text(left)
        run_experiment(config(tmp_path), trace_mode="overwrite")
        assert (tmp_path / "run" / CONFIG_FILE).read_text().startswith("# Written by a run")


def test_a_document_that_cannot_be_written_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, *args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(TraceError, match=r"config\.yaml: cannot be written: No space left.*; choose another"):
        run_experiment(config(tmp_path))
    assert list((tmp_path / "run").iterdir()) == []
    assert World.closed == [""]


def test_a_file_in_the_output_dirs_place_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(TraceError, match="is not a directory; choose another output_dir"):
        run_experiment(config(tmp_path / "runs"))
    assert World.built == []


# ---- closed whatever happens


@pytest.mark.parametrize(
    ("kwargs", "algorithm", "kind", "message"),
    [
        ({"fails_in": "reset"}, {}, EnvironmentFailedError, "World failed to reset before step 0"),
        ({"fails_at": 7}, {}, EnvironmentFailedError, "World failed at step 7: OSError"),
        ({"fails_at": 7, "fails_in": "interrupt"}, {}, KeyboardInterrupt, "^$"),
        ({}, {"fails_in": "update"}, RunError, r"Learner\.update failed after step 4: ValueError: diverged"),
        (
            {},
            {"fails_in": "shift"},
            RunError,
            r"Learner\.on_regime_shift failed after step 4: ValueError: no anchor",
        ),
        ({}, {"answer": 3}, RunError, r"Learner\.update failed after step 4: TypeError"),
        ({}, {"answer": "x"}, RunError, r"Learner\.update failed after step 4: TypeError"),
        ({"fails_in": "close"}, {}, EnvironmentFailedError, "World failed to close: OSError: stuck"),
    ],
    ids=str,
)
@pytest.mark.parametrize("passed_in", [False, True], ids=["built", "passed in"])
def test_the_environment_is_closed_once(
    tmp_path: Path,
    kwargs: dict[str, Any],
    algorithm: dict[str, Any],
    kind: type[BaseException],
    message: str,
    passed_in: bool,
) -> None:
    env = World(**kwargs) if passed_in else None
    sections = {"environment": {"kwargs": kwargs}, "algorithm": {"kwargs": algorithm}, "regime": scheduled()}
    with pytest.raises(kind, match=message):
        run_experiment(config(tmp_path, **sections), env=env)
    assert World.closed == [kwargs.get("fails_in", "")]
    if "fails_at" in kwargs:
        assert [row["step"] for row in rows(tmp_path)] == list(range(7))


def test_a_failure_to_close_does_not_hide_why_the_run_ended() -> None:
    with pytest.raises(EnvironmentFailedError, match="at step 2: OSError: the cable is out") as caught:
        run_experiment(config(environment={"kwargs": {"fails_at": 2, "fails_in": "close"}}))
    assert caught.value.__notes__ == ["closing the environment failed too: OSError: stuck"]


def test_a_window_callback_that_raises_closes_too() -> None:
    def stop(report: WindowReport) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(config(), on_window=stop)
    assert World.closed == [""]


@pytest.mark.parametrize("reward", [math.nan, None, "1.0"], ids=str)
def test_a_reward_that_is_no_number_stops_with_its_row_written(tmp_path: Path, reward: Any) -> None:
    class Ill(World):
        def step(self, action: Any) -> Any:
            observation, paid, *rest = super().step(action)
            return (observation, reward if self.count == 7 else paid, *rest)

    with pytest.raises(NonFiniteRewardError, match="at step 6"):
        run_experiment(config(tmp_path), env=Ill(), algorithm=Learner())
    assert [row["reward"] for row in rows(tmp_path)] == [1.0] * 6 + [None]
    assert World.closed == [""]


# ---- what a document may not name


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"algorithm": {"name": "policyless"}}, "algorithm: object: the algorithm .* has no update"),
        (
            {"algorithm": {"kwargs": {"answers": 1}}},
            r"algorithm\.kwargs\.answers: Learner takes no 'answers'; did you",
        ),
        ({"algorithm": {"policy": {"factory": "parts:Learner"}}}, "'learner' takes no policy; leave it out"),
        ({"regime": {"provider": "scheduled"}}, r"regime\.params: ScheduledRegime needs 'schedule'"),
        (
            {"reward": {"spec": "parts:policyless"}},
            "reward.spec: 'parts:policyless' gave a object, not a RewardSpec",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named_before_the_first_step(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run_experiment(config(**sections))
    assert len(World.closed) == len(World.built)


def test_a_policy_that_cannot_act_is_named() -> None:
    learner = Learner()
    learner.policy = object()  # type: ignore[assignment]
    with pytest.raises(ConfigError, match=r"algorithm: Learner: the algorithm's policy .* has no act\(\)"):
        run_experiment(config(), algorithm=learner)


def test_an_algorithm_that_cannot_give_its_policy_is_named() -> None:
    broken = type("Broken", (Minimal,), {"policy": property(lambda self: 1 / 0, lambda self, value: None)})
    with pytest.raises(ConfigError, match=r"Broken\.policy cannot be had: ZeroDivisionError"):
        run_experiment(config(), algorithm=broken())
    assert len(World.closed) == len(World.built)


def test_a_missing_module_is_named() -> None:
    with pytest.raises(PluginError, match="no_such_module"):
        run_experiment(config(environment={"id": "no_such_module:World"}))


def test_an_update_that_returns_no_mapping_is_told_what_to_return(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Learner, "update", lambda self, window: None)
    with pytest.raises(RunError, match=r"Learner\.update failed after step 4: .*returned None; return a map"):
        run_experiment(config())
