"""DFT, STFT: products with constant matrices of sines and cosines."""

from __future__ import annotations

import numpy as np

from glowmcu.core.types import Array
from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode


def _matrix(count: int, length: int, components: int, inverse: bool, onesided: bool) -> Array:
    """Return the matrix [count * components, outputs] of a transform of `length` points.

    Of the `count` given points those beyond `length` count nothing, missing ones are zeros.
    """
    outputs = length // 2 + 1 if onesided and not inverse else length
    given, found = np.arange(count)[:, None], np.arange(outputs)[None, :]
    angle = 2 * np.pi * given * found / length
    used = given < (length // 2 + 1 if onesided and inverse else length)
    cos, sin = (np.where(used & (abs(w) > 1e-12), w, 0) for w in (np.cos(angle), np.sin(angle)))
    if onesided and inverse:
        twice = np.where((given == 0) | (2 * given == length), 1, 2) / length
        rows = np.stack([cos * twice, -sin * twice][:components], 1)
        return rows.reshape(count * components, outputs).astype(np.float32)
    sign, scale = (1, 1 / length) if inverse else (-1, 1.0)
    real = np.stack([cos, sign * sin], 2)
    imaginary = np.stack([-sign * sin, cos], 2)
    rows = np.stack([real, imaginary][:components], 1) * scale
    return rows.reshape(count * components, outputs * 2).astype(np.float32)


@body("DFT")
def dft(b: Body, node: OnnxNode) -> str:
    """Any length, axis, inverse and onesided; real or complex."""
    x = node.value(0)
    axis = node.attr("axis", 1) if node.opset < 20 else -2
    found = node.const(2, "the axis") if node.opset >= 20 else None
    axis = int(axis if found is None else found.reshape(-1)[0])
    axis = axis + x.type.rank if axis < 0 else axis
    if not 0 <= axis < x.type.rank - 1 or x.shape[-1] not in (1, 2):
        node.fail(f"axis {axis} of a tensor of shape {list(x.shape)}")
    given = node.const(1, "the length")
    inverse, onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    length = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    length = length if given is None else int(given.reshape(-1)[0])
    others = [d for d in range(x.type.rank - 1) if d != axis]
    matrix = _matrix(x.shape[axis], length, x.shape[-1], inverse, onesided)
    moved = b.transpose(b.real(0), *others, axis, x.type.rank - 1)
    shape = [x.shape[d] for d in others]
    flat = b.reshape(moved, *shape, x.shape[axis] * x.shape[-1])
    parts = 1 if onesided and inverse else 2
    y = b.reshape(b("MatMul", flat, matrix), *shape, matrix.shape[1] // parts, parts)
    back = [*others, axis]
    places = [back.index(d) for d in range(x.type.rank - 1)]
    return b.like(b.transpose(y, *places, x.type.rank - 1), 0)


@body("STFT")
def stft(b: Body, node: OnnxNode) -> str:
    """A constant frame step and length; real or complex signals."""
    signal = node.value(0)
    step, given = node.const(1, "the frame step"), node.const(3, "the frame length")
    window = node.optional(2)
    length = window.shape[0] if window is not None else 0
    length = length if given is None else int(given.reshape(-1)[0])
    if step is None or length <= 0:
        node.fail("there is no frame length")
    components = signal.shape[2] if signal.type.rank == 3 else 1
    count = 1 + (signal.shape[1] - length) // int(step.reshape(-1)[0])
    places = np.arange(count)[:, None] * int(step.reshape(-1)[0]) + np.arange(length)
    batch = signal.shape[0]
    whole = b.reshape(b.real(0), batch, signal.shape[1], components)
    frames = b("Gather", whole, places.astype(np.int64), axis=1)
    if window is not None:
        frames = b("Mul", frames, b.reshape(b.real(2), 1, 1, length, 1))
    onesided = bool(node.attr("onesided", 1)) and components == 1
    matrix = _matrix(length, length, components, False, onesided)
    y = b("MatMul", b.reshape(frames, batch, count, length * components), matrix)
    return b.like(b.reshape(y, batch, count, matrix.shape[1] // 2, 2), 0)
