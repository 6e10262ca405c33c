"""Matrix products and convolutions of integers and float64, in generated C, against ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import glowmcu
from glowmcu import onnx_backend

RNG = np.random.default_rng(11)
Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.cc


def network(
    op: str, feeds: dict[str, Array], constants: dict[str, Array], inputs: str, **at: Any
) -> onnx.ModelProto:
    node = helper.make_node(op, ["" if n == "-" else n for n in inputs.split()], ["y"], **at)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    tensors = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    first = next(iter({**feeds, **constants}.values()))
    kind = np.dtype(np.int32) if op.endswith("Integer") else first.dtype
    y = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(kind), None)
    graph = helper.make_graph([node], "net", infos, [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def computed(
    op: str, feeds: dict[str, Array], constants: dict[str, Array], inputs: str, **at: Any
) -> tuple[Array, Array]:
    """Return what the generated C gives, and ONNX's reference."""
    model = network(op, feeds, constants, inputs, **at)
    (right,) = ReferenceEvaluator(model).run(None, feeds)
    (found,) = onnx_backend.GlowmcuRep(model).run(feeds)
    assert found.dtype == right.dtype
    assert found.shape == right.shape
    return found, right


def integers(dtype: Any, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


KINDS = [np.int8, np.uint8]


@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize("right", KINDS)
@pytest.mark.parametrize("fixed", [True, False])
def test_matrix_products_with_zero_points(left: Any, right: Any, fixed: bool) -> None:
    a, b = integers(left, 2, 3, 6), integers(right, 6, 5)
    points = {"za": np.asarray(9, left), "zb": integers(right, 5)}
    known = {"b": b, **points} if fixed else {}
    feeds = {"a": a} if fixed else {"a": a, "b": b, **points}
    for inputs in ("a b za zb", "a b za", "a b - zb", "a b"):
        used = set(inputs.split())
        found, wanted = computed(
            "MatMulInteger",
            {k: v for k, v in feeds.items() if k in used},
            {k: v for k, v in known.items() if k in used},
            inputs,
        )
        assert np.array_equal(found, wanted), inputs


@pytest.mark.parametrize("fixed", [True, False])
def test_zero_points_of_rows(fixed: bool) -> None:
    a, b, za = integers(np.uint8, 3, 6), integers(np.int8, 6, 5), integers(np.uint8, 3)
    constants = {"b": b, "za": za} if fixed else {"b": b}
    feeds = {"a": a} if fixed else {"a": a, "za": za}
    found, _ = computed("MatMulInteger", feeds, constants, "a b")
    assert np.array_equal(found, a.astype(np.int32) @ b.astype(np.int32))
    model = network("MatMulInteger", feeds, constants, "a b za")
    (less,) = onnx_backend.GlowmcuRep(model).run(feeds)
    assert np.array_equal(less, (a.astype(np.int32) - za[:, None].astype(np.int32)) @ b)


def test_vectors() -> None:
    a, b = integers(np.uint8, 6), integers(np.int8, 6, 5)
    point = {"za": np.asarray(9, np.uint8)}
    found, wanted = computed("MatMulInteger", {"a": a}, {"b": b, **point}, "a b za")
    assert np.array_equal(found, wanted)


def test_long_sums_are_exact() -> None:
    size = 150_001  # the sum passes 2^31 and wraps; float32 holds integers up to 2^24
    a = np.full((1, size), 255, np.uint8)
    b = np.where(np.arange(size) % 7 == 0, 126, 127).astype(np.int8).reshape(size, 1)
    for point in (0, 3):
        constants = {"b": b, "za": np.asarray(point, np.uint8)}
        found, wanted = computed("MatMulInteger", {"a": a}, constants, "a b za")
        assert np.array_equal(found, wanted)
    real = (a.astype(np.int64) @ b.astype(np.int64)).item()
    assert real > 1 << 31 and real != int(np.float32(real))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_wide_integers_wrap(dtype: Any) -> None:
    a, b = integers(dtype, 2, 3, 6), integers(dtype, 6, 5)
    for feeds, constants in (({"a": a}, {"b": b}), ({"a": a, "b": b}, {})):
        found, wanted = computed("MatMul", feeds, constants, "a b")
        assert np.array_equal(found, wanted)
    small = RNG.integers(0, 99, (3, 6)).astype(dtype)
    c = RNG.integers(0, 99, (3,)).astype(dtype)
    constants = {"b": RNG.integers(0, 99, (3, 6)).astype(dtype), "c": c}
    found, wanted = computed("Gemm", {"a": small}, constants, "a b c", transB=1, alpha=2.0)
    assert np.array_equal(found, wanted)


def test_fractions_of_integers_are_refused() -> None:
    a = integers(np.int32, 2, 2)
    with pytest.raises(glowmcu.errors.UnsupportedError, match="alpha"):
        glowmcu.compile(network("Gemm", {"a": a}, {"b": a}, "a b", alpha=0.5))


@pytest.mark.parametrize("known", [("w", "zx", "zw"), ("w", "zw"), ()])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("pads", [[1, 0, 2, 1], [0, 0, 0, 0]])
def test_integer_convolutions(known: tuple[str, ...], group: int, pads: list[int]) -> None:
    x, w = integers(np.uint8, 2, 4, 7, 6), integers(np.int8, 6, 4 // group, 3, 2)
    arrays = {"x": x, "w": w, "zx": np.asarray(77, np.uint8), "zw": np.asarray(-3, np.int8)}
    feeds = {n: a for n, a in arrays.items() if n not in known}
    constants = {n: arrays[n] for n in known}
    attributes = {"group": group, "pads": pads, "strides": [2, 1]}
    model = network("ConvInteger", feeds, constants, "x w zx zw", **attributes)
    (found,) = onnx_backend.GlowmcuRep(model).run(feeds)
    plain = network(
        "Conv",
        {"x": x.astype(np.float64) - 77.0},
        {"w": w.astype(np.float64) + 3.0},
        "x w",
        **attributes,
    )
    (right,) = ReferenceEvaluator(plain).run(None, {"x": x.astype(np.float64) - 77.0})
    assert found.dtype == np.int32
    assert np.array_equal(found, right.astype(np.int32))


LAYERS: list[tuple[str, dict[str, tuple[int, ...]], str, dict[str, Any]]] = [
    ("MatMul", {"a": (2, 3, 6), "b": (6, 5)}, "a b", {}),
    ("Gemm", {"a": (3, 6), "b": (5, 6), "c": (5,)}, "a b c", {"transB": 1, "alpha": 0.3}),
    ("Conv", {"x": (1, 3, 7), "b": (4, 3, 3), "c": (4,)}, "x b c", {"pads": [1, 1]}),
    ("Conv", {"x": (1, 4, 7, 6), "b": (4, 1, 3, 3), "c": (4,)}, "x b c", {"group": 4}),
    ("Softmax", {"x": (2, 3, 5)}, "x", {"axis": 1}),
    ("LogSoftmax", {"x": (2, 3, 5)}, "x", {}),
    ("Conv", {"x": (1, 2, 5, 6, 4), "b": (3, 2, 2, 3, 2)}, "x b", {"strides": [1, 2, 1]}),
]


@pytest.mark.parametrize(("op", "shapes", "inputs", "attributes"), LAYERS)
@pytest.mark.parametrize("fixed", [True, False])
def test_doubles(
    op: str, shapes: dict[str, tuple[int, ...]], inputs: str, attributes: Any, fixed: bool
) -> None:
    """The result is that of double arithmetic: float32 is a million times further away."""
    arrays = {n: RNG.normal(size=s) for n, s in shapes.items()}
    first = inputs.split()[0]
    feeds = {first: arrays[first]} if fixed else arrays
    constants = {n: a for n, a in arrays.items() if n not in feeds}
    found, wanted = computed(op, feeds, constants, inputs, **attributes)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_what_is_computed_in_float_says_so() -> None:
    x = RNG.normal(size=(1, 2, 4, 4))
    said = "AveragePool of float64 is computed in float32"
    compiled = glowmcu.compile(network("AveragePool", {"x": x}, {}, "x", kernel_shape=[2, 2]))
    assert said in compiled.report["notes"]
    signal = {"s": RNG.normal(size=(1, 8, 1))}
    transformed = glowmcu.compile(network("DFT", signal, {}, "s", axis=1))
    assert "DFT of float64 is computed in float32" in transformed.report["notes"]
    plain = glowmcu.compile(network("MatMul", {"x": x}, {"b": x[0, 0]}, "x b"))
    assert not any("float64" in n for n in plain.report["notes"])


def test_doubles_are_quantized_as_float() -> None:
    x, w = RNG.normal(size=(20, 6)), RNG.normal(size=(6, 5))
    compiled = glowmcu.compile(
        network("MatMul", {"x": x[:1]}, {"w": w}, "x w"),
        quantize="int8",
        calibration={"x": x[:, None]},
    )
    kinds = [type(i).__name__ for i in compiled.compilation.function.instructions]
    assert "DenseS8" in kinds


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("MatMulInteger", ((3, 6), (6, 5)), {}),
        ("ConvInteger", ((1, 2, 5, 5), (3, 2, 3, 3)), {"pads": [1, 1, 1, 1]}),
    ],
)
def test_constant_zero_points_leave_bytes_as_they_are(
    op: str, shapes: Any, attributes: dict[str, Any]
) -> None:
    constants = {
        "w": integers(np.int8, *shapes[1]),
        "zx": np.asarray(128, np.uint8),
        "zw": np.asarray(0, np.int8),
    }
    feeds = {"x": integers(np.uint8, *shapes[0])}
    made = glowmcu.compile(network(op, feeds, constants, "x w zx zw", **attributes)).compilation
    (product,) = [i for i in made.function.instructions if type(i).__name__ == "Contract"]
    assert {str(b.type.dtype) for b in product.inputs()} == {"u8", "i8"}
    assert {str(b.type.dtype) for b in made.function.buffers()} <= {"u8", "i8", "i32"}
