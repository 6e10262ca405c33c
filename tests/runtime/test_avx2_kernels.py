"""Kernels of AVX2 compute what the instructions say, to the bit, and stay in their memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dsp_layers import expected_of, feeds_of, function_of
from kernel_program import Case, compare, pairs, random_array, run_cases
from vector_layers import LAYERS

from glowmcu.driver import compile_network
from glowmcu.options import Options
from glowmcu.targets.target import target
from glowmcu.verify.host import HostLibrary, this_machine

AVX2 = target("x86-avx2")


def cases() -> list[Case]:
    """Return every layer with random and extreme inputs, and y in every place it may take."""
    found = []
    for number, layer in enumerate(LAYERS):
        function = function_of(layer, number)
        (instruction,) = function.instructions
        (kernel,) = (k for k in instruction.kernels if k.requires == AVX2.capabilities)
        assert not kernel.accepts(instruction), layer
        x, y = function.inputs[0], function.outputs[0]
        constants = {b: b.data for b in instruction.inputs() if b.data is not None}
        modes = ["general", "general", "general", "overlap"]
        modes[1] = "in_place" if pairs(instruction, kernel) else "general"
        modes[2] = "constant" if number % 6 == 0 else "general"
        modes[3] = "overlap" if kernel.overlap(instruction) else "general"
        given = feeds_of(layer, number)
        samples = zip(modes, given, expected_of(function, given), strict=True)
        for sample, (mode, feed, want) in enumerate(samples):
            arrays = {x: feed["x"], y: want, **constants}
            found.append(Case(f"{number}.{sample}", instruction, kernel, mode, arrays))
    return found


@pytest.fixture
def avx2() -> None:
    if this_machine() != AVX2:
        pytest.skip("this machine has no AVX2")


@pytest.mark.cc
def test_every_kernel_is_exact(tmp_path: Path, cc: str, avx2: None) -> None:
    everything = cases()
    found = run_cases(everything, tmp_path, cc, AVX2.flags)
    for case in everything:
        compare(case, found[case.label])


NETWORKS = [
    *((f"{name}_int8", rows) for name in ("kws", "ic") for rows in (False, True)),
    *((f"{name}_float", False) for name in ("kws", "vww")),
]


@pytest.mark.cc
@pytest.mark.parametrize(("name", "rows"), NETWORKS)
def test_networks_give_the_bits_of_portable_code(
    name: str, rows: bool, shared: Path, avx2: None
) -> None:
    path = shared / "mlperf_tiny" / "models" / f"{name}.onnx"
    # rows of float networks are made by portable kernels
    options = Options(name=name, input="rows" if rows else "whole", stripe="float" not in name)
    plain = compile_network(path, options)
    fast = compile_network(path, replace(options, target=AVX2.name))
    assert "avx2" in "".join(fast.unit.files)
    (slot,) = plain.unit.inputs
    rng = np.random.default_rng(3)
    a, b = HostLibrary(plain.unit), HostLibrary(fast.unit)
    for _ in range(3):
        feeds = {slot.name: random_array(rng, slot.type, -1.0, 1.0)}
        want, have = a.run(feeds), b.run(feeds)
        for output, values in want.items():
            assert have[output].tobytes() == values.tobytes()


def test_code_of_another_processor_runs_with_what_this_machine_has(shared: Path) -> None:
    path = shared / "mlperf_tiny" / "models" / "kws_int8.onnx"
    compilation = compile_network(path, Options(target="cortex-m4"))
    assert compilation.for_host().target == this_machine()
