"""--flash-limit and what balanced promises of flash, on networks of every kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from networks import INT8, model
from onnx import TensorProto, helper, numpy_helper

from glowmcu.driver import Compilation, compile_network
from glowmcu.emit.estimate import measure
from glowmcu.errors import DoesNotFitError
from glowmcu.instr.cost import cycles
from glowmcu.options import Optimize, Options


def flash(found: Compilation) -> int:
    report = found.unit.report
    return int(report["weights_bytes"] + report["code_bytes_estimate"])


def compiled(
    path: Path, optimize: Optimize, limit: int | None = None, processor: str = "cortex-m4"
) -> Compilation:
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the shared models")
    options = Options(name="net", target=processor, optimize=optimize, flash_limit=limit)
    return compile_network(path, options)


@pytest.mark.parametrize("name", ["kws", "ic"])
def test_less_flash_is_slower_and_every_limit_is_met(name: str, shared: Path) -> None:
    path = model(shared, name, "int8")
    free = compiled(path, "speed")
    before = 0.0
    for part in (1.0, 0.9, 0.6):
        least = flash(free) * part
        try:
            found = compiled(path, "speed", int(least))
        except DoesNotFitError:
            assert part < 0.9
            continue
        assert flash(found) <= least
        taken = sum(map(cycles, found.function.instructions))
        assert taken >= before
        before = taken


def test_the_smallest_figure_would_do(shared: Path) -> None:
    path = model(shared, "kws", "int8")
    with pytest.raises(DoesNotFitError) as error:
        compiled(path, "speed", 20_000)
    (problem,) = error.value.problems
    figure = int(problem.hint.split()[1].rstrip(","))
    assert f"{figure} bytes" in problem.what
    assert flash(compiled(path, "speed", figure)) == figure
    with pytest.raises(DoesNotFitError, match=f"{figure} bytes"):
        compiled(path, "speed", figure - 1)


def allowed(found: Compilation) -> float:
    constants = (b for b in found.lowered.buffers() if b.kind == "constant" and b.base is None)
    return 1.3 * sum(b.nbytes for b in constants) + 24 * 1024


@pytest.mark.cross
@pytest.mark.parametrize(
    ("name", "processor"),
    [*((name, "cortex-m4") for name in INT8), ("kws", "cortex-m0"), ("ic", "cortex-m55")],
)
def test_balanced_keeps_its_promise(name: str, processor: str, shared: Path, arm_gcc: str) -> None:
    found = compiled(model(shared, name, "int8"), "balanced", processor=processor)
    sizes = measure(found.unit)
    if processor == "cortex-m4":
        assert sizes.code + sizes.data <= flash(found) + 64
    assert flash(found) <= allowed(found)
    large = measure(found.unit, "-O3")
    assert large.code + large.data <= allowed(found)


def many_shapes(layers: int) -> onnx.ModelProto:
    """A network of small QDQ convolutions, every one of another shape."""
    rng = np.random.default_rng(3)
    nodes, constants = [], []

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(value, name))
        return name

    scale = constant("scale", np.float32(0.05)), constant("zero", np.int8(3))
    small, none = constant("small", np.float32(0.01)), constant("none", np.int8(0))
    nodes.append(helper.make_node("QuantizeLinear", ["x", *scale], ["q0"]))
    channels = 4
    for n in range(layers):
        size = (1, 3, 5)[n % 3], (3, 1, 3)[n % 3]
        out = 4 + n % 5 + 4 * (n % 2)
        w = rng.integers(-100, 100, (out, channels, *size)).astype(np.int8)
        nodes.append(helper.make_node("DequantizeLinear", [f"q{n}", *scale], [f"x{n}"]))
        taken = [constant(f"w{n}", w), small, none]
        nodes.append(helper.make_node("DequantizeLinear", taken, [f"d{n}"]))
        pads = [size[0] // 2, size[1] // 2] * 2
        nodes.append(helper.make_node("Conv", [f"x{n}", f"d{n}"], [f"y{n}"], pads=pads))
        nodes.append(helper.make_node("QuantizeLinear", [f"y{n}", *scale], [f"q{n + 1}"]))
        channels = out
    nodes.append(helper.make_node("DequantizeLinear", [f"q{layers}", *scale], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 9, 9))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "many", [x], [y], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    return made


def test_balanced_shares_code_where_every_layer_has_another_shape() -> None:
    options = Options(name="many", target="cortex-m4", stripe=False)
    fast = compile_network(
        many_shapes(24), Options(name="many", target="cortex-m4", optimize="speed")
    )
    found = compile_network(many_shapes(24), options)
    assert flash(fast) > allowed(fast)
    assert flash(found) <= allowed(found)
    kernels = {i.kernel.symbol for i in found.function.instructions if i.kernel}
    assert "gm_conv2d_s8_ring" in kernels or "gm_conv2d_s8_pointwise" in kernels
