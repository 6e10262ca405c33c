"""Networks on types of 4 and 2 bits, in generated C, against ONNX's reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import glowmcu
from glowmcu import show
from glowmcu.core import dtypes
from glowmcu.core.dtypes import DType
from glowmcu.core.packing import stored
from glowmcu.core.passes import IllFormedError
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.verify import verify
from glowmcu.ops.copy import Copy
from glowmcu.ops.lut import Lut
from glowmcu.ops.repack import Repack
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.levels import verify_compilation
from glowmcu.verify.sanitize import run_sanitized

RNG = np.random.default_rng(3)
Array = np.ndarray[Any, Any]
SMALL = [*dtypes.SMALL_INTEGERS, dtypes.E2M1]
pytestmark = pytest.mark.cc


def kind(dtype: DType) -> int:
    return helper.np_dtype_to_tensor_dtype(dtype.numpy)


def network(
    nodes: list[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, tuple[int, ...]]],
    outputs: Mapping[str, tuple[int, tuple[int, ...]]],
    constants: Mapping[str, Array] | None = None,
) -> onnx.ModelProto:
    def infos(of: Mapping[str, tuple[int, tuple[int, ...]]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(n, t, s) for n, (t, s) in of.items()]

    tensors = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "small", infos(inputs), infos(outputs), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)


def numbers(dtype: DType, *shape: int) -> Array:
    low, high = (dtype.low, dtype.high) if dtype.is_integer else (-6, 6)
    return RNG.integers(low, high, shape, endpoint=True).astype(np.float32).astype(dtype.numpy)


def check(model: onnx.ModelProto, feeds: dict[str, Array]) -> glowmcu.CompiledModel:
    """Compare numpy with poisoned memory, the C and ONNX's reference; return the network."""
    names = [o.name for o in model.graph.output]
    right = dict(zip(names, ReferenceEvaluator(model).run(None, feeds), strict=True))
    compiled = glowmcu.compile(model)
    found = compiled.run(feeds)
    made = compiled.compilation
    plan, function = made.plan, made.function

    def poison(index: int, arena: Array) -> None:
        live = np.zeros(arena.size, bool)
        for buffer, (first, last) in plan.lifetimes.items():
            if first <= index <= last and buffer in plan.offsets:
                live[plan.offsets[buffer] :][: buffer.nbytes] = True
        arena[~live] = 0xA5

    planned = evaluate(function, feeds, plan.offsets, plan.extent, before=poison)
    sanitized = run_sanitized(made.unit, [feeds])[0]
    for name, wanted in right.items():
        for got in (found[name], planned[name], sanitized[name]):
            assert got.dtype == wanted.dtype
            assert np.array_equal(got, wanted), name
    return compiled


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_every_way_through_a_small_type(dtype: DType) -> None:
    shape = (3, 5)
    turned = shape[::-1]
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=kind(dtype)),
        helper.make_node("Transpose", ["q"], ["t"], perm=[1, 0]),
        helper.make_node("Reshape", ["s", "flat"], ["r"]),
        helper.make_node("Cast", ["r"], ["w"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    size = shape[0] * shape[1]
    model = network(
        nodes,
        {"x": (TensorProto.FLOAT, shape), "s": (kind(dtype), shape)},
        {
            "t": (kind(dtype), turned),
            "r": (kind(dtype), (size,)),
            "w": (TensorProto.FLOAT, (size,)),
            "y": (TensorProto.FLOAT, turned),
        },
        {"flat": np.asarray([size], np.int64)},
    )
    feeds = {"x": numbers(dtype, *shape).astype(np.float32), "s": numbers(dtype, *shape)}
    compiled = check(model, feeds)
    slots = {
        s.name: s.type
        for s in (*compiled.compilation.unit.inputs, *compiled.compilation.unit.outputs)
    }
    assert slots["s"].packed and slots["t"].packed and not slots["y"].packed
    assert slots["s"].nbytes == -(-size * dtype.bits // 8)


@pytest.mark.parametrize("dtype", dtypes.SMALL_INTEGERS, ids=str)
def test_quantization_to_small_types(dtype: DType) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1),
    ]
    constants = {
        "s": np.asarray([0.5, 0.25, 2.0], np.float32),
        "z": np.asarray([0, 1, 0], np.int8).astype(dtype.numpy),
    }
    inner = {"q": (kind(dtype), (2, 3, 5)), "y": (TensorProto.FLOAT, (2, 3, 5))}
    model = network(nodes, {"x": (TensorProto.FLOAT, (2, 3, 5))}, inner, constants)
    check(model, {"x": RNG.normal(0, 2, (2, 3, 5)).astype(np.float32)})


def test_a_tensor_in_memory_takes_half_a_byte_an_element() -> None:
    shape = (1, 1000)
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=TensorProto.INT4),
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Cast", ["q"], ["r"], to=TensorProto.INT8),
        helper.make_node("Add", ["r", "n"], ["y"]),
    ]
    io = {"x": (TensorProto.INT8, shape)}, {"y": (TensorProto.INT8, shape)}
    compiled = check(network(nodes, *io), {"x": numbers(dtypes.I4, *shape).astype(np.int8)})
    sizes = [b.nbytes for b in compiled.compilation.function.buffers() if b.type.packed]
    assert set(sizes) <= {500}


def test_packing_for_the_next_instruction_only_is_left_out() -> None:
    shape = (7, 5)
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=TensorProto.UINT4),
        helper.make_node("Transpose", ["q"], ["t"], perm=[1, 0]),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    io = {"x": (TensorProto.FLOAT, shape)}, {"y": (TensorProto.FLOAT, shape[::-1])}
    feeds = {"x": numbers(dtypes.U4, *shape).astype(np.float32)}
    compiled = check(network(nodes, *io), feeds)
    assert not any(isinstance(i, Repack) for i in compiled.compilation.function.instructions)


def test_constants_are_packed_in_flash() -> None:
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch("x"), else_branch=branch("k")),
    ]
    shape = (5, 7)
    io = (
        {"c": (TensorProto.BOOL, ()), "x": (TensorProto.INT4, shape)},
        {"y": (TensorProto.INT4, shape)},
    )
    model = network(nodes, *io, {"k": numbers(dtypes.I4, *shape)})
    x = numbers(dtypes.I4, *shape)
    for c in (True, False):
        compiled = check(model, {"c": np.asarray(c), "x": x})
    constants = [
        b for b in compiled.compilation.function.buffers() if b.kind == "constant" and b.type.packed
    ]
    assert [b.nbytes for b in constants] == [18]


def branch(name: str) -> onnx.GraphProto:
    y = helper.make_tensor_value_info(f"{name}_y", TensorProto.INT4, (5, 7))
    return helper.make_graph([helper.make_node("Identity", [name], [f"{name}_y"])], name, [], [y])


def test_loops_carry_small_types() -> None:
    shape = (3, 5)
    nodes = [
        helper.make_node("Cast", ["h"], ["hf"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["hf"], ["ht"], perm=[1, 0]),
        helper.make_node("Transpose", ["ht"], ["hs"], perm=[1, 0]),
        helper.make_node("Mul", ["hs", "minus"], ["more"]),
        helper.make_node("Cast", ["more"], ["h_next"], to=TensorProto.INT4),
        helper.make_node("Identity", ["keep"], ["again"]),
    ]
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        nodes,
        "body",
        [
            value("i", TensorProto.INT64, ()),
            value("keep", TensorProto.BOOL, ()),
            value("h", TensorProto.INT4, shape),
        ],
        [value("again", TensorProto.BOOL, ()), value("h_next", TensorProto.INT4, shape)],
    )
    loop = helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)
    io = {"x": (TensorProto.INT4, shape)}, {"y": (TensorProto.INT4, shape)}
    constants = {"count": np.asarray(999, np.int64), "minus": np.asarray(-1, np.float32)}
    model = network([loop], *io, constants)
    x = np.arange(-7, 8).astype(dtypes.I4.numpy).reshape(shape)
    compiled = glowmcu.compile(model)
    kinds = {type(i).__name__ for i in compiled.compilation.function.instructions}
    assert {"LoopHead", "Repack"} <= kinds
    assert np.array_equal(compiled.run({"x": x})["y"], -x)


def test_states() -> None:
    nodes = [
        helper.make_node("Cast", ["h"], ["hf"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "hf"], ["y"]),
        helper.make_node("Cast", ["y"], ["h_next"], to=TensorProto.INT4),
    ]
    shape = (1, 5)
    model = network(
        nodes,
        {"x": (TensorProto.FLOAT, shape), "h": (TensorProto.INT4, shape)},
        {"y": (TensorProto.FLOAT, shape), "h_next": (TensorProto.INT4, shape)},
    )
    compiled = glowmcu.compile(model, state={"h": "h_next"})
    library = HostLibrary(compiled.compilation.unit)
    x = np.asarray([[1, -1, 2, 0, -2]], np.float32)
    totals = [library.run({"x": x})["y"] for _ in range(3)]
    assert np.array_equal(np.stack(totals), [x, 2 * x, 3 * x])


def test_the_self_test_knows_packed_tensors(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.INT8),
        helper.make_node("Add", ["f", "f"], ["g"]),
        helper.make_node("Cast", ["g"], ["y"], to=TensorProto.UINT4),
    ]
    io = {"x": (TensorProto.INT4, (3, 3))}, {"y": (TensorProto.UINT4, (3, 3))}
    compiled = glowmcu.compile(network(nodes, *io), self_test=True)
    text = compiled.compilation.unit.files["small_self_test.c"]
    assert "golden_x[] = {" in text
    run = compiled.run({"x": numbers(dtypes.I4, 3, 3)})
    assert run["y"].dtype == dtypes.U4.numpy


def test_only_what_knows_packed_tensors_may_touch_them() -> None:
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    io = {"x": (TensorProto.INT4, (4, 4))}, {"y": (TensorProto.INT4, (4, 4))}
    function = glowmcu.compile(network(nodes, *io)).compilation.function
    x = function.inputs[0]
    table = Lut.kernels[-1]
    assert x.type.packed and x.nbytes == 8
    copies = [i for i in function.instructions if isinstance(i, Copy)]
    assert len(copies) <= 1
    wrong = Lut(y=x, x=x, table=x, count=16, kernel=table)
    with pytest.raises(IllFormedError, match="share bytes"):
        verify(only(function, wrong))
    assert stored(numbers(dtypes.I4, 4, 4), x.type).shape == (8,)


def only(function: Any, instruction: Any) -> Any:
    return function.__class__(
        function.name, function.inputs, function.outputs, function.output_names, (instruction,)
    )


def test_data_may_be_wider_if_they_fit(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT8)]
    io = {"x": (TensorProto.INT4, (3, 3))}, {"y": (TensorProto.INT8, (3, 3))}
    compiled = glowmcu.compile(network(nodes, *io))
    x = numbers(dtypes.I4, 3, 3)
    np.savez(tmp_path / "x.npz", x=x)
    for data in (x, x.astype(np.int8), x.astype(np.int64), np.load(tmp_path / "x.npz")["x"]):
        assert np.array_equal(compiled.run({"x": data})["y"], x.astype(np.int8))
    with pytest.raises(glowmcu.errors.InvalidModelError, match="convert them to int4"):
        compiled.run({"x": np.full((3, 3), 8, np.int8)})


def test_results_in_a_file(tmp_path: Path) -> None:
    show.write_arrays(tmp_path / "y.npz", {"y": numbers(dtypes.U2, 3)})
    assert np.load(tmp_path / "y.npz")["y"].dtype == np.uint8


@pytest.mark.parametrize("dtype", [dtypes.I4, dtypes.U2], ids=str)
def test_every_level_agrees(dtype: DType) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=kind(dtype)),
        helper.make_node("Transpose", ["q"], ["t"], perm=[1, 0]),
    ]
    io = {"x": (TensorProto.FLOAT, (3, 5))}, {"t": (kind(dtype), (5, 3))}
    compiled = glowmcu.compile(network(nodes, *io))
    data = {"x": numbers(dtype, 3, 5).astype(np.float32)}
    results = verify_compilation(compiled.compilation, data)
    assert len(results) == 3
    assert all(r.passed and r.outputs["t"].lsb == 0 for r in results)
