"""Estimates of code and stack against what compilers make of the same networks."""

from __future__ import annotations

import dense_networks as networks
import pytest
from test_emitter import unit_of

from glowmcu.emit.estimate import measure
from glowmcu.targets.target import TARGETS


@pytest.mark.cross
@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("machine", ["cortex-m0", "cortex-m4", "riscv32"])
def test_estimates_lie_above_what_is_measured(
    machine: str, quantized: bool, arm_gcc: str, riscv_gcc: str
) -> None:
    function = networks.dense_chain((100, 100, 2, 2, 60), quantized)
    for mode in ("none", "hot", "all"):
        unit = unit_of(function, machine, mode)  # type: ignore[arg-type]
        small, fast = measure(unit), measure(unit, "-O2")
        assert small.code <= unit.report["code_bytes_estimate"] <= 4 * small.code
        assert max(small.stack, fast.stack) <= unit.report["stack_bytes"]
        assert 0 <= small.data - unit.report["weights_bytes"] < 32


@pytest.mark.cc
def test_the_host_is_measured_too(cc: str) -> None:
    unit = unit_of(networks.dense_chain((10, 20, 5), True))
    found = measure(unit)
    assert 0 < found.code <= unit.report["code_bytes_estimate"]
    assert 0 < found.stack <= unit.report["stack_bytes"]
    assert TARGETS[unit.target.name].compiler == ""
