"""Importers of Resize and Upsample: images become Resize2D, the rest goes axis by axis."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.graph.graph import Value
from glowmcu.ops._resize_taps import COORDINATES, ROUNDINGS, Axis
from glowmcu.ops.base import onnx_op
from glowmcu.ops.gather import Gather
from glowmcu.ops.interpolate import Interpolate
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import normal_axis, reshaped
from glowmcu.ops.resize import Resize2D
from glowmcu.ops.transpose import to_nchw, to_nhwc


@dataclass(frozen=True)
class _Style:
    """What a Resize node asks for beside the sizes."""

    mode: str
    rounding: str
    cubic_a: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0


@onnx_op("Resize")
def import_resize(node: OnnxNode) -> Value:
    """All modes and coordinate transformations; sizes, scales and roi must be constant."""
    x = node.value(0)
    if node.opset < 11:
        return _upsampled(node, x, node.const(1, "the scales"))
    coordinates = node.attr("coordinate_transformation_mode", "half_pixel")
    style = _Style(
        node.attr("mode", "nearest"),
        node.attr("nearest_mode", "round_prefer_floor"),
        node.attr("cubic_coeff_a", -0.75),
        bool(node.attr("antialias", 0)),
        bool(node.attr("exclude_outside", 0)),
        node.attr("extrapolation_value", 0.0),
    )
    if coordinates not in COORDINATES:
        node.fail(f"coordinate_transformation_mode '{coordinates}' is not known")
    return _resized(node, x, _axes(node, x, coordinates), style)


@onnx_op("Upsample")
def import_upsample(node: OnnxNode) -> Value:
    """Modes nearest and linear; the scales, an attribute or an input, must be constant."""
    x = node.value(0)
    if node.opset < 7:
        scales = [1.0, 1.0, node.attr("height_scale", 1.0), node.attr("width_scale", 1.0)]
        return _upsampled(node, x, np.asarray(scales, np.float32))
    given = node.attr("scales")
    if given is not None:
        return _upsampled(node, x, np.asarray(given, np.float32))
    return _upsampled(node, x, node.const(1, "the scales"))


def _upsampled(node: OnnxNode, x: Value, scales: Array | None) -> Value:
    """Resize as before opset 11: asymmetric, and elements rounded down, or up when shrinking."""
    if scales is None or scales.size != x.type.rank:
        node.fail(f"there is not one scale for each of {x.type.rank} dimensions")
    assert scales is not None
    mode = node.attr("mode", "nearest")
    axes = {
        i: Axis(size, _scaled(size, scale), float(scale), "asymmetric")
        for i, (size, scale) in enumerate(zip(x.shape, scales.reshape(-1), strict=True))
    }
    return _resized(node, x, axes, _Style("linear" if mode == "bilinear" else mode, "simple"))


def _scaled(size: int, scale: float) -> int:
    return int(np.floor(np.float32(size) * np.float32(scale)))


def _axes(node: OnnxNode, x: Value, coordinates: str) -> dict[int, Axis]:
    """Return how each axis that the node names is resized."""
    given = node.attr("axes")
    rank = x.type.rank
    axes = [normal_axis(node, a, rank) for a in given] if given else list(range(rank))
    scales, sizes = node.const(2, "the scales"), node.const(3, "the sizes")
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if policy not in ("stretch", "not_larger", "not_smaller"):
        node.fail(f"keep_aspect_ratio_policy '{policy}' is not known")
    if sizes is not None and sizes.size:
        outs = [int(n) for n in sizes.reshape(-1)]
        factors = [n / x.shape[a] for n, a in zip(outs, axes, strict=False) if x.shape[a]]
        if policy != "stretch" and factors:
            factors = [min(factors) if policy == "not_larger" else max(factors)] * len(outs)
            outs = [int(f * x.shape[a] + 0.5) for f, a in zip(factors, axes, strict=False)]
    elif scales is not None and scales.size:
        factors = [float(s) for s in scales.reshape(-1)]
        outs = [_scaled(x.shape[a], f) for f, a in zip(factors, axes, strict=False)]
    else:
        node.fail("neither scales nor sizes are given")
    if not len(outs) == len(factors) == len(axes):
        node.fail(f"{len(outs)} scales or sizes do not go with {len(axes)} axes of {x.shape}")
    if min(factors) <= 0:
        node.fail(f"scales must be positive, not {tuple(factors)}")
    found = {
        a: Axis(x.shape[a], out, factor, coordinates)
        for a, out, factor in zip(axes, outs, factors, strict=True)
    }
    return _with_roi(node, found) if coordinates == "tf_crop_and_resize" else found


def _with_roi(node: OnnxNode, axes: dict[int, Axis]) -> dict[int, Axis]:
    roi = node.const(1, "the roi")
    if roi is None or roi.size != 2 * len(axes):
        node.fail(f"the roi has not two numbers for each of {len(axes)} axes")
    ends = np.asarray(roi, np.float64).reshape(2, -1)
    return {
        a: replace(axis, roi=(float(ends[0, i]), float(ends[1, i])))
        for i, (a, axis) in enumerate(axes.items())
    }


def _resized(node: OnnxNode, x: Value, axes: dict[int, Axis], style: _Style) -> Value:
    if style.mode not in ("nearest", "linear", "cubic"):
        node.fail(f"mode '{style.mode}' is not known")
    if style.rounding not in ROUNDINGS:
        node.fail(f"nearest_mode '{style.rounding}' is not known")
    changed = {
        a: axis
        for a, axis in axes.items()
        if axis.size != axis.out or axis.scale != 1.0 or axis.roi != (0.0, 1.0)
    }
    if not changed:
        return x
    if style.mode != "nearest" and x.type.dtype != dtypes.F32:
        node.fail(
            f"mode '{style.mode}' of {x.type.dtype} is not supported",
            why="only float numbers are interpolated",
            hint="cast to float before and back after",
        )
    if min(axis.size for axis in changed.values()) == 0:
        node.fail("an axis without elements cannot be resized")
    cropped = any(bool(np.any(axis.outside())) for axis in changed.values())
    if style.mode == "nearest" and cropped:
        node.fail(
            "mode 'nearest' with tf_crop_and_resize reaches outside the tensor",
            hint="choose a roi inside [0, 1], or mode 'linear'",
        )
    shrinks = any(axis.scale < 1 for axis in changed.values())
    plain = style.mode == "nearest" or (
        style.mode == "linear" and not cropped and not (style.antialias and shrinks)
    )
    return _placed(node, x, changed, style, plain)


def _placed(node: OnnxNode, x: Value, axes: dict[int, Axis], style: _Style, plain: bool) -> Value:
    """Choose the layout: images in the middle of two transposes that later passes remove."""
    rank, where = x.type.rank, set(axes)
    if rank == 4 and where <= {2, 3}:
        inner = to_nhwc(node, x)
        moved = {a - 1: axis for a, axis in axes.items()}
        if not plain:
            return to_nchw(node, _by_axis(node, inner, moved, style, "nhwc"))
        return to_nchw(node, _image(node, inner, moved, style, perm=(0, 2, 3, 1)))
    if rank == 4 and where <= {1, 2} and plain:
        return _image(node, x, axes, style)
    if rank == 3 and where == {2} and plain:
        batch, channels, length = x.shape
        flat = reshaped(node, x, (batch, channels, 1, length), suffix="image")
        inner = to_nhwc(node, flat)
        y = to_nchw(node, _image(node, inner, {2: axes[2]}, style, "resized"), suffix="nchw")
        return reshaped(node, y, (batch, channels, axes[2].out))
    return _by_axis(node, x, axes, style)


def _image(
    node: OnnxNode,
    x: Value,
    axes: dict[int, Axis],
    style: _Style,
    suffix: str = "",
    perm: tuple[int, ...] | None = None,
) -> Value:
    height, width = (axes.get(a, Axis(x.shape[a], x.shape[a], 1.0)) for a in (1, 2))
    op = Resize2D(height, width, style.mode, style.rounding)
    return node.apply(op, x, suffix=suffix, perm=perm).output


def _by_axis(
    node: OnnxNode, x: Value, axes: dict[int, Axis], style: _Style, layout: str = ""
) -> Value:
    """Resize one axis after the other, those that shrink most first."""
    order = sorted(axes, key=lambda a: axes[a].out / axes[a].size)
    for number, axis in enumerate(order):
        how = axes[axis]
        last = number == len(order) - 1
        suffix = layout if last else f"axis{axis}"
        if style.mode == "nearest":
            index = node.constant(how.nearest(style.rounding), f"axis{axis}.index")
            x = node.apply(Gather(axis), x, index, suffix=suffix).output
            continue
        op = Interpolate(
            axis,
            how,
            style.mode,
            style.cubic_a,
            style.antialias,
            style.exclude_outside,
            style.extrapolation,
        )
        x = node.apply(op, x, suffix=suffix).output
    return x
