"""Small networks of data movement, from ONNX to C on this machine, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowmcu

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((1, 4, 6, 5)).astype(np.float32)
TABLE = RNG.standard_normal((7, 3)).astype(np.float32)


def i64(values: Any) -> Array:
    return np.array(values, np.int64)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    names = ["" if n == "-" else n for n in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attributes)


MODELS: dict[str, tuple[list[onnx.NodeProto], dict[str, Array], dict[str, Array]]] = {
    "slice, pad, concat, resize": (
        [
            node("Slice", "x start end axes steps", "a", name="slice"),
            node("Pad", "a pads", "b", mode="reflect"),
            node("Concat", "b b", "c", axis=1),
            node("Resize", "c - - sizes", "y", mode="linear"),
        ],
        {"x": X},
        {
            "start": i64([5]),
            "end": i64([0]),
            "axes": i64([2]),
            "steps": i64([-2]),
            "pads": i64([0, 0, 1, 2, 0, 0, 0, 1]),
            "sizes": i64([1, 8, 7, 9]),
        },
    ),
    "run-time indices": (
        [
            node("Gather", "x index", "g", axis=2),
            node("Transpose", "g", "t", perm=[2, 3, 0, 1, 4]),
            node("Reshape", "t shape", "y"),
        ],
        {"x": X, "index": i64([[0, -1], [2, 1]])},
        {"shape": i64([-1, 5])},
    ),
    "a table in flash": ([node("Gather", "t i", "y")], {"i": i64([1, -1, 5])}, {"t": TABLE}),
    "parts of a whole": (
        [
            node("Split", "x", "a b", axis=1, num_outputs=2),
            node("Add", "a b", "c"),
            node("Concat", "c x c", "y", axis=1),
        ],
        {"x": X},
        {},
    ),
    "scatter and sums": (
        [node("ScatterND", "x i u", "s"), node("CumSum", "s axis", "y")],
        {"x": X, "i": i64([[0, 1], [0, 3]]), "u": X[0, :2] * 2},
        {"axis": i64(2)},
    ),
    "bool": (
        [node("Concat", "x x", "c", axis=0), node("Transpose", "c", "y")],
        {"x": np.array([[True, False, True]])},
        {},
    ),
    "int64": (
        [node("Pad", "x pads", "c"), node("Tile", "c repeats", "y")],
        {"x": i64([[1, -(2**40), 3]])},
        {"pads": i64([1, 0, 0, 1]), "repeats": i64([2, 1])},
    ),
    "one-hot": (
        [node("OneHot", "x depth values", "y")],
        {"x": i64([1, 3, -1])},
        {"depth": i64(4), "values": np.array([0, 1], np.float32)},
    ),
    "a constant before the input": ([node("Trilu", "x", "y")], {"x": X}, {}),
    "blocks": (
        [
            node("DepthToSpace", "x", "d", blocksize=2, mode="CRD"),
            node("SpaceToDepth", "d", "y", blocksize=2),
        ],
        {"x": X},
        {},
    ),
    "outputs that are parts of the input": (
        [node("Slice", "x start end axes", "y"), node("Reshape", "x shape", "z")],
        {"x": X},
        {"start": i64([1]), "end": i64([3]), "axes": i64([1]), "shape": i64([-1])},
    ),
}


def model(name: str) -> bytes:
    nodes, inputs, constants = MODELS[name]
    outputs = [n for n in ("y", "z") if any(n in p.output for p in nodes)]
    graph = helper.make_graph(
        nodes,
        "movement",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in inputs.items()
        ],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    for output in graph.output:
        output.ClearField("type")
    opsets = [helper.make_opsetid("", 18)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    inferred: bytes = onnx.shape_inference.infer_shapes(made).SerializeToString()
    return inferred


@pytest.mark.cc
@pytest.mark.parametrize("name", MODELS)
def test_c_computes_what_onnx_runtime_does(need: Callable[..., None], name: str) -> None:
    need("gcc")
    inputs = MODELS[name][1]
    session = onnxruntime.InferenceSession(model(name))
    wanted = session.run(None, inputs)
    found = glowmcu.compile(model(name), target="host", name="movement").run(inputs)
    for (output, array), right in zip(found.items(), wanted, strict=True):
        assert array.shape == right.shape, output
        assert array.dtype == right.dtype, output
        np.testing.assert_allclose(array, right, rtol=1e-5, atol=1e-6)
