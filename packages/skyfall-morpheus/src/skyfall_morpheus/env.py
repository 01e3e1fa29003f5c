"""A MORPHEUS world as a Gymnasium environment: one agent, one world, tool calls as actions.

Nothing an agent says raises: what is malformed or not allowed becomes an invalid action, which costs
a step of doing nothing. The world outlives episodes; an episode's end only truncates, and what `reset`
does to the world is `on_reset`'s choice. Worlds this environment made are deleted when it closes,
worlds it was attached to never are.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium import spaces

from skyfall_morpheus.acting import Actor
from skyfall_morpheus.axes import AxisApplier
from skyfall_morpheus.brief import brief
from skyfall_morpheus.client import MorpheusClient
from skyfall_morpheus.episode import Episode, counts
from skyfall_morpheus.errors import MorpheusError, ResponseError, WorldConfigError
from skyfall_morpheus.observation import TEXT_LIMIT, compact, gather, render
from skyfall_morpheus.randomness import generator_of, generator_state
from skyfall_morpheus.rewards import operational
from skyfall_morpheus.settings import MorpheusSettings, Observe, OnReset, client_for, settings_of
from skyfall_morpheus.spaces import ActionSpace, StateSpace
from skyfall_morpheus.tools import TOOL_NAMES

__all__ = ["MorpheusEnv", "MorpheusSettings", "Observe", "OnReset"]

STATE_LIMIT = 16_000
"""Bytes of JSON the observation's state has at most, raw logs not counted."""


class MorpheusEnv(gymnasium.Env[Any, Any]):
    """One world.

    Args:
        base_url: `http(s)://host:port`, `local:` for a private world in this process, or
            `local:NAME` for a world server that everybody in this process shares.
        client: Used instead of one for `base_url`, and closed with the environment.
        **settings: Fields of `MorpheusSettings`.

    Raises:
        WorldConfigError: A setting is unknown or cannot hold, or the world to attach to is not there.
        WorldUnreachableError: Nobody answers at `base_url`.

    Attributes:
        world_id: The world's id; None before the first reset made it.
    """

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012  # Gymnasium's declaration

    def __init__(
        self, base_url: str = "local:", *, client: MorpheusClient | None = None, **settings: Any
    ) -> None:
        self.settings = settings_of(settings)
        self.render_mode = "ansi"
        self.action_space = ActionSpace(TOOL_NAMES)
        state_limit = STATE_LIMIT + 2_000 * self.settings.raw_logs
        text = _PrintableText(TEXT_LIMIT)
        self._shown = Observe(self.settings.observe)
        full = spaces.Dict({"state": StateSpace(state_limit), "text": text})
        self.observation_space = full if self._shown is Observe.FULL else text
        self._axes = AxisApplier(self.settings.axes)
        self._local = base_url.startswith("local:")
        self.client = client or client_for(base_url, self.settings)
        self._actor = Actor(self.client)
        self.world_id = self.settings.world_id
        self._created = False
        self._closed = False
        self._fresh = True
        self._provider: Any = None
        self._label: str | None = None
        self._step = 0
        self._episode = Episode()
        self._overview: dict[str, Any] | None = None
        self._observation: dict[str, Any] = {}
        self._spec = operational()
        try:
            self._check_server()
        except BaseException:
            self.client.close()
            raise

    def bind_regime(self, provider: Any) -> None:
        """Apply a provider's configurations from now on, and report the active one in `info`.

        Raises:
            ConfigError: A configuration sets an axis that nothing here applies.
        """
        for regime in getattr(provider, "regimes", ()):
            self._axes.check(regime.axes)
        self._provider = provider

    def describe_run(self) -> dict[str, Any]:
        """What world the run happened in."""
        return {
            "environment": "morpheus",
            "world_id": self.world_id,
            "layout": self.settings.layout,
            "created": self._created,
            "on_reset": str(self._on_reset.value),
            "episode_steps": self.settings.episode_steps,
            "reward_spec": "morpheus-operational",
        }

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002  # Gymnasium's signature
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, in a world that is made, restarted, recreated or kept.

        Args:
            seed: Seeds the world where it is made or restarted, and starts the count of steps that a
                provider is asked for anew; without one, both go on.
            options: Not used.

        Raises:
            MorpheusError: The server refused or did not answer.
        """
        super().reset(seed=seed)
        self._require_open()
        if seed is not None:
            self._step = 0
        self._prepare_world(seed)
        self._episode = Episode()
        self._actor.verified = {}
        self._label = None if self._step == 0 else self._label
        self._apply_regime()
        self._overview = gather(self.client, self._world)
        last = {"tool": "reset", "status": 200, "error": "", "result": ""}
        return self._observe(last), self._regime_info(boundary=False)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Carry an action out, or let time pass where it cannot be.

        Args:
            action: `{"tool": …}`, `{"path": …, "method": …}`, the same as JSON text, or a tool's name.

        Returns:
            Observation, reward by `morpheus-operational`, never terminated, truncated at an episode's
            end, and `info` with `trace`, `reward_components`, `invalid_action` and `regime`.

        Raises:
            MorpheusError: The world cannot be read any more.
        """
        self._require_open()
        world = self._world
        boundary = self._apply_regime()
        if boundary:  # what the configuration itself did to the books is not the action's doing
            self._overview = gather(self.client, world)
        before = counts(self._overview or {})
        done = self._actor.perform(action, world, self._observation["state"])
        after = self._overview = done.overview or gather(self.client, world)
        inputs = self._episode.inputs(
            before, counts(after), done.kind, succeeded=done.succeeded, invalid=done.invalid
        )
        self._step += 1
        self._episode.steps += 1
        truncated = self.settings.episode_steps is not None and (
            self._episode.steps % self.settings.episode_steps == 0
        )
        trace = {
            "world_time": after.get("time"),
            "tool": done.last["tool"],
            "action_status": done.last["status"],
            "reward_inputs": inputs,
        }
        components = self._spec.score(trace, final=truncated)
        if truncated:
            self._episode.truncate()
        info: dict[str, Any] = {
            "trace": trace,
            "reward_components": components,
            "invalid_action": done.invalid,
            **self._regime_info(boundary=boundary),
        }
        return self._observe(done.last), sum(components.values()), False, truncated, info

    def resume_token(self) -> dict[str, Any]:
        """Where this environment stands, as plain JSON values that `resume` goes on from.

        A world this environment made is in it whole where its server gives snapshots, as the local one
        does. Any other world is only named: it has to be there still, and may have lived on.

        Raises:
            WorldConfigError: There is no world yet.
            MorpheusError: The server refused or did not answer.
        """
        self._require_open()
        world = self._world
        saved = self._created and "snapshot" in self.client.extensions()
        return {
            "version": 1,
            "world_id": world,
            "created": self._created,
            "snapshot": self.client.snapshot(world) if saved else None,
            "step": self._step,
            "episode": self._episode.state(),
            "verified": list(self._actor.verified),
            "label": self._label,
            "axes": self._axes.state(),
            "random": generator_state(self.np_random),
            "last": self._observation["state"]["last"],
        }

    def resume(self, token: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Go on where a token was taken, instead of a first reset; returns what `reset` returns.

        A snapshot brings the world back as it was then, so that what follows equals what would have
        followed. A world that was only named is taken as it is now.

        Args:
            token: What `resume_token` returned, in this process or an earlier one.

        Raises:
            WorldConfigError: The token cannot be used here, or its world is gone.
            MorpheusError: The server refused or did not answer.
        """
        self._require_open()
        if token.get("version") != 1:
            raise WorldConfigError(f"resume: a token of version {token.get('version')!r}; 1 is known here")
        if not self._fresh:
            raise WorldConfigError("resume: this environment has a world already; build a new one")
        self.world_id = str(token["world_id"])
        self._bring_back(token["snapshot"])
        self._created = bool(token["created"])
        self._fresh = False
        self._step, self._label = int(token["step"]), token["label"]
        self._episode = Episode.of(token["episode"])
        self._actor.verified = dict.fromkeys(token["verified"])
        self._axes.load(token["axes"])
        self.np_random = generator_of(token["random"])
        self._overview = gather(self.client, self._world)
        return self._observe(token["last"]), self._regime_info(boundary=False)

    def render(self) -> str:
        """The latest observation as text."""
        return str(self._observation.get("text", ""))

    def close(self) -> None:
        """Delete the world if this environment made it, and give connections back.

        Raises:
            MorpheusError: The world could not be deleted; its id is named.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._created and not self.settings.keep_world and self.world_id is not None:
                self.client.delete_world(self.world_id)
        except MorpheusError as failure:
            failure.add_note(f"world {self.world_id} was left running; delete it by hand")
            raise
        finally:
            self.client.close()

    @property
    def latest(self) -> Mapping[str, Any]:
        """The latest observation in full, `state` and `text`, whatever `observe` says."""
        return self._observation

    @property
    def _world(self) -> str:
        if self.world_id is None:
            raise WorldConfigError("step: there is no world yet; call reset() first")
        return self.world_id

    @property
    def _on_reset(self) -> OnReset:
        if self.settings.on_reset is not None:
            return OnReset(self.settings.on_reset)
        return OnReset.KEEP if self.settings.world_id is not None else OnReset.RESTART

    def _require_open(self) -> None:
        if self._closed:
            raise WorldConfigError("the environment is closed; build a new one")

    def _bring_back(self, snapshot: Mapping[str, Any] | None) -> None:
        if snapshot is not None:
            if "snapshot" not in self.client.extensions():
                raise WorldConfigError(
                    f"resume: world {self.world_id} was saved on a server that takes snapshots back; this "
                    "one does not"
                )
            self.client.restore_world(snapshot)
            return
        try:
            self.client.get_world(self._world)
        except ResponseError as failure:
            if failure.status != 404:
                raise
            raise WorldConfigError(
                f"resume: world {self.world_id} is gone from this server, and the checkpoint holds no copy "
                "of it; runs to be resumed need keep_world: true there, or a world_id to attach to"
            ) from None

    def _check_server(self) -> None:
        """Find out before a run is built whether it can begin."""
        if self._local and self.world_id is None:
            return
        self.client.check_reachable()
        if self.world_id is None:
            return
        try:
            self.client.get_world(self.world_id)
        except ResponseError as failure:
            if failure.status == 404:
                raise WorldConfigError(
                    f"world_id: no world {self.world_id!r} on this server; leave it out to make one"
                ) from None
            raise

    def _prepare_world(self, seed: int | None) -> None:
        mode = self._on_reset
        if mode is OnReset.RECREATE and self._created and not self._fresh:
            self.client.delete_world(self._world)
            self.world_id = None
        if self.world_id is None:
            # In a private server any name is new, and a fixed one keeps runs equal to the byte.
            suffix = "world" if self._local else uuid.uuid4().hex
            name = f"{self.settings.name}-{suffix}"
            self.world_id = self.client.create_world(name, self.settings.layout).id
            self._created = True
            self._axes.forget()
            self._restart(seed)
        elif mode is OnReset.RESTART:
            self._restart(seed)
        self._fresh = False

    def _restart(self, seed: int | None) -> None:
        """Begin the world anew; without a seed, from the next one of this environment's generator."""
        chosen = int(self.np_random.integers(2**31)) if seed is None else seed
        strategy = {"type": "seeded", "count": 1, "seed": chosen}
        self.client.update_world(self._world, samplingStrategy=strategy)
        self.client.reset_world(self._world)
        self._axes.restarted()

    def _apply_regime(self) -> bool:
        """Bring the world into the step's configuration; whether another one begins with it."""
        if self._provider is None:
            return False
        label = str(self._provider.regime_id(self._step))
        regime_at = getattr(self._provider, "regime_at", None)
        if regime_at is not None:
            self._axes.apply(self.client, self._world, regime_at(self._step).axes)
        boundary = self._label is not None and label != self._label
        self._label = label
        return boundary

    def _regime_info(self, *, boundary: bool) -> dict[str, Any]:
        if self._provider is None:
            return {}
        regime_at = getattr(self._provider, "regime_at", None)
        step = max(self._step - 1, 0)
        origin = regime_at(step).origin if regime_at is not None else None
        return {"regime": {"id": self._label, "boundary": boundary, "origin": origin}}

    def _observe(self, last: Mapping[str, Any]) -> Any:
        state = compact(self._overview or {}, last, self._actor.verified)
        if self.settings.raw_logs:
            page = self.client.page(f"/{self._world}/logs", limit=self.settings.raw_logs)
            state["logs"] = [
                {"level": str(item.get("level")), "msg": str(item.get("msg"))[:500]} for item in page.items
            ]
        self._observation = {"state": state, "text": render(state)}
        if self._shown is Observe.BRIEF:
            return brief(state)
        return self._observation["text"] if self._shown is Observe.TEXT else self._observation


class _PrintableText(spaces.Text):
    """Text of any printable characters; Gymnasium's own would list them all."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, min_length=0)

    def contains(self, x: Any) -> bool:
        """Whether `x` is text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length
