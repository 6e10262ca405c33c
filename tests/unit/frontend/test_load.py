"""load(): names, constants, functions, branches, order of nodes."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
import toy
from numpy.testing import assert_array_equal
from toy import model

from glowmcu.errors import InvalidModelError, UnsupportedError
from glowmcu.frontend import load
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph
from glowmcu.ops.base import IMPORTERS


def run(graph: Graph, **feeds: list[float]) -> dict[str, list[float]]:
    found = evaluate(graph, {n: np.asarray(v, np.float32) for n, v in feeds.items()})
    return {n: a.tolist() for n, a in found.items()}


def test_values_have_onnx_names_and_nodes_their_origin() -> None:
    graph = load(
        model("(float[2] X) => (float[2] Y) { t = toy.Double(X) Y = toy.Sum(t, X) }")
    ).graph
    assert [n.names for n in graph.nodes()] == [("t",), ("Y",)]
    assert [n.origin for n in graph.nodes()] == [("t",), ("Y",)]
    assert run(graph, X=[1, 2]) == {"Y": [3, 6]}


def test_nodes_are_sorted() -> None:
    graph = load(
        model("(float[2] X) => (float[2] Y) { Y = toy.Sum(t, X) t = toy.Double(X) }")
    ).graph
    assert [n.names for n in graph.nodes()] == [("t",), ("Y",)]


def test_several_outputs_and_one_unread() -> None:
    graph = load(model("(float[4] X) => (float[2] Y) { Z, Y = toy.Halves(X) }")).graph
    assert run(graph, X=[1, 2, 3, 4]) == {"Y": [3, 4]}
    assert graph.outputs[0].name == "Y"


def test_same_value_under_two_names_keeps_the_first() -> None:
    graph = load(model("(float[2] X) => (float[2] Y) { t = toy.Double(X) Y = toy.Same(t) }")).graph
    assert (graph.outputs[0].name, graph.output_names) == ("t", ("Y",))


def test_output_is_input_or_initializer_and_unused_inputs_stay() -> None:
    proto = model("(float[2] X, float[3] U) => (float[2] X, float[2] C) <float[2] C = {5, 6}> { }")
    graph = load(proto).graph
    assert [v.name for v in graph.inputs] == ["X", "U"]
    assert run(graph, X=[1, 2], U=[0, 0, 0]) == {"X": [1, 2], "C": [5, 6]}


def test_initializer_listed_as_input_is_a_constant() -> None:
    proto = model(
        "(float[2] X, float[2] C) => (float[2] Y) <float[2] C = {5, 6}> { Y = toy.Sum(X, C) }"
    )
    graph = load(proto).graph
    assert [v.name for v in graph.inputs] == ["X"]
    assert run(graph, X=[1, 1]) == {"Y": [6, 7]}


def test_constants_are_folded_and_named() -> None:
    proto = model(
        """(float[2] X) => (float[2] Y) <float[2] C = {5, 6}> {
        d = toy.Double(C) e = toy.Sum(d, C) Y = toy.Sum(X, e) }"""
    )
    (node,) = load(proto).graph.nodes()
    folded = node.inputs[1]
    assert folded is not None
    assert folded.data is not None
    assert (folded.name, folded.data.tolist()) == ("e", [15, 18])


def test_constant_operators() -> None:
    proto = model(
        """(float[2, 3] X) => (int64[2] s, int64 n, float[2, 1] f, int64[3] r, float v) {
        s = Shape(X) n = Size(X) h = Constant<value_ints = [2, 1]>()
        f = ConstantOfShape<value = float[1] {7}>(h)
        a = Constant<value_int = 1>() b = Constant<value_int = 6>() c = Constant<value_int = 2>()
        r = Range(a, b, c) v = Constant<value_float = 0.5>() }"""
    )
    found = evaluate(load(proto).graph, {"X": np.zeros((2, 3), np.float32)})
    assert_array_equal(found["s"], np.asarray([2, 3]))
    assert_array_equal(found["n"], np.asarray(6))
    assert_array_equal(found["f"], np.full((2, 1), 7, np.float32))
    assert_array_equal(found["r"], np.asarray([1, 3, 5]))
    assert found["v"].shape == ()


def test_shape_with_start_and_end() -> None:
    proto = model("(float[2, 3, 4] X) => (int64[1] s) { s = Shape<start = -2, end = -1>(X) }")
    assert load(proto).graph.outputs[0].data == 3


def test_dead_nodes_are_not_imported() -> None:
    proto = model("(float[2] X) => (float[2] Y) { dead = toy.Nothing(X) Y = toy.Double(X) }")
    assert len(load(proto).graph.nodes()) == 1


@pytest.mark.parametrize(("condition", "expected"), [(1, [2, 4]), (0, [15, 16])])
def test_branch_of_constant_condition(condition: int, expected: list[float]) -> None:
    proto = model(
        """(float[2] X) => (float[2] Y) <bool c = {CONDITION}> {
        Y = If (c) <
          then_branch = one () => (float[2] a) { a = toy.Double(X) },
          else_branch = two () => (float[2] b) <float[2] k = {14, 14}> { b = toy.Sum(X, k) }
        > }""".replace("CONDITION", str(condition))
    )
    graph = load(proto).graph
    assert graph.outputs[0].name == "Y"
    assert run(graph, X=[1, 2]) == {"Y": expected}


def test_condition_at_run_time_chooses_between_both_branches() -> None:
    proto = model(
        """(float[2] X, bool c) => (float[2] Y) { d = toy.Double(X) Y = If (c) <
          then_branch = one () => (float[2] a) { a = toy.Sum(d, X) },
          else_branch = two () => (float[2] a) { k = toy.Double(X) a = toy.Double(k) }
        > }"""
    )
    graph = load(proto).graph
    x = np.float32([1, 2])
    for condition, expected in ((True, [3, 6]), (False, [4, 8])):
        found = evaluate(graph, {"X": x, "c": np.asarray(condition)})
        assert found["Y"].tolist() == expected


def test_operator_without_card_on_constants_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NonZero", "CumSum", "Einsum"):
        monkeypatch.delitem(IMPORTERS, ("", name), raising=False)
    proto = model(
        """(float[2] X) => (int64[1, 2] a, float[3] b, float c) <float[3] C = {5, 0, 6}> {
        a = NonZero(C) i = Constant<value_int = 0>() b = CumSum(C, i)
        c = Einsum<equation = "i,i->">(C, C) }"""
    )
    found = evaluate(load(proto).graph, {"X": np.zeros(2, np.float32)})
    assert {n: a.tolist() for n, a in found.items()} == {"a": [[0, 2]], "b": [5, 5, 11], "c": 61}


LOCAL = """<domain: "local", opset_import: ["toy" : 1]>
Quad <times> (x, unused) => (y) { t = toy.Double(x) y = toy.Grow<times : int = @times>(t) }"""


def test_local_function_with_attribute_and_absent_input() -> None:
    proto = model("(float[2] X) => (float[4] Y) { Y = local.Quad<times = 2>(X) }", functions=LOCAL)
    graph = load(proto).graph
    assert [n.names for n in graph.nodes()] == [("Y/t",), ("Y",)]
    assert run(graph, X=[1, 2]) == {"Y": [2, 2, 4, 4]}


def test_recursive_function_is_refused() -> None:
    body = '<domain: "local", opset_import: ["local" : 1]>\nF (x) => (y) { y = local.F(x) }'
    with pytest.raises(InvalidModelError, match="calls itself"):
        load(model("(float[2] X) => (float[2] Y) { Y = local.F(X) }", functions=body))


def test_exponential_functions_are_refused() -> None:
    bodies = "\n".join(
        f'<domain: "local", opset_import: ["local" : 1, "toy" : 1]>\n'
        f"F{i} (x) => (y) {{ a = local.F{i + 1}(x) y = local.F{i + 1}(a) }}"
        for i in range(40)
    )
    bodies += '\n<domain: "local", opset_import: ["toy" : 1]>\nF40 (x) => (y) { y = toy.Same(x) }'
    with pytest.raises(InvalidModelError, match="more than 50000 nodes"):
        load(model("(float[2] X) => (float[2] Y) { Y = local.F0(X) }", functions=bodies))


def test_operator_is_expanded_by_its_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(IMPORTERS, ("", "HardSigmoid"), toy.import_scaled)
    monkeypatch.setitem(IMPORTERS, ("", "Mul"), toy.import_sum)
    monkeypatch.delitem(IMPORTERS, ("", "HardSwish"), raising=False)
    graph = load(model("(float[2] X) => (float[2] Y) { Y = HardSwish(X) }")).graph
    assert run(graph, X=[1, 2]) == {"Y": [2, 4]}


def test_all_problems_are_reported_at_once() -> None:
    proto = model(
        """(float[2] X, float[3] Z) => (float[2] Y) {
        a = toy.Nope(X) b = toy.Dubble(X) c = toy.Sum(X, Z) d = toy.Double(a)
        e = toy.Nope(d) f = toy.Grow<times = 1, speed = 3>(X)
        g = toy.Sum(a, b) h = toy.Sum(c, d) i = toy.Sum(e, f) j = toy.Sum(g, h)
        Y = toy.Sum(i, j) }"""
    )
    with pytest.raises(UnsupportedError) as raised:
        load(proto)
    text = str(raised.value)
    assert [p.what for p in raised.value.problems] == [
        "Nope: the operator is not supported",
        "Dubble: the operator is not supported",
        "Sum: the operands do not go together: shapes (2,) and (3,) differ",
        "Grow: attribute 'speed' = 3 is not supported",
    ]
    assert "node 'a', toy.Nope (opset 1), inputs (f32<2>) and 1 more" in text
    assert "close to it are Double" in text


def test_failed_nodes_have_placeholders_of_inferred_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(IMPORTERS, ("", "Flatten"), raising=False)
    proto = model(
        "(float[1, 2] X, float[3] Z) => (float[1, 2] Y) { f = Flatten(X) Y = toy.Sum(f, Z) }"
    )
    with pytest.raises(UnsupportedError) as raised:
        load(proto)
    assert [p.what.split(":")[0] for p in raised.value.problems] == ["Flatten", "Sum"]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("Relu(X, X)", "the node has 2 inputs; the operator has 1"),
        ("Concat(X)", "attribute 'axis' is missing"),
        ('Softmax<axis = "a">(X)', "attribute 'axis' is of kind string, not int"),
        ("Reshape(X, I)", "input 1 (shape) cannot be i32"),
        ("Reshape(, X)", "input 0 (data) is missing"),
        ("Concat<axis = 0>(X, I)", "input 1 is i32 and input 0 is f32"),
        ("Upsample(X, X)", "the operator was removed from ONNX in opset 10"),
        ("Bogus(X)", "opset 17 of ONNX has no operator of that name"),
        ("org.Bogus(X)", "domain org is not part of ONNX"),
        (
            "Loop(, , X) <body = g (int64 i, bool c) => (bool c) {}>",
            "the body of Loop has 2 inputs",
        ),
        ('Constant<value_string = "a">()', "no supported value"),
    ],
)
def test_wrong_nodes(node: str, message: str) -> None:
    with pytest.raises((UnsupportedError, InvalidModelError)) as raised:
        load(model(f"(float[2] X, int32[2] I) => (float[2] Y) {{ Y = {node} }}"))
    assert message in str(raised.value)


def test_giant_constants_are_refused() -> None:
    text = "(float[2] X) => (float[2] Y) <int64[2] s = {16384, 16384}> { Y = ConstantOfShape(s) }"
    with pytest.raises(InvalidModelError, match="take more than 16 MiB"):
        load(model(text))
    grows = " ".join(f"g{i + 1} = toy.Grow<times = 1000>(g{i})" for i in range(4))
    with pytest.raises(InvalidModelError, match=r"more than 16 MiB|limit"):
        load(model(f"(float[2] X) => (float[2] g4) <float[1] g0 = {{1}}> {{ {grows} }}"))


def test_constants_of_equal_numbers_take_the_memory_of_one() -> None:
    text = "(float[2] X) => (float[2] Y) <int64[2] s = {8192, 8192}> { Y = ConstantOfShape(s) }"
    (value,) = load(model(text)).graph.outputs
    assert value.data is not None and value.data.shape == (8192, 8192)
    assert not any(value.data.strides)


def test_path_bytes_and_proto_are_the_same(tmp_path: Path) -> None:
    proto = model("(float[2] X) => (float[2] Y) { Y = toy.Double(X) }")
    data = proto.SerializeToString()
    path = tmp_path / "my net.onnx"
    path.write_bytes(data)
    assert load(str(path)).name == "my net"
    assert load(data).name == "graph"
    assert load(path).sha256 == load(data).sha256 == hashlib.sha256(data).hexdigest()
    assert load(proto).opset == 17


def test_newer_ir_version_is_noted() -> None:
    proto = model("(float[2] X) => (float[2] Y) { Y = toy.Double(X) }")
    proto.ir_version = 99
    assert "IR version 99" in load(proto).notes[0]


def test_typed_fields_and_half_precision() -> None:
    proto = model("(float[2] X) => (float16[2] h, int8[2] i) { }")
    del proto.graph.output[1]
    half = proto.graph.initializer.add(name="h", data_type=onnx.TensorProto.FLOAT16, dims=[2])
    half.int32_data.extend([0x3C00, 0xC000])
    assert load(proto).graph.outputs[0].data.tolist() == [1, -2]  # type: ignore[union-attr]


def test_integers_of_quantized_tensors_are_computed_with_as_integers() -> None:
    """In ONNX Max of two int8 tensors compares the integers, whatever QuantizeLinear meant."""
    proto = model(
        """(float[2] X) => (int8[2] Y, float[2] Z)
        <float s = {0.5}, int8 z = {-7}, int8[2] c = {-8, 100}> {
        q = QuantizeLinear(X, s, z) Y = Max(q, c) Z = DequantizeLinear(q, s, z) }""",
        head='<ir_version: 8, opset_import: ["" : 13]>',
    )
    graph = load(proto).graph
    found = evaluate(graph, {"X": np.float32([1, -2])})
    assert found["Y"].tolist() == [-5, 100]
    assert found["Z"].tolist() == [1, -2]


def test_operator_newer_than_the_opset_is_noted() -> None:
    proto = model("(float[2] X) => (float[2] Y) { Y = Gelu(X) }")
    assert load(proto).notes == ("Gelu is used as of opset 20; the model says opset 17",)


def test_giant_results_are_refused() -> None:
    proto = model(
        """(float[1, 1, 2, 2] X) => (float[1, 1, 2, 9000000000] Y)
        <float[4] s = {1, 1, 1, 4500000000}> { Y = Resize<mode = "nearest">(X, , s) }"""
    )
    with pytest.raises(InvalidModelError, match="the limit is 67108864"):
        load(proto)


def test_declared_outputs_are_compared() -> None:
    with pytest.raises(InvalidModelError, match="output 'Y' is declared as f64; the graph"):
        load(model("(float[2] X) => (double[2] Y) { Y = toy.Double(X) }"))
    proto = model("(float[2] X) => (float[N, 3] Y) { Y = toy.Double(X) }")
    assert load(proto).notes == ("output 'Y' is declared with shape [-1, 3], but is [2]",)


def test_deeply_nested_functions_are_refused() -> None:
    bodies = "\n".join(
        f'<domain: "local", opset_import: ["local" : 1]>\n'
        f"F{i} (x) => (y) {{ y = local.F{i + 1}(x) }}"
        for i in range(400)
    )
    bodies += '\n<domain: "local", opset_import: ["toy" : 1]>\nF400 (x) => (y) { y = toy.Same(x) }'
    with pytest.raises(InvalidModelError, match="nested more than"):
        load(model("(float[2] X) => (float[2] Y) { Y = local.F0(X) }", functions=bodies))


def test_many_nodes_are_imported_in_linear_time() -> None:
    proto = model("(float[2] X) => (float[2] t3000) { }")
    for i in range(3000):
        name = f"t{i}" if i else "X"
        node = proto.graph.node.add(op_type="Double", domain="toy", input=[name])
        node.output.append(f"t{i + 1}")
    start = time.perf_counter()
    assert len(load(proto).graph.nodes()) == 3000
    assert time.perf_counter() - start < 10


def test_many_problems_stop_the_import() -> None:
    proto = model("(float[2] X) => (float[2] t3000) { }")
    for i in range(3000):
        name = f"t{i}" if i else "X"
        node = proto.graph.node.add(op_type=f"Nope{i}", domain="toy", input=[name])
        node.output.append(f"t{i + 1}")
    with pytest.raises(UnsupportedError) as raised:
        load(proto)
    assert len(raised.value.problems) == 501
