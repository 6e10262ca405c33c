"""The kernel that --optimize speed takes by its estimate is the fastest one when measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from networks import model

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from kernel_ranking import Layer, layers_of
from measure import armcycles

CLOSE = 1.6
"""Kernels estimated at more than this times the best one are not measured."""


@pytest.mark.qemu
@pytest.mark.parametrize("network", ["kws", "ic"])
def test_the_chosen_kernel_is_the_fastest(network: str, shared: Path, qemu: None) -> None:
    path = model(shared, network, "int8")
    if not path.is_file() or armcycles() is None:
        pytest.skip("needs the shared models and the counting tool beside the checkout")
    found = list(layers_of(network, path, CLOSE))
    assert len(found) >= 2
    slow = [(_name(f), f.chosen, f.measured) for f in found if f.loss > 0.05]
    assert not slow
    assert sum(f.agreement for f in found) / len(found) >= 0.95
    for layer in found:
        for symbol, taken in layer.measured.items():
            assert 0.8 < layer.estimated[symbol] / taken < 1.25, (_name(layer), symbol)


def _name(layer: Layer) -> str:
    return f"{type(layer.instruction).__name__} '{layer.instruction.name}'"
