"""Score recorded continual-learning runs: six metrics from a trace, with neither the world nor the model.

The package imports nothing by itself; `skyfall_metrics.api` has every public name in one place.
"""

__version__ = "0.1.0"
