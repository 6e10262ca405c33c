"""Suppress: the best boxes of each class that do not overlap a better one."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.graph import Value
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops.base import INNER, Example, Op, f32, onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.targets.kernel import Kernel


class Suppress(Op):
    """boxes [n, b, 4], scores [n, c, b] -> places [n * c * count, 3] (batch, class, box), how many.

    count    most boxes of one class
    overlap  intersection over union beyond which the worse box is dropped
    least    scores must be above
    centred  boxes are centre and size, else two opposite corners, y first
    """

    floats = (dtypes.F32,)

    count: int
    overlap: float = 0.0
    least: float = -float("inf")
    centred: bool = False

    def infer(self, boxes: TensorType, scores: TensorType) -> tuple[TensorType, TensorType]:
        if boxes.shape[0::2] != (scores.shape[0], 4) or boxes.shape[1] != scores.shape[2]:
            raise TypeError(f"boxes {boxes} and scores {scores} do not fit")
        if {boxes.real().dtype, scores.real().dtype} != {dtypes.F32}:
            raise TypeError(f"boxes and scores are f32, not {boxes.dtype} and {scores.dtype}")
        rows = scores.shape[0] * scores.shape[1] * self.count
        return TensorType(dtypes.I64, (rows, 3)), TensorType(dtypes.I32, ())

    def reference(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        return suppressed(boxes, scores, self.count, self.overlap, self.least, self.centred)

    def lower(self, b: Builder, boxes: Buffer, scores: Buffer) -> tuple[Buffer, Buffer]:
        y, extent = b.result(0), b.result(1)
        b.emit(
            SuppressF32(
                y=y,
                extent=extent,
                boxes=boxes,
                scores=scores,
                batch=scores.type.shape[0],
                classes=scores.type.shape[1],
                number=scores.type.shape[2],
                count=self.count,
                overlap=self.overlap,
                least=self.least,
                centred=int(self.centred),
            )
        )
        return y, extent

    examples = (
        Example((f32(2, 7, 4), f32(2, 3, 7)), {"count": 4, "overlap": 0.3}),
        Example(
            (f32(1, 9, 4), f32(1, 1, 9)),
            {"count": 9, "overlap": 0.1, "least": 0.2, "centred": True},
            low=0.1,
        ),
    )


def _edges(boxes: Array, centred: bool) -> tuple[Array, Array]:
    a, b = boxes[:, :2], boxes[:, 2:]
    if centred:
        return a - b / 2, a + b / 2
    return np.minimum(a, b), np.maximum(a, b)


def _overlapping(boxes: Array, best: int, centred: bool, overlap: float) -> Array:
    low, high = _edges(boxes, centred)
    sides = np.minimum(high, high[best]) - np.maximum(low, low[best])
    shared, area = sides[:, 0] * sides[:, 1], (high - low)[:, 0] * (high - low)[:, 1]
    union = area + area[best] - shared
    with np.errstate(all="ignore"):
        found = shared / union > np.float32(overlap)
    return np.asarray(found & np.all(sides > 0, axis=1) & (area > 0) & (area[best] > 0))


def suppressed(
    boxes: Array, scores: Array, count: int, overlap: float, least: float, centred: bool
) -> tuple[Array, Array]:
    """Return (places, number of places), as ONNX NonMaxSuppression."""
    found: list[tuple[int, int, int]] = []
    for n, c in np.ndindex(*scores.shape[:2]):
        left = scores[n, c] > np.float32(least)
        for _ in range(count):
            if not left.any():
                break
            best = int(np.argmax(np.where(left, scores[n, c], -np.inf)))
            found.append((n, c, best))
            left &= ~_overlapping(boxes[n], best, centred, overlap)
            left[best] = False
    places = np.zeros((scores.shape[0] * scores.shape[1] * count, 3), np.int64)
    places[: len(found)] = np.asarray(found, np.int64).reshape(-1, 3)
    return places, np.asarray(len(found), np.int32)


class SuppressF32(Instruction):
    """y = (batch, class, box) of the best boxes of each class that overlap no better one.

    Zeros follow them; extent is how many they are. The attributes are those of Suppress.
    """

    y: Out
    extent: Out
    boxes: In
    scores: In
    batch: int
    classes: int
    number: int
    count: int
    overlap: float
    least: float
    centred: int

    kernels = (Kernel("gm_suppress_f32", core=True, scratch=lambda i: (i.number + 3) // 4 * 4),)

    def reference(self, boxes: Array, scores: Array) -> Any:
        return suppressed(
            boxes.reshape(self.batch, self.number, 4),
            scores.reshape(self.batch, self.classes, self.number),
            self.count,
            self.overlap,
            self.least,
            bool(self.centred),
        )


@onnx_op("Suppress", domain=INNER)
def import_suppress(node: OnnxNode) -> tuple[Value, ...]:
    """What NonMaxSuppression is made of."""
    op = Suppress(
        node.attr("count"), node.attr("overlap"), node.attr("least"), bool(node.attr("centred"))
    )
    return node.apply(op, node.value(0), node.value(1), outputs=2).outputs
