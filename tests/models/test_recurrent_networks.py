"""Real recurrent networks: right numbers, and an arena as small as its live tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowmcu.driver import compile_network
from glowmcu.options import Options
from glowmcu.verify.host import HostLibrary

SILERO = ("silero_vad_openvino_16k", {"input": (1, 576), "state": (2, 1, 128)})
LSTM = ("lstm_k1_b1_r1", {"input_1": (1, 4, 5)})


@pytest.mark.cc
@pytest.mark.parametrize(("network", "most"), [(SILERO, 9280), (LSTM, 160)])
def test_numbers_and_arena(
    shared: Path, network: tuple[str, dict[str, tuple[int, ...]]], most: int
) -> None:
    name, shapes = network
    path = shared / "models_real" / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"no {name} among the shared data")
    compilation = compile_network(path, Options(shapes=shapes))
    data = dict(np.load(path.with_suffix(".npz")))
    feeds = {n: data[f"in_{i}"] for i, n in enumerate(shapes)}
    found = HostLibrary(compilation.unit).run(feeds)
    for number, slot in enumerate(compilation.unit.outputs):
        right = data[f"out_{number}"]
        np.testing.assert_allclose(found[slot.name], right, atol=1e-5 * np.ptp(right) + 1e-5)
    assert compilation.unit.arena_size <= most


def test_a_state_takes_no_more_memory(shared: Path) -> None:
    name, shapes = SILERO
    path = shared / "models_real" / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"no {name} among the shared data")
    compilation = compile_network(path, Options(shapes=shapes, state={"state": "stateN"}))
    assert compilation.unit.arena_size <= 9280
    assert not any(i.is_copy for i in compilation.function.instructions[-2:])
