from __future__ import annotations

from typing import Any

import imported
import numpy as np
import pytest

from glowmcu.errors import UnsupportedError
from glowmcu.ops._resize_taps import Axis


def x(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


SIZES = [(10, 8), (3, 4), (5, 9), (1, 1), (14, 21)]


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
)
def test_nearest(coordinates: str, rounding: str) -> None:
    data = {"x": x(1, 2, 5, 7)}
    for size in SIZES:
        imported.run(
            "Resize",
            data,
            {"s": i64(1, 2, *size)},
            inputs=["x", "", "", "s"],
            mode="nearest",
            nearest_mode=rounding,
            coordinate_transformation_mode=coordinates,
            opset=18,
        )


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(
    "coordinates",
    ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"],
)
def test_interpolation(coordinates: str, mode: str) -> None:
    data = {"x": x(2, 3, 5, 7)}
    for size in SIZES:
        imported.run(
            "Resize",
            data,
            {"s": i64(2, 3, *size)},
            inputs=["x", "", "", "s"],
            mode=mode,
            coordinate_transformation_mode=coordinates,
            opset=19,
            tolerance=2e-6 if mode == "linear" else 2e-5,
        )


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 2), (1, 1, 0.6, 0.6), (1, 1, 1.7, 0.4)])
def test_resize_of_opset_10_and_11(mode: str, scales: tuple[float, ...]) -> None:
    data = {"x": x(1, 2, 5, 8)}
    imported.run("Resize", data, {"s": f32(*scales)}, opset=10, mode=mode, tolerance=2e-6)
    names = ["x", "r", "s"]
    constants = {"r": f32(), "s": f32(*scales)}
    imported.run("Resize", data, constants, inputs=names, opset=11, mode=mode, tolerance=2e-6)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(mode: str) -> None:
    data = {"x": x(1, 2, 3, 4)}
    imported.run("Upsample", data, {"s": f32(1, 1, 2, 2)}, opset=9, mode=mode, tolerance=1e-6)
    imported.run("Upsample", data, {"s": f32(1, 1, 1.5, 3)}, opset=9, mode=mode, tolerance=1e-6)
    imported.run("Upsample", data, opset=7, mode=mode, scales=[1.0, 1.0, 2.0, 3.0], tolerance=1e-6)


def test_doubling_needs_no_tables() -> None:
    function = imported.run("Upsample", {"x": x(1, 2, 3, 4)}, {"s": f32(1, 1, 2, 2)}, opset=9)
    kinds = [type(i).__name__ for i in function.instructions]
    assert kinds == ["StridedCopy"] * 3


@pytest.mark.parametrize(
    "attributes",
    [
        {"antialias": 1, "mode": "linear"},
        {"antialias": 1, "mode": "cubic"},
        {"mode": "cubic", "exclude_outside": 1},
        {"mode": "cubic", "cubic_coeff_a": -0.5, "coordinate_transformation_mode": "asymmetric"},
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
    ],
)
@pytest.mark.parametrize("scales", [(0.6, 0.6), (2.3, 0.45), (1.6, 2.4)])
def test_rarer_modes(attributes: dict[str, Any], scales: tuple[float, float]) -> None:
    data, constants = {"x": x(1, 2, 6, 8)}, {"s": f32(1, 1, *scales)}
    imported.run(
        "Resize",
        data,
        constants,
        inputs=["x", "", "s"],
        opset=19,
        oracle="reference",
        tolerance=2e-5,
        **attributes,
    )


def test_crop_and_resize() -> None:
    data = {"x": x(1, 1, 6, 8)}
    for roi in ((0, 0, 0.4, 0.6, 1, 1, 0.6, 0.8), (0, 0, 0.2, 0.3, 1, 1, 1.2, 0.8)):
        constants = {"r": f32(*roi), "s": i64(1, 1, 3, 5)}
        imported.run(
            "Resize",
            data,
            constants,
            inputs=["x", "r", "", "s"],
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=10.0,
            opset=18,
            tolerance=2e-5,
        )


def test_axes_and_aspect_ratio() -> None:
    data = {"x": x(1, 2, 6, 8)}
    for policy in ("stretch", "not_larger", "not_smaller"):
        imported.run(
            "Resize",
            data,
            {"s": i64(4, 7)},
            inputs=["x", "", "", "s"],
            axes=[2, 3],
            keep_aspect_ratio_policy=policy,
            opset=18,
        )
    imported.run(
        "Resize",
        data,
        {"s": f32(2, 0.5)},
        inputs=["x", "", "s"],
        axes=[3, 2],
        opset=18,
        mode="linear",
        oracle="reference",
        tolerance=1e-6,
    )


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((2, 3, 5), (2, 3, 8)),
        ((2, 5, 3), (2, 9, 3)),
        ((1, 4, 6, 3), (1, 8, 3, 3)),
        ((4, 6), (3, 9)),
        ((1, 2, 3, 4, 5), (1, 2, 6, 3, 10)),
        ((2, 3, 4, 5), (2, 3, 4, 5)),
    ],
)
def test_other_ranks(mode: str, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    imported.run(
        "Resize",
        {"x": x(*shape)},
        {"s": i64(*sizes)},
        inputs=["x", "", "", "s"],
        mode=mode,
        oracle="reference",
        tolerance=1e-6,
    )


def test_other_types_move_and_unknown_modes_are_named() -> None:
    data = {"x": np.arange(12, dtype=np.int8).reshape(1, 1, 3, 4)}
    constants = {"s": i64(1, 1, 5, 7)}
    names = ["x", "", "", "s"]
    imported.run("Resize", data, constants, inputs=names)
    for attributes, word in (
        ({"mode": "linear"}, "linear"),
        ({"mode": "fancy"}, "fancy"),
        ({"coordinate_transformation_mode": "fancy"}, "fancy"),
        ({"nearest_mode": "fancy"}, "fancy"),
    ):
        proto = imported.helper.make_node("Resize", names, ["y"], **attributes)
        with pytest.raises(UnsupportedError, match=word):
            imported.import_node(proto, data, constants, 18)


def test_taps_never_leave_the_axis() -> None:
    for coordinates in ("half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"):
        for size, out in ((5, 11), (7, 3), (1, 4), (4, 1)):
            axis = Axis(size, out, out / size, coordinates)
            for mode in ("linear", "cubic"):
                index, weight = axis.taps(mode, -0.75, True, False)
                assert index.min() >= 0 and index.max() < size
                np.testing.assert_allclose(weight.sum(axis=1), 1, rtol=1e-6)
            index, part = axis.linear()
            assert np.all(index + (part > 0) < size)
