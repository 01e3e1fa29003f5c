"""Seeds for several worlds from one, without neighbours sharing any.

`seed + i` would give base seeds 0 and 1 the same world in all but one place; spawning from a
`numpy.random.SeedSequence` keeps them apart.
"""

from __future__ import annotations

import numpy as np

__all__ = ["spread_seed"]


def spread_seed(seed: int, count: int) -> list[int]:
    """Independent seeds, one a world.

    Args:
        seed: The run's base seed, not negative.
        count: How many worlds there are.

    Returns:
        `count` integers in [0, 2³¹), the same for the same arguments in every process.
    """
    children = np.random.SeedSequence(seed).spawn(count)
    return [int(child.generate_state(1)[0]) >> 1 for child in children]
