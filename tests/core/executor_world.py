"""A world that misbehaves as it is told, for the tests of executors; imported by the cells' processes."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading

import gymnasium
import numpy as np


class World(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, here, does=None, at=5):
        self.here, self.does, self.at, self.count = pathlib.Path(here), does, at, 0

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        if self.count == self.at and self.does is not None:
            getattr(self, self.does)()
        self.count += 1
        return np.zeros(1, np.float32), 1.0, False, False, {}

    def close(self):
        (self.here / f"closed-{os.getpid()}").write_text(str(self.count))

    def say(self, name, text):
        (self.here / f"{name}.part").write_text(text)
        (self.here / f"{name}.part").rename(self.here / name)

    def raises(self):
        raise ValueError("broken")

    def exits(self):
        sys.exit(3)

    def exits_hard(self):
        sys.stdout.write("last words\n")
        sys.stdout.flush()
        os._exit(7)

    def aborts(self):
        os.kill(os.getpid(), signal.SIGABRT)

    def killed(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def prints(self):
        sys.stdout.write("hello from a cell\n")

    def tells_threads(self):
        self.say("threads", os.environ["OMP_NUM_THREADS"] + " " + os.environ["OPENBLAS_NUM_THREADS"])

    def leaves_a_child(self):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.say("child", str(child.pid))

    def waits(self):
        self.say(f"waiting-{os.getpid()}", str(os.getpid()))
        while True:
            threading.Event().wait(0.05)

    def waits_a_little(self):
        self.say(f"waiting-{os.getpid()}", str(os.getpid()))

    def waits_with_a_child(self):
        self.leaves_a_child()
        self.waits()

    def will_not_stop(self):
        self.say(f"waiting-{os.getpid()}", str(os.getpid()))
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait(0.05)
