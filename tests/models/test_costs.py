"""What the MLPerf Tiny networks cost on each processor never grows unnoticed.

The figures lie in tests/golden/costs.json: instructions of one inference at -O3, counted exactly by
the emulator; bytes of code and tables without weights at -Os; bytes of the arena. More than one
per cent above them fails. After an improvement, or an agreed regression, write them anew:

    pytest tests/models/test_costs.py --update-golden
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from networks import INT8, inputs, model
from numpy.typing import NDArray

from glowmcu.driver import compile_network
from glowmcu.emit.estimate import measure
from glowmcu.options import Optimize, Options
from glowmcu.targets.board import board
from glowmcu.verify.board import run_on_board

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "costs.json"
BOARDS = {
    "cortex-m0": "mps2-an385",
    "cortex-m4": "mps2-an386",
    "cortex-m55": "mps3-an547",
}
ALLOWED = 1.01
CASES = [(f"{name}_int8", processor) for name in INT8 for processor in BOARDS]
CASES += [(f"{name}_int8", "cortex-m4 speed") for name in ("vww", "ic", "ad", "ww")]
CASES += [("kws_int8", "cortex-m4 size"), ("kws_float", "cortex-m4"), ("vww_float", "cortex-m4")]
"""Networks; processors, where it is not `balanced` with what is optimized for."""
MOST_CODE = {"cortex-m4 size": 12_000, "cortex-m4": 20_000}


def options_of(name: str, processor: str) -> Options:
    target, _, optimize = processor.partition(" ")
    return Options(name=name, target=target, optimize=cast("Optimize", optimize or "balanced"))


def costs_of(path: Path, name: str, processor: str, sample: NDArray[np.generic]) -> dict[str, int]:
    options = options_of(name, processor)
    found = compile_network(path, options)
    (slot,) = found.unit.inputs
    data = sample.reshape(slot.type.shape)
    run = run_on_board(
        found.unit, board(BOARDS[options.target]), [{slot.name: data}], profile=True, optimize="-O3"
    )
    sizes = measure(found.unit)
    return {
        "instructions": sum(run.instructions[0]),
        "code": sizes.code + sizes.data - found.unit.report["weights_bytes"],
        "arena": found.plan.size,
    }


@pytest.mark.qemu
@pytest.mark.parametrize(("network", "processor"), CASES)
def test_costs_do_not_grow(
    network: str, processor: str, shared: Path, qemu: None, request: pytest.FixtureRequest
) -> None:
    name, kind = network.split("_")
    path = model(shared, name, kind)
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the shared models")
    costs = costs_of(path, name, processor, inputs(shared, name, kind, 1)[0])
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if request.config.getoption("--update-golden"):
        golden.setdefault(network, {})[processor] = costs
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(golden, indent=2, sort_keys=True) + "\n")
        return
    expected = golden[network][processor]
    grown = [
        f"{what}: {value:,}, was {expected[what]:,}"
        for what, value in costs.items()
        if value > ALLOWED * expected[what]
    ]
    assert not grown, f"{network} on {processor} costs more: {'; '.join(grown)}"


@pytest.mark.cross
@pytest.mark.parametrize("processor", MOST_CODE)
@pytest.mark.parametrize("level", ["-Os", "-O3"])
def test_code_of_kws_is_small(processor: str, level: str, shared: Path, arm_gcc: str) -> None:
    path = model(shared, "kws", "int8")
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the shared models")
    unit = compile_network(path, options_of("kws", processor)).unit
    sizes = measure(unit, level)
    assert sizes.code + sizes.data - unit.report["weights_bytes"] <= MOST_CODE[processor]
