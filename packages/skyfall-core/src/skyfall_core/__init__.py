"""Run and record continual reinforcement learning: one agent, one long life, unannounced shifts.

The package collects (drives a world and records every step) and orchestrates learning; it knows no
tensor library. Import what you need from its modules; the package itself imports nothing.
"""

__version__ = "0.1.0"
