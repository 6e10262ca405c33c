"""Odd networks through `glowmcu quantize`: every precision works, or one sentence says why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowmcu.driver import compile_network
from glowmcu.errors import GlowmcuError
from glowmcu.options import Options
from glowmcu.quantize.write import to_onnx
from glowmcu.verify.host import HostLibrary

RNG = np.random.default_rng(3)


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, ...]],
    outputs: dict[str, tuple[int, ...] | None],
    weights: dict[str, np.ndarray] | None = None,  # type: ignore[type-arg]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(w, n) for n, w in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weights(*shape: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.random.default_rng(len(shape)).normal(0, 0.4, shape).astype(np.float32)


def node(kind: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(","), outputs.split(","), **attributes)


ODD = {
    "two outputs, one inside": model(
        [node("MatMul", "x,w", "h"), node("Relu", "h", "r"), node("MatMul", "r,v", "y")],
        {"x": (1, 6)},
        {"y": (1, 3), "r": (1, 5)},
        {"w": weights(6, 5), "v": weights(5, 3)},
    ),
    "one output twice": model(
        [
            node("MatMul", "x,w", "h"),
            node("Identity", "h", "a"),
            node("Identity", "h", "b"),
        ],
        {"x": (1, 6)},
        {"a": (1, 5), "b": (1, 5)},
        {"w": weights(6, 5)},
    ),
    "shared weights": model(
        [node("MatMul", "x,w", "h"), node("Tanh", "h", "t"), node("MatMul", "t,w", "y")],
        {"x": (1, 6)},
        {"y": (1, 6)},
        {"w": weights(6, 6)},
    ),
    "no layer to quantize": model(
        [node("Erf", "x", "e"), node("Pow", "e,x", "y")], {"x": (2, 3)}, {"y": (2, 3)}
    ),
    "the output is the input": model([node("Identity", "x", "y")], {"x": (2, 3)}, {"y": (2, 3)}),
    "one of the outputs is the input": model(
        [node("Identity", "x", "y"), node("MatMul", "x,w", "z")],
        {"x": (2, 3)},
        {"y": (2, 3), "z": (2, 4)},
        {"w": weights(3, 4)},
    ),
    "one of the outputs is constant": model(
        [node("MatMul", "x,w", "y"), node("Identity", "w", "z")],
        {"x": (2, 3)},
        {"y": (2, 4), "z": (3, 4)},
        {"w": weights(3, 4)},
    ),
    "an input that nobody reads": model(
        [node("MatMul", "x,w", "y")],
        {"x": (2, 3), "unused": (1, 2)},
        {"y": (2, 4)},
        {"w": weights(3, 4)},
    ),
    "nothing in a tensor": model(
        [
            node("Slice", "x,a,a", "none"),
            node("Concat", "x,none", "c", axis=0),
            node("MatMul", "c,w", "y"),
        ],
        {"x": (2, 3)},
        {"y": (2, 4)},
        {"w": weights(3, 4), "a": np.zeros(1, np.int64)},
    ),
    "odd names": model(
        [
            node("MatMul", 'x/ü 1:0,w"\\', "h;h"),
            node("Relu", "h;h", "h;h.real"),
            node("Softmax", "h;h.real", "int"),
        ],
        {"x/ü 1:0": (1, 6)},
        {"int": (1, 5)},
        {'w"\\': weights(6, 5)},
    ),
    "names that the export makes": model(
        [node("MatMul", "x,scale", "x.real"), node("Relu", "x.real", "zero_point")],
        {"x": (1, 6)},
        {"zero_point": (1, 5)},
        {"scale": weights(6, 5)},
    ),
    "weights of zero": model(
        [node("Gemm", "x,w,b", "h"), node("MatMul", "h,v", "y")],
        {"x": (1, 6)},
        {"y": (1, 5)},
        {"w": np.zeros((6, 4), np.float32), "b": np.zeros(4, np.float32), "v": weights(4, 5)},
    ),
    "numbers of very different size": model(
        [node("Gemm", "x,w,b", "h"), node("Sigmoid", "h", "y")],
        {"x": (1, 6)},
        {"y": (1, 4)},
        {"w": weights(6, 4) * np.float32([1e-20, 1e3, 1, 1e-6]), "b": np.float32([1e4, 0, -1, 5])},
    ),
    "a scalar": model([node("ReduceMean", "x", "y", keepdims=0)], {"x": (2, 3)}, {"y": ()}, {}),
}


BEYOND = ("numbers of very different size", "int8")
"""One scale of int8 cannot serve channels of such different ranges; mixed precision finds out."""


def samples(found: onnx.ModelProto) -> list[dict[str, np.ndarray]]:  # type: ignore[type-arg]
    shapes = {
        i.name: tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in found.graph.input
    }
    rng = np.random.default_rng(7)
    return [
        {n: rng.uniform(0.1, 1, s).astype(np.float32) for n, s in shapes.items()} for _ in range(8)
    ]


def session(found: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(found.SerializeToString(), options)


@pytest.mark.cc
@pytest.mark.parametrize("precision", ["int8", "int16", "mixed"])
@pytest.mark.parametrize("name", list(ODD))
def test_odd_networks(name: str, precision: str) -> None:
    network, data = ODD[name], samples(ODD[name])
    goal = "30dB" if precision == "mixed" else None
    options = Options(name="net", quantize=precision, io="float", max_drop=goal)  # type: ignore[arg-type]
    found = compile_network(network, options, data)
    library, exported = HostLibrary(found.unit), session(to_onnx(found.graph))
    real = session(network)
    for sample in data[:3]:
        ours = library.run(sample)
        for (key, mine), want, theirs in zip(
            ours.items(), real.run(None, sample), exported.run(None, sample), strict=True
        ):
            reach = max(float(np.abs(want).max(initial=0)), 1e-3)
            if (name, precision) != BEYOND:
                np.testing.assert_allclose(mine, want, atol=0.05 * reach, err_msg=key)
            np.testing.assert_allclose(mine, theirs, atol=0.02 * reach, err_msg=key)


@pytest.mark.parametrize("name", list(ODD))
def test_odd_networks_of_integers_throughout(name: str) -> None:
    network, data = ODD[name], samples(ODD[name])
    found = compile_network(network, Options(name="net", quantize="int8"), data)
    exported = session(to_onnx(found.graph))
    assert [i.name for i in exported.get_inputs()] == [i.name for i in network.graph.input]
    assert [o.name for o in exported.get_outputs()] == [o.name for o in network.graph.output]


def test_a_network_of_a_constant() -> None:
    constant = model([node("Identity", "w", "y")], {}, {"y": (3,)}, {"w": weights(3)})
    with pytest.raises(GlowmcuError):
        compile_network(constant, Options(quantize="int8"), [])


def test_export_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    from glowmcu.quantize.write import save_onnx

    found = compile_network(ODD["shared weights"], Options(), None)
    with pytest.raises(GlowmcuError, match="cannot write"):
        save_onnx(found.graph, tmp_path / "none" / "x.onnx")
