"""How tests run, wherever they are started from.

Property tests have no deadlines, because a machine's speed is no property of the code. And what tests start
can be interrupted, even where the tests themselves run in the background of a shell, which ignores SIGINT
and hands that on to every process below it.
"""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "skyfall",
    deadline=None,
    derandomize="CI" in os.environ,  # a push is judged on the same examples as the one before
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("skyfall")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
