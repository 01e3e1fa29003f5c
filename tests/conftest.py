"""How property tests run: no deadlines, because a machine's speed is no property of the code."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "skyfall",
    deadline=None,
    derandomize="CI" in os.environ,  # a push is judged on the same examples as the one before
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("skyfall")
