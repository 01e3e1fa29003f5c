"""Fixtures of the metrics tests."""

import os
from contextlib import contextmanager

import pytest


@pytest.fixture
def unprivileged(tmp_path):
    """A context in which file permissions apply, also where the tests run as root."""

    @contextmanager
    def dropped():
        if os.geteuid() != 0:
            yield
            return
        for folder in (tmp_path, *tmp_path.parents):
            if not folder.stat().st_mode & 0o005:
                folder.chmod(folder.stat().st_mode | 0o055)
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    return dropped
