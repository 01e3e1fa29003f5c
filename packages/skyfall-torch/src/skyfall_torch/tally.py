"""Means over an update, kept on the device until they are asked for."""

from torch import Tensor

__all__ = ["Tally"]


class Tally:
    """Named weighted means. Nothing waits for the device before `result`."""

    def __init__(self) -> None:
        self._totals: dict[str, Tensor | float] = {}
        self._weights: dict[str, Tensor | float] = {}

    def add(self, name: str, total: Tensor | float, weight: Tensor | float = 1.0) -> None:
        """Count `total` as the sum over `weight` items."""
        total = total.detach() if isinstance(total, Tensor) else total
        self._totals[name] = self._totals.get(name, 0.0) + total
        self._weights[name] = self._weights.get(name, 0.0) + weight

    def put(self, name: str, value: Tensor | float) -> None:
        """Set a value that is no mean."""
        self._totals[name], self._weights[name] = value, 1.0

    def result(self) -> dict[str, float]:
        """Every mean as a plain number; 0 where nothing was counted."""
        means = {}
        for name, total in self._totals.items():
            weight = float(self._weights[name])
            means[name] = float(total) / weight if weight else 0.0
        return means
