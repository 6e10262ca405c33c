"""Data movement by indices: gather reads x at places that a tensor of indices names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops.strided_copy import Ints, collapse
from glowmcu.targets.kernel import Kernel

Terms = tuple[tuple[int, int], ...]
"""(size, stride) of each dimension that an index runs over."""


def _view(i: Any) -> Mapping[str, Any]:
    shape, (xs, ys, ks) = collapse(i.shape, i.x_strides, i.y_strides, i.index_strides)
    dims = list(zip(shape, xs, ys, ks, strict=True))
    run = 1
    if dims and dims[-1][1:] == (1, 1, 0) and i.reduction == "none":
        run = dims.pop()[0]
    dtype = i.y.type.dtype
    return {
        "type": dtype.c,
        "size": dtype.nbytes,
        "index_type": i.index.type.dtype.c,
        "index_bits": i.index.type.dtype.bits,
        "dims": dims,
        "run": run,
        "terms": i.terms,
        "known": i.known,
        "scatter": i.scatter,
        "reduction": i.reduction,
        "unsigned": f"uint{max(32, dtype.bits)}_t" if dtype.is_integer else "",
    }


def _offsets(shape: Ints, strides: Ints) -> Array:
    """Return the offset of every element of a strided region."""
    offsets = np.zeros(shape, np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(size) * stride
        offsets += steps.reshape(-1, *(1,) * (len(shape) - axis - 1))
    return offsets


def _indexed(index: Array, base: Array, terms: Terms) -> Array:
    """Return the offsets that the indices name: negative ones wrap, wrong ones are clamped."""
    flat = index.reshape(-1).astype(np.int64)
    total = np.zeros(base.shape, np.int64)
    for number, (size, stride) in enumerate(terms):
        found = flat[base + number]
        found = np.where(found < 0, found + size, found)
        total += np.clip(found, 0, size - 1) * stride
    return total


REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class IndexedCopy(Instruction):
    """y[i . y_strides] = x[i . x_strides + sum_t at(index[i . index_strides + t]) * stride_t].

    i runs over shape and writes all of y; at() wraps negative indices and clamps wrong ones into
    [0, size_t). `known`: all indices are constants in that range.

    scatter    the indices are on the side of y, of which the rest keeps its values
    reduction  none writes x (the last one where places repeat); add, mul, max, min combine
    """

    y: Out
    x: In
    index: In
    shape: Ints
    x_strides: Ints
    y_strides: Ints
    index_strides: Ints
    terms: Terms
    known: bool
    scatter: bool = False
    reduction: str = "none"

    kernels = (Kernel("gm_indexed_copy", template="indexed_copy.c.j2", view=_view),)

    def roles(self) -> dict[str, str]:
        return {**super().roles(), "y": "inout" if self.scatter else "out"}

    def reference(self, *arrays: Array) -> Array:
        index = arrays[-1]
        places = _indexed(index, _offsets(self.shape, self.index_strides), self.terms)
        source, target = (_offsets(self.shape, s) for s in (self.x_strides, self.y_strides))
        if not self.scatter:
            y = np.empty(math.prod(self.shape), arrays[0].dtype)
            y[target] = arrays[0].reshape(-1)[source + places]
            return y
        result = arrays[0].reshape(-1).copy()
        values = arrays[1].reshape(-1)[source].reshape(-1)
        flat = (target + places).reshape(-1)
        if self.reduction == "none":
            result[flat] = values
        else:
            REDUCTIONS[self.reduction].at(result, flat, values)
        return result


def index_constant(b: Builder, index: Array, terms: Terms) -> Buffer:
    """Return constant indices (the last dimension: one for each term) resolved and as narrow as
    they may be, so that the kernel need not check them.
    """
    sizes = np.asarray([size for size, _ in terms], np.int64)
    found = index.astype(np.int64)
    found = np.where(found < 0, found + sizes, found)
    found = np.clip(found, 0, sizes - 1)
    largest = int(found.max(initial=0))
    narrow = np.int8 if largest < 1 << 7 else np.int16 if largest < 1 << 15 else np.int32
    return b.constant(found.astype(narrow), f"{b.name}.indices")
