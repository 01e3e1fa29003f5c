"""What the torch backends raise beyond the core's errors.

RunError (core)
├── SampleCountError      the policy's record does not match the window
├── ObservationError      an observation that holds a number which is not finite
├── WarmupError           an encoder whose training diverged
├── FisherError           nothing to consolidate on, or information that is zero everywhere
└── NonFiniteLossError    a loss or gradient that is NaN or infinite; no step was taken
"""

from collections.abc import Sequence

from skyfall_core.errors import RunError

__all__ = ["FisherError", "NonFiniteLossError", "ObservationError", "SampleCountError", "WarmupError"]


class SampleCountError(RunError):
    """The policy recorded more or fewer actions than the window has transitions."""

    def __init__(self, samples: int, transitions: int) -> None:
        super().__init__(
            f"the policy recorded {samples} actions for a window of {transitions} transitions: each "
            "transition must come from one call of `act` (or one row of `act_batch`) on the policy being "
            "trained, and nobody else may call `take_generated`"
        )


class ObservationError(RunError):
    """An observation no network can answer: one NaN in it makes the action and every later weight NaN."""


class WarmupError(RunError):
    """An encoder's training came to numbers that are not finite; nothing was written."""


class FisherError(RunError):
    """A Fisher estimate that would protect nothing while looking as if it did."""


class NonFiniteLossError(RunError):
    """Training met a number it must not step on; the weights are those from before the step.

    Args:
        what: The quantity at fault, such as `policy loss`.
        value: Its value.
        steps: Environment steps of the rows involved; replayed rows have none.
    """

    def __init__(self, what: str, value: float, steps: Sequence[int]) -> None:
        shown = ", ".join(map(str, steps[:16])) + (", …" if len(steps) > 16 else "")
        super().__init__(
            f"{what} is {value} on environment steps {shown or 'of replayed rows only'}; the step was not "
            "applied and the weights are intact. Look at these steps; lower the learning rate or clip rewards"
        )
        self.steps = list(steps)
