"""Convolutions, pools and matrix products from ONNX against ONNX Runtime."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from imported import run

from glowmcu.errors import GlowmcuError

RNG = np.random.default_rng(3)
TOLERANCE = 2e-4


def real(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((1, 3, 7, 5), (4, 3, 3, 3), {"pads": [1, 0, 1, 0], "strides": [2, 2]}),
        ((2, 1, 6, 5), (2, 1, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ((1, 1, 6, 5), (2, 1, 3, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
        ((1, 4, 5, 5), (6, 2, 3, 3), {"group": 2, "auto_pad": "VALID"}),
        ((1, 4, 8, 9), (8, 1, 3, 2), {"group": 4, "dilations": [2, 3], "pads": [0, 1, 2, 3]}),
        ((1, 5, 8, 9), (5, 1, 3, 3), {"group": 5, "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}),
        ((1, 3, 11), (4, 3, 3), {"pads": [1, 2], "strides": [2], "dilations": [2]}),
        ((2, 6, 11), (6, 1, 4), {"group": 6, "auto_pad": "SAME_LOWER"}),
        ((1, 2, 4, 5, 6), (3, 2, 3, 2, 3), {"pads": [1, 0, 1, 0, 1, 1], "strides": [1, 2, 1]}),
        ((2, 4, 6, 5, 4), (6, 2, 2, 2, 2), {"group": 2, "strides": [2, 1, 1]}),
        ((1, 1, 7, 4, 4), (2, 1, 1, 3, 3), {"strides": [3, 1, 1]}),
        ((1, 1, 7, 4, 4), (2, 1, 3, 1, 2), {"dilations": [2, 1, 1], "pads": [2, 0, 0, 2, 0, 1]}),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_conv(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], bias: bool
) -> None:
    constants = {"w": real(*w)} | ({"b": real(w[0])} if bias else {})
    run("Conv", {"x": real(*x)}, constants, tolerance=TOLERANCE, **attributes)


def test_conv_same_upper_with_dilation() -> None:
    run(
        "Conv",
        {"x": real(1, 1, 5, 5)},
        {"w": real(1, 1, 2, 2)},
        auto_pad="SAME_UPPER",
        dilations=[2, 2],
        oracle="reference",
        tolerance=TOLERANCE,
    )


def test_conv_with_weights_at_run_time() -> None:
    feeds = {"x": real(1, 2, 5, 6), "w": real(3, 2, 2, 2), "b": real(3)}
    run("Conv", feeds, pads=[1, 1, 0, 0], tolerance=TOLERANCE)


def test_conv_of_four_dimensions_is_refused_with_a_sentence() -> None:
    with pytest.raises(GlowmcuError, match="4 spatial dimensions"):
        run(
            "Conv",
            {"x": real(1, 1, 3, 3, 3, 3)},
            {"w": real(1, 1, 2, 2, 2, 2)},
            oracle="reference",
        )


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((1, 2, 3, 4), (2, 5, 3, 3), {"strides": [2, 2]}),
        ((1, 4, 3, 3), (4, 3, 3, 3), {"group": 2, "strides": [2, 2]}),
        ((1, 1, 3, 3), (1, 2, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
        ((1, 1, 3, 3), (1, 2, 3, 3), {"strides": [3, 2], "output_shape": [8, 5]}),
        ((1, 1, 3, 3), (1, 2, 3, 3), {"strides": [3, 2], "output_padding": [1, 1]}),
        (
            (1, 2, 4, 3),
            (2, 1, 3, 2),
            {"strides": [2, 3], "pads": [1, 0, 0, 1], "dilations": [2, 1]},
        ),
        ((1, 2, 4, 3), (2, 1, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 2, 4, 3), (2, 1, 4, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ((2, 3, 7), (3, 2, 4), {"strides": [2], "pads": [1, 2]}),
        ((2, 4, 7), (4, 2, 4), {"strides": [2], "group": 4}),
    ],
)
def test_conv_transpose(x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    constants = {"w": real(*w), "b": real(w[1] * attributes.get("group", 1))}
    run("ConvTranspose", {"x": real(*x)}, constants, tolerance=TOLERANCE, **attributes)


POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 6, 7), {"kernel_shape": [2, 3], "strides": [2, 1]}),
    ((2, 3, 5, 5), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ((1, 1, 4, 4), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    (
        (1, 2, 7, 5),
        {"kernel_shape": [3, 2], "strides": [3, 2], "pads": [1, 1, 0, 1], "ceil_mode": 1},
    ),
    ((1, 2, 5, 5), {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 2, 6, 5), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 9), {"kernel_shape": [4], "strides": [3], "pads": [2, 1]}),
]
CUBES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 4, 5, 6), {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2]}),
    ((1, 2, 5, 4, 7), {"kernel_shape": [3, 2, 4], "pads": [1, 0, 2, 0, 1, 1], "ceil_mode": 1}),
    ((1, 1, 6, 5, 4), {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2], "auto_pad": "SAME_UPPER"}),
]


@pytest.mark.parametrize(("x", "attributes"), POOLS + CUBES)
def test_max_pool(x: tuple[int, ...], attributes: dict[str, Any]) -> None:
    run("MaxPool", {"x": real(*x) - 2}, tolerance=TOLERANCE, **attributes)


@pytest.mark.parametrize("dilations", [[2, 2], [1, 2]])
def test_dilated_pools(dilations: list[int]) -> None:
    for op in ("MaxPool", "AveragePool"):
        attributes = {"kernel_shape": [2, 2], "dilations": dilations, "strides": [1, 2]}
        run(op, {"x": real(1, 2, 6, 7)}, opset=19, tolerance=TOLERANCE, **attributes)


@pytest.mark.parametrize(
    ("x", "attributes", "inclusive"),
    [(*pair, n) for pair, n in itertools.product(POOLS + CUBES, (0, 1))],
)
def test_average_pool(x: tuple[int, ...], attributes: dict[str, Any], inclusive: int) -> None:
    attributes = attributes | {"count_include_pad": inclusive}
    run("AveragePool", {"x": real(*x)}, opset=19, tolerance=TOLERANCE, **attributes)


@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (2, 3, 7), (1, 2, 3, 4, 5)])
def test_global_pools(shape: tuple[int, ...]) -> None:
    for op in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
        run(op, {"x": real(*shape)}, tolerance=TOLERANCE)


def test_lp_pool() -> None:
    for p in (1, 2, 3):
        run("LpPool", {"x": real(1, 2, 6, 5)}, kernel_shape=[3, 2], p=p, tolerance=TOLERANCE)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_max_pool_of_bytes(dtype: Any) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = RNG.integers(low, high + 1, (1, 2, 5, 6)).astype(dtype)
    run("MaxPool", {"x": x}, kernel_shape=[2, 3], pads=[1, 1, 0, 1])


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(("x", "attributes"), POOLS)
def test_max_pool_indices(x: tuple[int, ...], attributes: dict[str, Any], order: int) -> None:
    run("MaxPool", {"x": real(*x)}, outputs=2, storage_order=order, **attributes)


def test_pool_of_doubles_is_refused_with_a_sentence() -> None:
    with pytest.raises(GlowmcuError, match="without quantization"):
        run("AveragePool", {"x": np.zeros((1, 1, 4, 4))}, kernel_shape=[2, 2], oracle="reference")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((4,), (2, 4, 5)),
        ((2, 3, 4), (4,)),
        ((4,), (4,)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((2, 1, 2, 3, 4), (3, 1, 4, 1)),
    ],
)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    run("MatMul", {"a": real(*a), "b": real(*b)}, tolerance=TOLERANCE)


@pytest.mark.parametrize("bias", [(), (1,), (4,), (3, 1), (1, 4), (3, 4), None])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (1, 1)])
def test_gemm(bias: tuple[int, ...] | None, trans_a: int, trans_b: int) -> None:
    a = real(*((2, 3) if trans_a else (3, 2)))
    b = real(*((4, 2) if trans_b else (2, 4)))
    c = {} if bias is None else {"c": real(*bias)}
    for alpha, beta in ((1.0, 1.0), (0.5, 2.0), (2.0, 0.0)):
        attributes = {"transA": trans_a, "transB": trans_b, "alpha": alpha, "beta": beta}
        run("Gemm", {"a": a}, {"b": b} | c, tolerance=TOLERANCE, **attributes)
    run("Gemm", {"a": a, "b": b} | c, transA=trans_a, transB=trans_b, tolerance=TOLERANCE)
