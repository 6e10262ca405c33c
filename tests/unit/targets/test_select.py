"""Which kernel is chosen: capabilities, preconditions, modes, estimates."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from glowmcu.options import Optimize
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.select import select, verdicts
from glowmcu.targets.target import Target, target

M3, M4 = target("cortex-m3"), target("cortex-m4")


@dataclass(frozen=True)
class Work:
    kernels: tuple[Kernel, ...]


LONG = Kernel(
    "long",
    requires=frozenset({"arm-dsp"}),
    modes=frozenset({"speed"}),
    cycles=lambda _: 100,
    flash=lambda _: 900,
)
PICKY = Kernel("picky", accepts=lambda _: "is never content", cycles=lambda _: 1)
WIDE = Kernel("wide", cycles=lambda _: 150, flash=lambda _: 400, scratch=lambda _: 64)
SLOW = Kernel("slow", cycles=lambda _: 300, flash=lambda _: 200)
WORK = Work((LONG, PICKY, WIDE, SLOW))


@pytest.mark.parametrize(
    ("machine", "optimize", "symbol"),
    [
        (M4, "speed", "long"),
        (M4, "balanced", "wide"),
        (M4, "size", "slow"),
        (M3, "speed", "wide"),
        (M3, "balanced", "wide"),
    ],
)
def test_modes_choose_by_their_estimates(machine: Target, optimize: Optimize, symbol: str) -> None:
    assert select(WORK, machine, optimize).symbol == symbol


def reasons(machine: Target, optimize: Optimize) -> dict[str, str]:
    return dict(verdicts(WORK, machine, optimize, select(WORK, machine, optimize)))


def test_every_reason_is_given() -> None:
    assert reasons(M3, "balanced") == {
        "long": "needs arm-dsp",
        "picky": "is never content",
        "slow": "stands after wide in the list",
    }
    assert reasons(M4, "speed")["slow"] == "is slower than long"
    assert reasons(M4, "size")["long"] == "is for --optimize speed"
    assert reasons(M4, "size")["wide"] == "takes more scratch than slow"
    forced = dict(verdicts(WORK, M4, "speed", SLOW))
    assert forced["long"] == "was passed over for slow"


def test_the_list_decides_where_the_first_has_no_estimate() -> None:
    unknown = Kernel("unknown")
    for optimize in ("speed", "balanced", "size"):
        assert select(Work((unknown, WIDE)), M4, optimize) is unknown


def test_a_list_without_a_last_resort_is_a_fault() -> None:
    with pytest.raises(LookupError, match="picky"):
        select(Work((PICKY,)), M4)
