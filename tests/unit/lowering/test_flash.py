"""The knapsack of kernels against every choice there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from glowmcu.lowering.flash import Way, fastest_within, total
from glowmcu.targets.kernel import Kernel

KERNELS = [Kernel(f"k{n}") for n in range(3)]


def random_ways(rng: np.random.Generator) -> dict[int, tuple[Way, ...]]:
    """Few layers; some alike, code of their own, code for all who take a kernel."""
    found: dict[int, tuple[Way, ...]] = {}
    for number in range(int(rng.integers(1, 6))):
        if number and rng.integers(3) == 0:
            found[number] = found[int(rng.integers(number))]
            continue
        ways = []
        for n, kernel in enumerate(KERNELS[: rng.integers(1, 4)]):
            shared = n == 2 or rng.integers(3) == 0
            key, code = (f"all{n}", 50 * n + 20) if shared else (f"{number} {n}", 0)
            code = code or int(rng.integers(1, 90))
            ways.append(Way(kernel, float(rng.integers(1, 99)), int(rng.integers(99)), key, code))
        found[number] = tuple(ways)
    return found


@pytest.mark.parametrize("seed", range(100))
def test_no_choice_is_faster_within_the_limit(seed: int) -> None:
    rng = np.random.default_rng((8, seed))
    ways = random_ways(rng)
    every = [(sum(w.cycles for w in c), total(c)) for c in product(*ways.values())]
    sizes = sorted({size for _, size in every})
    for limit in (sizes[0] - 1, sizes[0], sizes[len(sizes) // 2], sizes[-1]):
        taken = fastest_within(ways, limit)
        assert set(taken) == set(ways)
        assert all(taken[n] in ways[n] for n in ways)
        size = total(taken.values())
        if limit < sizes[0]:
            assert size == sizes[0]
        else:
            assert size <= limit
            cycles = sum(w.cycles for w in taken.values())
            # three kernels in a group of layers that are alike are not tried
            alike = max(list(ways.values()).count(w) for w in ways.values())
            best = min(c for c, s in every if s <= limit)
            assert cycles == best or (alike > 2 and cycles <= 1.3 * best)


def test_many_layers_are_chosen_for_quickly() -> None:
    rng = np.random.default_rng(9)
    ways = {}
    for number in range(60):
        sizes, cycles = rng.integers(100, 9000, 4), rng.integers(100, 90000, 4)
        ways[number] = tuple(
            Way(
                Kernel(f"k{n}"),
                float(cycles[n]),
                int(sizes[n]),
                f"{n % 2} {number % n if n else ''}",
                900,
            )
            for n in range(4)
        )
    least = total(fastest_within(ways, 0).values())
    taken = fastest_within(ways, least + 50_000)
    assert least <= total(taken.values()) <= least + 50_000
