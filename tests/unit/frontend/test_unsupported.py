"""What stops a model is told all at once, with reasons; the rest can still be looked at."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from glowmcu import frontend
from glowmcu.driver import compile_network
from glowmcu.errors import DoesNotFitError, UnsupportedError
from glowmcu.graph.evaluate import evaluate
from glowmcu.options import Options
from glowmcu.survey import survey

HEADER = '<ir_version: 8, opset_import: ["" : 18, "org" : 1]>\n'
MIXED = """mixed (float[1, 4] x, float[4, 8] w, seq(float[2]) s, float[N, M] u)
    => (float[1, 8] y, float[1, 4] z) {
    a = MatMul(x, w)
    b = Relu(a)
    c = RandomNormalLike(b)
    d = Add(b, c)
    y = Tanh(d)
    e = org.Nope(u)
    n = SequenceLength(s)
    f = Add(e, n)
    g = NonZero(f)
    h = Sigmoid(x)
    z = Add(h, g)
}"""


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def test_everything_is_told_in_one_pass() -> None:
    found = frontend.survey(model(MIXED))
    assert found.error is not None
    said = [p.what for p in found.error.problems]
    assert [w.split(" (")[0] for w in said] == [
        "input 's' is not a tensor",
        "input 'u' has unknown dimensions: 1",
        "RandomNormalLike: the result is random",
        "Nope: the operator is not supported",
        "SequenceLength: sequences are not supported, as they are not tensors of numbers",
    ]
    assert all(p.hint for p in found.error.problems)
    with pytest.raises(type(found.error)) as raised:
        frontend.load(model(MIXED))
    assert raised.value.problems == found.error.problems


def test_the_supported_part_has_costs() -> None:
    found = survey(model(MIXED), Options())
    assert len(found.problems) == 5
    assert found.compilation is not None
    report = found.compilation.unit.report
    assert report["macs"] == 4 * 8
    layers = " ".join(layer["name"] for layer in report["layers"])
    assert all(name in layers for name in ("a", "b", "d", "h"))


def test_nothing_supported_has_no_costs() -> None:
    found = survey(model("none (string[2] x) => (string[2] y) { y = org.Nope(x) }"), Options())
    assert len(found.problems) == 2
    assert found.compilation is None


def test_every_limit_is_told_and_the_costs_too() -> None:
    text = "good (float[1, 4] x) => (float[1, 2] y) <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> "
    good = model(text + "{ y = MatMul(x, w) }")
    limits = Options(ram_limit=3, flash_limit=3)
    found = survey(good, limits)
    assert [p.what.split(" ")[1] for p in found.problems] == ["smallest", "weights"]
    assert found.compilation is not None
    assert found.compilation.unit.report["macs"] == 8
    with pytest.raises(DoesNotFitError) as raised:
        compile_network(good, limits)
    assert raised.value.problems == found.problems
    assert survey(good, Options()).problems == ()


@pytest.mark.parametrize("op", ["OptionalHasElement", "OptionalGetElement"])
def test_optional_values_that_are_tensors(op: str) -> None:
    x = np.arange(3, dtype=np.float32)
    kind = "bool" if op == "OptionalHasElement" else "float[3]"
    graph = frontend.load(model(f"o (float[3] x) => ({kind} y) {{ y = {op}(x) }}")).graph
    wanted = ReferenceEvaluator(model(f"o (float[3] x) => ({kind} y) {{ y = {op}(x) }}")).run(
        None, {"x": x}
    )
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], wanted[0])


@pytest.mark.parametrize(
    ("node", "why", "hint"),
    [
        ("StringConcat(x, x)", "tensors of numbers", "indices of tokens"),
        ("SequenceConstruct(x)", "any number of tensors", "Concat"),
        ("Optional(x)", "known at run time only", "leave it out"),
        ("ImageDecoder(u)", "decodes image files", "the pixels"),
        ("Multinomial(x)", "draws random numbers", "the probabilities"),
        ("org.Reluu(x)", "not part of ONNX", "close to it are Relu"),
        ("org.Quite(x)", "not part of ONNX", "plugin"),
    ],
)
def test_reasons(node: str, why: str, hint: str) -> None:
    proto = model(f"bad (float[2, 2] x, uint8[N] u) => (float[2, 2] y) {{ y = {node} }}")
    if "StringConcat" in node:
        proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    proto.opset_import[0].version = 22
    with pytest.raises(UnsupportedError) as raised:
        frontend.load(proto)
    problem = raised.value.problems[-1]
    assert why in problem.why and hint in problem.hint
