"""States that a network keeps between calls: every level against a loop around ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from glowmcu.driver import Compilation, compile_network
from glowmcu.errors import OptionError
from glowmcu.instr.evaluate import evaluate
from glowmcu.options import Options
from glowmcu.verify.host import HostLibrary
from glowmcu.verify.levels import verify_compilation
from glowmcu.verify.sanitize import run_sanitized

Array = np.ndarray[Any, Any]
WEIGHTS = np.random.default_rng(3).uniform(-1, 1, (2, 1, 20, 5)).astype(np.float32)
RNG = np.random.default_rng(4)


def model(text: str, **constants: Array) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {text}')
    for name, array in constants.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return proto


LSTM = (
    model(
        "(float[1, 1, 5] x, float[1, 1, 5] h, float[1, 1, 5] c) => "
        "(float[1, 1, 5] y, float[1, 1, 5] h2, float[1, 1, 5] c2) "
        "{ s, h2, c2 = LSTM<hidden_size = 5>(x, w, r, , , h, c) y = Mul(h2, x) }",
        w=WEIGHTS[0],
        r=WEIGHTS[1],
    ),
    {"h": "h2", "c": "c2"},
)
DELAY = (
    model(
        "(float[3] x, float[3] a, float[3] b) => (float[3] y, float[3] a2, float[3] b2, "
        "float[3] old) { y = Sub(x, b) a2 = Neg(x) b2 = Identity(a) old = Identity(b) }"
    ),
    {"a": "a2", "b": "b2"},
)
SWAP = (
    model(
        "(float[3] x, float[3] a, float[3] b) => (float[3] y, float[3] a2, float[3] b2) "
        "{ y = Add(x, b) a2 = Add(b, x) b2 = Identity(a) }"
    ),
    {"a": "b2", "b": "a2"},
)
WINDOW = (
    model(
        "(float[1, 2] x, float[1, 6] past) => (float[1, 1] y, float[1, 6] next) "
        "<int64[1] two = {2}, int64[1] eight = {8}, int64[1] axis = {1}> "
        "{ all = Concat<axis = 1>(past, x) next = Slice(all, two, eight, axis) "
        "y = ReduceMean<axes = [1], keepdims = 1>(all) }"
    ),
    {"past": "next"},
)
SOMETIMES = (
    model(
        "(float[3] x, float[3] h) => (float[3] y, float[3] h2) <int64 zero = {0}> "
        "{ t = ReduceMean<keepdims = 0>(x) c = Less(t, h0) h2 = If(c) <then_branch = g () => "
        "(float[3] a) { s = CumSum(h, zero) a = Add(s, x) }, else_branch = e () => (float[3] b) "
        "{ b = Identity(h) }> y = Softmax(h2) }",
        h0=np.array(0.0, np.float32),
    ),
    {"h": "h2"},
)
NETWORKS = {
    "lstm": LSTM,
    "delay": DELAY,
    "swap": SWAP,
    "window": WINDOW,
    "sometimes": SOMETIMES,
}


def expected(
    proto: onnx.ModelProto, states: dict[str, str], samples: list[Array]
) -> list[dict[str, Array]]:
    """Run ONNX Runtime on a sequence, handing the states on."""
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    shapes = {i.name: i.shape for i in session.get_inputs()}
    known = {s: np.zeros(shapes[s], np.float32) for s in states}
    names = [o.name for o in session.get_outputs()]
    results = []
    for x in samples:
        found = dict(zip(names, session.run(None, {"x": x, **known}), strict=True))
        known = {state: found[source] for state, source in states.items()}
        results.append({n: a for n, a in found.items() if n not in states.values()})
    return results


def case(name: str) -> tuple[Compilation, list[Array], list[dict[str, Array]]]:
    proto, states = NETWORKS[name]
    compilation = compile_network(proto, Options(name=name, state=states))
    shape = compilation.unit.inputs[0].type.shape
    samples = [RNG.uniform(-1, 1, shape).astype(np.float32) for _ in range(5)]
    return compilation, samples, expected(proto, states, samples)


@pytest.mark.cc
@pytest.mark.parametrize("name", NETWORKS)
def test_a_sequence_at_every_level(name: str) -> None:
    compilation, samples, right = case(name)
    assert [s.name for s in compilation.unit.inputs] == ["x"]
    library = HostLibrary(compilation.unit)
    sanitized = run_sanitized(compilation.unit, [{"x": x} for x in samples])
    known: dict[str, Array] = {}
    plan = compilation.plan
    for x, want, clean in zip(samples, right, sanitized, strict=True):
        known = evaluate(compilation.function, {"x": x, **known}, plan.offsets, plan.size)
        found = library.run({"x": x})
        assert found.keys() == want.keys()
        for output, array in want.items():
            np.testing.assert_allclose(known[output], array, atol=1e-6)
            np.testing.assert_allclose(found[output], array, atol=1e-6)
            np.testing.assert_array_equal(found[output], clean[output])
    library.reset()
    for output, array in library.run({"x": samples[0]}).items():
        np.testing.assert_allclose(array, right[0][output], atol=1e-6)


@pytest.mark.cc
def test_verify_takes_samples_as_a_sequence() -> None:
    compilation, samples, _ = case("lstm")
    found = verify_compilation(compilation, {"x": np.stack(samples)})
    assert [c.passed for c in found] == [True] * 3


@pytest.mark.qemu
@pytest.mark.usefixtures("qemu")
def test_states_on_a_board() -> None:
    proto, states = LSTM
    options = Options(name="lstm", state=states, target="cortex-m4", self_test=True)
    compilation = compile_network(proto, options)
    x = RNG.uniform(-1, 1, (4, 1, 1, 5)).astype(np.float32)
    found = verify_compilation(compilation, {"x": x}, board="mps2-an386")
    assert [c.passed for c in found] == [True] * 4


@pytest.mark.cc
def test_states_of_quantized_networks() -> None:
    proto, states = WINDOW
    data = RNG.uniform(-1, 1, (40, 1, 2)).astype(np.float32)
    options = Options(name="window", state=states, quantize="int8")
    compilation = compile_network(proto, options, {"x": data})
    right = expected(proto, states, list(data))
    library = HostLibrary(compilation.unit)
    slot = compilation.unit.outputs[0]
    assert slot.type.quant is not None
    for x, want in zip(data, right, strict=True):
        feed = x
        quant = compilation.unit.inputs[0].type.quant
        if quant is not None:
            feed = np.clip(np.rint(x / quant.scale[0]) + quant.zero_point[0], -128, 127)
            feed = feed.astype(np.int8)
        got = library.run({"x": feed})[slot.name].astype(np.float32)
        real = (got - slot.type.quant.zero_point[0]) * slot.type.quant.scale[0]
        np.testing.assert_allclose(real, want["y"], atol=0.03)


def test_a_state_lies_in_place_of_the_next_one() -> None:
    compilation, _, _ = case("lstm")
    kinds = [type(i).__name__ for i in compilation.function.instructions]
    assert kinds == ["RecurrentF32", "Map"]


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ({"z": "h2"}, "names 'z', which is not an input"),
        ({"h": "z"}, "names 'z', which is not an output"),
        ({"h": "h2", "c": "h2"}, "two states take over the same output"),
        ({"x": "wide"}, "pairs tensors of different types"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(states: dict[str, str], message: str) -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(LSTM[0])
    proto.graph.node.append(onnx.helper.make_node("Concat", ["x", "x"], ["wide"], axis=2))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("wide", 1, [1, 1, 10]))
    with pytest.raises(OptionError, match=message):
        compile_network(proto, Options(state=states))
