"""Days and nights: the outside temperature alternates, and no one tells the agent."""

from __future__ import annotations

from skyfall_core.regime import Regime

__all__ = ["DayNight"]


class DayNight:
    """Alternates two configurations for ever; the third one repeats the first.

    Args:
        day_steps: Length of a day.
        night_steps: Length of a night.
        day: Outside temperature by day, in °C.
        night: Outside temperature at night, in °C.
    """

    def __init__(self, day_steps: int, night_steps: int, day: float = 16.0, night: float = -4.0) -> None:
        self.day_steps = day_steps
        self.period = day_steps + night_steps
        self._day = Regime("day", axes={"outside": day})
        self._night = Regime("night", axes={"outside": night})

    def regime_at(self, step: int) -> Regime:
        """The configuration of a step."""
        return self._day if step % self.period < self.day_steps else self._night

    def regime_id(self, step: int) -> str:
        """The configuration's label."""
        return self.regime_at(step).regime_id

    def is_boundary(self, step: int) -> bool:
        """Whether a day follows a night here, or a night a day."""
        return step > 0 and step % self.period in {0, self.day_steps}
