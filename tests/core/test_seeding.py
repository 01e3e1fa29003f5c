"""Seeds of several worlds."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from skyfall_core.seeding import spread_seed


def test_seeds_are_the_same_in_another_process() -> None:
    code = "from skyfall_core.seeding import spread_seed; print(spread_seed(7, 4))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == str(spread_seed(7, 4))


def test_neighbouring_base_seeds_share_no_world() -> None:
    seeds = [seed for base in range(50) for seed in spread_seed(base, 16)]
    assert len(set(seeds)) == len(seeds)


def test_more_worlds_keep_the_seeds_of_the_first() -> None:
    assert spread_seed(3, 8)[:2] == spread_seed(3, 2)


def test_no_world_needs_no_seed() -> None:
    assert spread_seed(3, 0) == []


@given(st.integers(0, 2**63), st.integers(0, 20))
def test_every_seed_is_one_that_environments_accept(seed: int, count: int) -> None:
    seeds = spread_seed(seed, count)
    assert len(seeds) == count
    assert all(type(value) is int and 0 <= value < 2**31 for value in seeds)
