"""The text world: its rewards by hand, its streams, and how it comes to Gymnasium."""

import subprocess
import sys

import gymnasium
import pytest

from skyfall_core.errors import ConfigError
from skyfall_core.regime import ScheduledRegime
from skyfall_core.rollout import RolloutCollector
from skyfall_torch.dispatch import Dispatch, DispatchWorlds, spelled_share


@pytest.mark.parametrize(
    ("action", "reward"),
    [
        ({"to": "RIGHT"}, 1.0),
        ({"to": "WRONG"}, 0.2),
        ({"to": "z"}, 0.0),
        ({"to": ["a"]}, 0.0),
        ({"team": "a"}, 0.0),
        ("", 0.0),
        ('{"to":"', 0.2 * 7 / 10),
        ('{"to":"RIGHT', 0.2 * 8 / 10 + 0.4),
        ('{"to":"WRONG', 0.2 * 8 / 10),
        ('{"to":"z"}', 0.2 * 7 / 10),
        ("nonsense", 0.0),
        (17, 0.0),
    ],
    ids=repr,
)
def test_rewards_rise_from_spelling_through_form_to_the_right_team(action, reward):
    env = Dispatch()
    observation, _ = env.reset(seed=1)
    kind = observation.removeprefix("ticket ")
    other = "b" if kind == "a" else "a"
    if isinstance(action, str):
        action = action.replace("RIGHT", kind).replace("WRONG", other)
    elif "to" in (action if isinstance(action, dict) else {}):
        action = {"to": {"RIGHT": kind, "WRONG": other}.get(str(action["to"]), action["to"])}
    _, earned, terminated, truncated, info = env.step(action)
    assert earned == pytest.approx(reward)
    assert sum(info["reward_components"].values()) == pytest.approx(earned)
    assert not terminated
    assert not truncated


def test_the_right_team_rotates_with_the_configuration():
    env = Dispatch(teams=4)
    env.rotation = 1
    observation, _ = env.reset(seed=3)
    following = {"a": "b", "b": "c", "c": "d", "d": "a"}
    for _ in range(8):
        right = following[observation.removeprefix("ticket ")]
        observation, reward, *_ = env.step({"to": right})
        assert reward == 1.0


@pytest.mark.parametrize(
    ("text", "share"), [("", 0), ("ab", 2 / 3), ("abc", 1), ("abcd", 1), ("xbc", 0), ("axc", 1 / 3)]
)
def test_spelled_share_counts_up_to_the_first_mistake(text, share):
    assert spelled_share(text, "abc") == pytest.approx(share)


def test_gymnasium_knows_it_and_its_spaces_hold_what_it_shows():
    env = gymnasium.make("skyfall_torch.dispatch:skyfall/Dispatch-v0", disable_env_checker=True)
    observation, _ = env.reset(seed=0)
    for _ in range(10):
        assert observation in env.observation_space
        observation, *_ = env.step("{}")


@pytest.mark.parametrize("teams", [1, 5])
def test_an_impossible_number_of_teams_is_refused(teams):
    with pytest.raises(ConfigError, match="teams"):
        Dispatch(teams)


@pytest.mark.parametrize("misfiled", [-0.1, 1.1])
def test_an_impossible_share_of_misfiled_tickets_is_refused(misfiled):
    with pytest.raises(ConfigError, match="misfiled"):
        Dispatch(misfiled=misfiled)


def answered_as_filed(env, tickets):
    observation, _ = env.reset(seed=5)
    for _ in range(tickets):
        observation, reward, *_ = env.step({"to": observation.removeprefix("ticket ")})
        yield reward


def test_misfiled_tickets_go_to_a_team_drawn_at_random():
    rewards = list(answered_as_filed(Dispatch(teams=2, misfiled=0.2), 4000))
    wrong = sum(reward < 1 for reward in rewards) / len(rewards)
    assert set(rewards) == {0.2, 1.0}
    # Half of the fifth that is drawn lands with the right team all the same; 5 standard errors.
    assert wrong == pytest.approx(0.1, abs=0.024)


def test_a_restored_world_sends_the_ticket_in_hand_where_it_would_have_gone():
    env, other = Dispatch(misfiled=1.0), Dispatch(misfiled=1.0)
    env.reset(seed=2)
    other.reset(seed=9)
    for _ in range(20):
        other.load_state(env.save_state())
        assert env.step({"to": "a"})[:2] == other.step({"to": "a"})[:2]


def test_several_streams_shift_together_and_are_answered_in_one_batch():
    class Sender:
        def act_batch(self, observations):
            return [{"to": each.removeprefix("ticket ")} for each in observations]

        act = None

    provider = ScheduledRegime(
        {
            "regimes": [
                {"regime_id": "home", "duration_steps": 3, "axes": {"rotation": 0}},
                {"regime_id": "away", "axes": {"rotation": 1}},
            ]
        }
    )
    worlds = DispatchWorlds(worlds=3, teams=2)
    worlds.bind_regime(provider)
    collector = RolloutCollector(worlds, Sender(), window_steps=5, seed=0)
    (window,) = collector.windows(5)
    assert window.rewards == [1.0] * 9 + [0.2] * 6
    assert window.regimes == ["home"] * 9 + ["away"] * 6
    assert [list(stream) for stream in window.streams] == [
        [0, 3, 6, 9, 12],
        [1, 4, 7, 10, 13],
        [2, 5, 8, 11, 14],
    ]


def test_importing_leaves_torch_unimported():
    code = "import sys, skyfall_torch.dispatch; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
