"""A small text world that any language model can be tried on: tickets come in, a team is named.

Every step is one ticket, `ticket b`, to be answered with a JSON object such as `{"to":"c"}`. Which team
is right depends on the configuration: attribute `rotation` says how far along the teams a ticket of
each kind is passed. Nothing tells the agent when it changes. The world has no end; a ticket is
followed by the next. An answer that is no such object is refused, but earns something for as far as it
spells one, so that even a randomly initialized model finds its way. Nothing here imports torch.

Importing this module registers `skyfall/Dispatch-v0` with Gymnasium, which does so by itself for
`gymnasium.make("skyfall_torch.dispatch:skyfall/Dispatch-v0")`.
"""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from skyfall_core.envs import AttributeShift
from skyfall_core.errors import ConfigError
from skyfall_core.world_state import generator_state, restore_generator

__all__ = ["Dispatch", "DispatchWorlds", "spelled_share"]

TEAMS = "abcd"
FORM_CREDIT, TEAM_CREDIT, UNFINISHED_TEAM_CREDIT = 0.2, 0.8, 0.4


def spelled_share(text: str, answer: str) -> float:
    """The share of `answer` that `text` spells before it goes wrong, from 0 to 1."""
    spelled = takewhile(lambda pair: pair[0] == pair[1], zip(text, answer, strict=False))
    return len(list(spelled)) / len(answer)


class Dispatch(gymnasium.Env[str, Any]):
    """One stream of tickets.

    The reward has two components, which `info["reward_components"]` holds. `form`: 0.2 for an object
    that names a team, less for text that spells only the beginning of one. `team`: 0.8 if the team is
    the right one, half of it while the object is not closed.

    Args:
        teams: How many teams there are, 2 to 4.
        rotation: Initial value of the attribute that configurations change.
        misfiled: Share of tickets, 0 to 1, whose team is drawn at random whatever they say, so that no
            routing is right every time and a single surprise proves nothing.

    Attributes:
        rotation: A ticket of kind i belongs to team (i + rotation) mod teams.

    Raises:
        ConfigError: If `teams` or `misfiled` is out of range.
    """

    def __init__(self, teams: int = 4, rotation: int = 0, misfiled: float = 0.0) -> None:
        if not 2 <= teams <= len(TEAMS):
            raise ConfigError(f"teams {teams!r}: expected 2 to {len(TEAMS)}")
        if not 0 <= misfiled <= 1:
            raise ConfigError(f"misfiled {misfiled!r}: expected a share, 0 to 1")
        self.rotation = rotation
        self._teams = TEAMS[:teams]
        self._misfiled = misfiled
        self._kind = 0
        self._detour = 0
        self.observation_space = spaces.Text(16, charset=frozenset("ticket " + TEAMS))
        self.action_space = spaces.Text(min_length=0, max_length=4096)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """The first ticket."""
        super().reset(seed=seed, options=options)
        return self._next_ticket(), {}

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Score an answer, a mapping or whatever text it was, and hand out the next ticket."""
        form, team = self._score(action)
        info = {"reward_components": {"form": form, "team": team}}
        return self._next_ticket(), form + team, False, False, info

    def save_state(self) -> dict[str, Any]:
        """The ticket in hand, where it goes, the rotation and the state of the draws."""
        return {
            "kind": self._kind,
            "detour": self._detour,
            "rotation": self.rotation,
            "random": generator_state(self.np_random),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on with the ticket that was in hand."""
        self._kind, self.rotation = int(state["kind"]), int(state["rotation"])
        self._detour = int(state.get("detour", 0))  # a state from before tickets were misfiled has none
        self.np_random = restore_generator(state["random"])

    def _score(self, action: Any) -> tuple[float, float]:
        right = self._teams[(self._kind + self.rotation + self._detour) % len(self._teams)]
        if isinstance(action, Mapping):
            named = action.get("to")
            if named not in [*self._teams]:
                return 0.0, 0.0
            return FORM_CREDIT, (TEAM_CREDIT if named == right else 0.0)
        text = str(action)
        share = max(spelled_share(text, f'{{"to":"{team}"}}') for team in self._teams)
        opened = text.startswith(f'{{"to":"{right}')
        return FORM_CREDIT * share, (UNFINISHED_TEAM_CREDIT if opened else 0.0)

    def _next_ticket(self) -> str:
        self._kind = int(self.np_random.integers(len(self._teams)))
        if self._misfiled:  # else no draw: the tickets of a seed stay what they were
            strays = self.np_random.random() < self._misfiled
            self._detour = int(self.np_random.integers(len(self._teams))) if strays else 0
        return f"ticket {self._teams[self._kind]}"


class DispatchWorlds(SyncVectorEnv):
    """Several streams of tickets under one schedule, so that a policy answers them in one batch.

    Args:
        worlds: How many streams.
        teams: How many teams there are, 2 to 4.
        misfiled: Share of tickets whose team is drawn at random.
    """

    def __init__(self, worlds: int = 16, teams: int = 4, misfiled: float = 0.0) -> None:
        super().__init__(
            [lambda: AttributeShift(Dispatch(teams, misfiled=misfiled)) for _ in range(worlds)],
            autoreset_mode=AutoresetMode.DISABLED,
        )

    def bind_regime(self, provider: Any) -> None:
        """Apply the provider's configurations in every stream."""
        for env in self.envs:
            env.get_wrapper_attr("bind_regime")(provider)


gymnasium.register("skyfall/Dispatch-v0", entry_point="skyfall_torch.dispatch:Dispatch")
