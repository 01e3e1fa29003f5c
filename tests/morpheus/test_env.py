"""MorpheusEnv on the local world: Gymnasium's rules, one long life, invalid actions, regimes, ownership."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyfall_core.config import parse_config
from skyfall_core.documents import Document
from skyfall_core.errors import ConfigError
from skyfall_core.experiment import run_experiment
from skyfall_core.regime import ScheduledRegime
from skyfall_morpheus.client import MorpheusClient
from skyfall_morpheus.configurations import CANONICAL, canonical
from skyfall_morpheus.env import MorpheusEnv
from skyfall_morpheus.errors import MorpheusError, WorldConfigError
from skyfall_morpheus.observation import ITEMS_SHOWN, TEXT_LIMIT, compact, gather
from skyfall_morpheus.scripted import ScriptedPolicy
from skyfall_morpheus.spaces import json_size
from skyfall_morpheus.tools import TOOL_NAMES
from skyfall_morpheus.transport import LocalTransport, local_server


def simulation_of(env: MorpheusEnv) -> Any:
    transport = env.client._transport
    assert isinstance(transport, LocalTransport)
    return transport.api.worlds.by_id[env.world_id].simulation


def one_regime(name: str) -> ScheduledRegime:
    return ScheduledRegime({"regimes": [{"regime_id": name, "axes": CANONICAL[name]}]})


def test_gymnasiums_checker_passes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # the checker wants vectors for learners that need vectors; this one is for language
        warnings.filterwarnings(
            "ignore", message=".*observation space.*|.*action space.*", category=UserWarning
        )
        check_env(MorpheusEnv(), skip_render_check=True)


def test_is_registered_with_gymnasium() -> None:
    env = gym.make("skyfall_morpheus.registration:skyfall/Morpheus-v0", disable_env_checker=True)
    assert isinstance(env.unwrapped, MorpheusEnv)
    env.reset(seed=1)
    env.close()


def rollout(seed: int, steps: int = 60) -> list[str]:
    env = MorpheusEnv()
    env.bind_regime(canonical(duration_steps=10))
    policy = ScriptedPolicy()
    observation, _ = env.reset(seed=seed)
    rows = []
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(policy.act(observation))
        rows.append(json.dumps([observation, reward, terminated, truncated, info], sort_keys=True))
    env.close()
    return rows


def test_a_seed_gives_the_same_life_and_another_seed_another() -> None:
    assert rollout(1) == rollout(1)
    assert rollout(1) != rollout(2)


def document(tmp_path: Path, seed: int, **environment: Any) -> Any:
    data = {
        "environment": {"id": "morpheus", "kwargs": {"episode_steps": 20}, **environment},
        "algorithm": {"name": "random", "kwargs": {"seed": seed}},
        "rollout": {"window_steps": 30, "total_steps": 90},
        "regime": {"provider": "morpheus-canonical", "params": {"duration_steps": 15}},
        "run": {"name": "r", "seed": seed, "output_dir": str(tmp_path)},
    }
    return parse_config(Document(data, tmp_path / "run.yaml"))


def test_two_runs_with_one_seed_write_equal_traces(tmp_path: Path) -> None:
    traces = []
    for number, seed in enumerate((1, 1, 2)):
        result = run_experiment(document(tmp_path / str(number), seed))
        assert result.trace_path is not None
        traces.append(result.trace_path.read_bytes())
    assert traces[0] == traces[1]
    assert traces[0] != traces[2]
    rows = [json.loads(line) for line in traces[0].splitlines()]
    assert list(dict.fromkeys(row["regime_id"] for row in rows)) == [*CANONICAL, "baseline_revisit"]
    assert [row["step"] for row in rows if row["boundary"]] == [15, 30, 45, 60, 75]
    assert rows[-1]["origin"] == "baseline"
    assert set(rows[0]["reward_inputs"]) >= {"net_delta", "on_time", "tickets_closed"}


def test_several_worlds_run_from_a_document(tmp_path: Path) -> None:
    result = run_experiment(document(tmp_path, 3, worlds=3))
    assert result.trace_path is not None
    rows = [json.loads(line) for line in result.trace_path.read_text().splitlines()]
    assert {(row["world"], row["step"]) for row in rows} == {(w, s) for w in range(3) for s in range(90)}
    assert len({tuple(r["reward"] for r in rows if r["world"] == w) for w in range(3)}) == 3


def test_a_world_outlives_windows_and_truncations() -> None:
    env = MorpheusEnv(episode_steps=20)
    policy = ScriptedPolicy()
    observation, _ = env.reset(seed=4)
    world = simulation_of(env)
    truncations, times, orders, booked = 0, [], [], []
    for _ in range(5):
        for _ in range(25):
            observation, _, _, truncated, _ = env.step(policy.act(observation))
            truncations += truncated
        assert simulation_of(env) is world, "the world was replaced"
        times.append(world.now)
        orders.append(world.orders.total())
        books = world.ledger
        booked.append(sum(total[0] + total[1] - total[2] for total in books.totals.values()))
        assert books.net == pytest.approx(100_000 + booked[-1])
    assert truncations == 6
    assert times == [250.0 * (window + 1) for window in range(5)]
    assert orders == sorted(orders)
    assert orders[-1] > orders[0]
    env.close()


def test_the_wire_and_the_overview_give_one_and_the_same_observation() -> None:
    env = MorpheusEnv()
    env.bind_regime(one_regime("edi_spike"))
    policy = ScriptedPolicy("workforce_constrained")
    observation, _ = env.reset(seed=5)
    last = {"tool": "x", "status": 200, "error": "", "result": ""}
    for step in range(120):
        observation, *_ = env.step(policy.act(observation))
        if step % 20 == 0:
            fast = compact(gather(env.client, env.world_id), last)
            extensions, env.client._extensions = env.client._extensions, frozenset()
            slow = compact(gather(env.client, env.world_id), last)
            env.client._extensions = extensions
            assert fast == slow
    assert fast["edi"]["errored"] > 0
    assert fast["errors"]
    env.close()


@pytest.mark.parametrize("configuration", list(CANONICAL))
def test_observations_stay_small_however_busy_the_world(configuration: str) -> None:
    env = MorpheusEnv()
    env.bind_regime(one_regime(configuration))
    observation, _ = env.reset(seed=6)
    for _ in range(150):  # nobody works, so everything piles up
        observation, *_ = env.step("wait")
        assert env.observation_space.contains(observation)
    assert len(observation["text"]) <= TEXT_LIMIT
    assert (json_size(observation["state"]) or 10**9) < 8_000
    assert len(observation["state"]["orders"]["to_allocate"]) == ITEMS_SHOWN
    env.close()


def test_the_text_shows_what_is_urgent() -> None:
    env = MorpheusEnv(observe="text")
    env.bind_regime(one_regime("edi_spike"))
    text, _ = env.reset(seed=7)
    for _ in range(30):
        text, *_ = env.step({"tool": "wait"})
    assert isinstance(text, str)
    assert env.observation_space.contains(text)
    stuck = env.latest["state"]["edi"]
    assert f"stuck {stuck['errored']} {stuck['items'][0]['id']}" in text
    assert "last wait 200" in text
    env.close()


def test_raw_logs_come_on_request() -> None:
    env = MorpheusEnv(raw_logs=3)
    env.bind_regime(one_regime("edi_spike"))
    observation, _ = env.reset(seed=7)
    for _ in range(30):
        observation, *_ = env.step("wait")
    assert len(observation["state"]["logs"]) == 3
    assert env.observation_space.contains(observation)
    env.close()


def test_tools_paths_and_texts_say_the_same() -> None:
    def allocated(action: Any) -> Any:
        env = MorpheusEnv()
        observation, _ = env.reset(seed=8)
        while not observation["state"]["orders"]["to_allocate"]:
            observation, *_ = env.step("wait")
        first = observation["state"]["orders"]["to_allocate"][0]
        given = action(first, env.world_id)
        observation, _, _, _, info = env.step(given)
        env.close()
        return (
            info["invalid_action"],
            observation["state"]["orders"]["pending"],
            observation["state"]["ledger"],
        )

    def path(order: Any, world: str) -> Any:
        return {
            "method": "PUT",
            "path": f"/{world}/wms/outbound-orders/:id/lines/1/allocate",
            "params": {"id": order["id"]},
            "body": {"allocatedQuantity": order["quantity"]},
        }

    by_tool = allocated(lambda order, world: {"tool": "allocate_order"})
    assert by_tool[0] is False
    assert by_tool == allocated(lambda order, world: {"tool": "allocate_order", "id": order["id"]})
    assert by_tool == allocated(lambda order, world: "allocate_order")
    assert by_tool == allocated(lambda order, world: json.dumps({"tool": "allocate_order"}))
    assert by_tool == allocated(path)


INVALID = [
    {"path": "/world/:worldId/chaos"},
    {"path": "/:worldId/ledger/increment", "method": "PATCH", "body": {"cashDelta": 1e6}},
    {"path": "/world/act", "method": "POST", "body": {"path": "/x"}},
    {"tool": "explode"},
    {"tool": "ship_order"},
    {"tool": "ship_order", "id": 3},
    {"tool": "ship_order", "id": "O999"},
    {"tool": "ship_order", "id": "../ledger"},
    {"tool": "allocate_order", "by": ["due"]},
    {"tool": ["wait"]},
    {"tool": "wait", "headers": {}},
    {},
    [],
    None,
    7,
    "",
    "{not json",
    "please ship everything",
    "[" * 5000,
    '{"a":' * 5000,
    {"path": "/:worldId/edi", "query": {"status": object()}},
]


@pytest.mark.parametrize("action", INVALID, ids=[str(number) for number in range(len(INVALID))])
def test_an_invalid_action_costs_a_step_and_changes_nothing_else(action: Any) -> None:
    waiting, trying = MorpheusEnv(), MorpheusEnv()
    waiting.reset(seed=9)
    trying.reset(seed=9)
    before = simulation_of(trying).now
    expected, *_ = waiting.step("wait")
    observation, reward, terminated, truncated, info = trying.step(action)
    assert info["invalid_action"] is True
    assert (terminated, truncated) == (False, False)
    assert reward == pytest.approx(0.25 * -0.2)
    assert simulation_of(trying).now == before + 10.0
    for part in ("ledger", "edi", "orders", "tickets", "time"):
        assert observation["state"][part] == expected["state"][part]
    assert trying.observation_space.contains(observation)
    waiting.close()
    trying.close()


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(TOOL_NAMES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tool", "id", "by", "path", "method", "body", "params"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


def test_no_action_whatever_raises_or_reaches_the_books() -> None:
    env = MorpheusEnv()
    env.reset(seed=10)
    world = simulation_of(env)

    @settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(ANYTHING)
    def attempt(action: Any) -> None:
        env.step(action)
        assert "manual" not in world.ledger.totals
        assert simulation_of(env) is world
        assert world.edi_interval == 40.0

    attempt()
    env.close()


def test_a_ticket_closes_only_after_its_verification() -> None:
    env = MorpheusEnv()
    env.bind_regime(ScheduledRegime({"regimes": [{"regime_id": "dup", "axes": {
        "chaos_probability": 1.0, "chaos_scenarios": {"duplicate_data": 1.0}}}]}))  # fmt: skip
    observation, _ = env.reset(seed=11)
    while not observation["state"]["tickets"]["items"]:
        observation, *_ = env.step("wait")
    ticket = observation["state"]["tickets"]["items"][0]["id"]
    close = {"tool": "close_ticket", "id": ticket}
    assert env.step(close)[-1]["invalid_action"] is True
    env.step({"tool": "verify_ticket", "id": ticket})
    assert env.step(close)[-1]["invalid_action"] is True, "a failed verification let the ticket close"
    env.step({"tool": "archive_edi"})
    observation, *_ = env.step({"tool": "verify_ticket", "id": ticket})
    assert observation["state"]["tickets"]["items"][0]["verified"] is True
    info = env.step(close)[-1]
    assert info["invalid_action"] is False
    assert info["trace"]["reward_inputs"]["tickets_closed"] == 1.0
    env.close()


def test_configurations_are_applied_and_undone_through_the_api() -> None:
    env = MorpheusEnv()
    env.bind_regime(ScheduledRegime({"regimes": [
        {"regime_id": "calm", "duration_steps": 3, "axes": {}},
        {"regime_id": "hard", "duration_steps": 3, "axes": {
            "workers": 2, "edi_interval_minutes": 9.0, "cash_level": -500.0, "payables_offset": 70.0,
            "chaos_probability": 0.5, "chaos_scenarios": {"rate_limit": 1.0}, "tickets": False,
            "schedules_paused": True, "edi_burst": 2}},
        {"regime_id": "calm_again", "alias_of": "calm"}]}))  # fmt: skip
    _, info = env.reset(seed=12)
    world = simulation_of(env)
    assert info["regime"] == {"id": "calm", "boundary": False, "origin": None}
    seen = [env.step("wait")[-1] for _ in range(3)]
    assert [one["regime"]["id"] for one in seen] == ["calm"] * 3
    documents = world.documents.total()
    info = env.step("wait")[-1]
    assert info["regime"] == {"id": "hard", "boundary": True, "origin": None}
    assert (world.workers, world.edi_interval, world.paused, world.tickets_enabled) == (2, 9.0, True, False)
    assert world.chaos["probability"] == 0.5
    assert world.ledger.cash == -500.0
    assert world.documents.total() == documents + 2
    assert abs(info["trace"]["reward_inputs"]["net_delta"]) < 400, "the shift itself was rewarded"
    env.step("wait")
    env.step("wait")
    info = env.step("wait")[-1]
    assert info["regime"] == {"id": "calm_again", "boundary": True, "origin": "calm"}
    assert (world.workers, world.edi_interval, world.paused, world.tickets_enabled) == (6, 40.0, False, True)
    assert world.chaos["enabled"] is False
    assert world.ledger.cash == pytest.approx(100_000.0)
    env.close()


def test_an_axis_nobody_applies_is_refused_when_bound() -> None:
    env = MorpheusEnv()
    with pytest.raises(ConfigError, match="did you mean 'workers'"):
        env.bind_regime(ScheduledRegime({"regimes": [{"regime_id": "x", "axes": {"worker": 1}}]}))
    env.close()


def test_custom_axes_are_calls_written_in_the_document() -> None:
    axis = {
        "method": "PATCH",
        "path": "/world/:worldId",
        "body": {"realHoursPerSimDay": "$value"},
        "unset": 2.0,
    }
    env = MorpheusEnv(axes={"speed": axis})
    env.bind_regime(ScheduledRegime({"regimes": [{"regime_id": "fast", "axes": {"speed": 0.5}}]}))
    env.reset(seed=13)
    assert env.client.get_world(env.world_id).real_hours_per_sim_day == 0.5
    env.close()
    for wrong in ({**axis, "methd": 1}, {"method": "PUT"}, {**axis, "method": "GET"}, 3):
        with pytest.raises(ConfigError, match=r"axes\.speed"):
            MorpheusEnv(axes={"speed": wrong})
    with pytest.raises(ConfigError, match="built in"):
        MorpheusEnv(axes={"workers": axis})


def shared_client(name: str) -> MorpheusClient:
    return MorpheusClient(f"local:{name}")


def test_worlds_it_made_are_deleted_and_attached_ones_are_not() -> None:
    operator = shared_client("ownership")
    kept = operator.create_world("operators-own", "process-outbound").id
    with MorpheusEnv("local:ownership", world_id=kept) as attached:
        attached.reset(seed=1)
        attached.step("wait")
    made = MorpheusEnv("local:ownership", name="made")
    made.reset(seed=1)
    assert len(list(operator.worlds())) == 2
    made.close()
    made.close()
    assert [world.id for world in operator.worlds()] == [kept]
    left = MorpheusEnv("local:ownership", name="left", keep_world=True)
    left.reset(seed=1)
    left.close()
    assert {world.id for world in operator.worlds()} == {kept, left.world_id}


def test_an_attached_world_is_left_as_it_is_by_reset() -> None:
    operator = shared_client("attach")
    world_id = operator.create_world("attach-me", "process-outbound").id
    first = MorpheusEnv("local:attach", world_id=world_id)
    first.reset(seed=1)
    for _ in range(20):
        first.step("wait")
    time = first.latest["state"]["time"]
    first.close()
    again = MorpheusEnv("local:attach", world_id=world_id)
    observation, _ = again.reset(seed=1)
    assert observation["state"]["time"] == time, "attaching restarted the world"
    again.close()


@pytest.mark.parametrize(
    ("mode", "same_id", "same_world"),
    [("keep", True, True), ("restart", True, False), ("recreate", True, False)],
)
def test_reset_does_what_it_was_configured_to_do(mode: str, same_id: bool, same_world: bool) -> None:
    env = MorpheusEnv(on_reset=mode)
    env.reset(seed=1)
    before, world = env.world_id, simulation_of(env)
    for _ in range(5):
        env.step("wait")
    observation, _ = env.reset(seed=2)
    assert (env.world_id == before) is same_id
    assert (simulation_of(env) is world) is same_world
    assert observation["state"]["time"].endswith("00:50:00.000Z" if same_world else "00:00:00.000Z")
    env.close()


def test_a_world_deleted_under_the_agent_is_a_clear_error() -> None:
    env = MorpheusEnv("local:deleted")
    env.reset(seed=1)
    shared_client("deleted").delete_world(env.world_id)
    with pytest.raises(MorpheusError, match=r"404.*not found"):
        env.step("wait")
    env.close()


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"episode_step": 3}, "did you mean 'episode_steps'"),
        ({"on_reset": "restrt"}, "did you mean 'restart'"),
        ({"observe": "txt"}, "did you mean 'text'"),
        ({"episode_steps": 0}, "must be positive"),
        ({"raw_logs": 1000}, "outside"),
        ({"connection": {"atempts": 3}}, r"connection\.atempts"),
        ({"rules": {"tick": 3}}, r"rules\.tick"),
        ({"world_id": "nope"}, "no world 'nope'"),
        ({"base_url": "ftp://x"}, "no http"),
        ({"base_url": "localhost:8282"}, "no http"),
    ],
)
def test_settings_that_cannot_hold_are_named(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(WorldConfigError, match=message):
        MorpheusEnv(**settings_)


def test_the_run_is_described_and_the_bounds_of_an_episode_reward_hold() -> None:
    env = MorpheusEnv(episode_steps=50)
    env.bind_regime(one_regime("baseline"))
    policy = ScriptedPolicy()
    observation, _ = env.reset(seed=14)
    assert env.describe_run()["world_id"] == env.world_id
    service = []
    for _ in range(200):
        observation, reward, _, truncated, info = env.step(policy.act(observation))
        parts = info["reward_components"]
        assert reward == pytest.approx(sum(parts.values()))
        assert abs(parts["ledger"]) <= 0.25
        assert abs(parts["process"]) <= 0.25
        if "service" in parts:
            service.append(truncated)
    assert service == [True] * len(service)
    assert len(service) >= 3
    env.close()
    with pytest.raises(WorldConfigError, match="closed"):
        env.step("wait")


def test_a_step_before_the_first_reset_says_so() -> None:
    env = MorpheusEnv()
    with pytest.raises(WorldConfigError, match="reset"):
        env.step("wait")
    env.close()


def test_the_shared_server_of_a_name_is_one_and_private_ones_are_many() -> None:
    assert local_server("one") is local_server("one")
    assert local_server("") is not local_server("")


def test_samples_of_the_action_space_are_tool_calls() -> None:
    env = MorpheusEnv()
    env.action_space.seed(3)
    drawn = [env.action_space.sample() for _ in range(200)]
    assert {one["tool"] for one in drawn} == set(TOOL_NAMES)
    assert all(env.action_space.contains(one) for one in drawn)
    assert env.action_space.contains("ship_order")
    assert not env.action_space.contains(3)
    assert not env.action_space.contains({"x": np.zeros(3)})
    assert not env.action_space.contains("x" * 30_000)
    env.close()
