"""TfIdfVectorizer on numbers, Binarizer and ArrayFeatureExtractor."""

from __future__ import annotations

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode

_ML = "ai.onnx.ml"


@body("TfIdfVectorizer")
def tf_idf(b: Body, node: OnnxNode) -> str:
    """A pool of integers: every n-gram is compared at every place."""
    pool, starts = node.attr("pool_int64s"), list(node.attr("ngram_counts"))
    columns = np.asarray(node.attr("ngram_indexes"))
    if not pool:
        node.fail("n-grams of strings", hint="encode words as integers outside of the model")
    lengths = range(int(node.attr("min_gram_length")), int(node.attr("max_gram_length")) + 1)
    skips, weights = int(node.attr("max_skip_count")), node.attr("weights")
    node.attr("pool_strings")
    x = node.value(0)
    size, width = x.shape[-1], int(columns.max()) + 1
    rows = b.reshape(b.cast(b.input(0), dtypes.I64), x.type.numel // size, 1, size)
    total = b("Expand", 0.0, np.asarray([x.type.numel // size, width], np.int64))
    ends, first = [*starts[1:], len(pool)], 0
    for length, start, end in zip(range(1, len(starts) + 1), starts, ends, strict=True):
        grams = np.asarray(pool[start:end], np.int64).reshape(-1, length)
        places, first = columns[first : first + len(grams)], first + len(grams)
        if length not in lengths or not len(grams):
            continue
        for skip in range(skips + 1 if length > 1 else 1):
            found = _occurrences(b, rows, grams, skip, size)
            if found:
                spread = np.zeros((len(grams), width), np.float32)
                spread[np.arange(len(grams)), places] = 1
                total = b("Add", total, b("MatMul", found, spread))
    return b.reshape(_weighted(b, node, total, weights, columns, width), *x.shape[:-1], width)


def _occurrences(b: Body, rows: str, grams: Array, skip: int, size: int) -> str:
    """Return how often each gram occurs [rows, grams], its items `skip` apart; "" if it cannot."""
    step, length = skip + 1, grams.shape[1]
    count = size - step * (length - 1)
    if count <= 0:
        return ""
    hit = ""
    for k in range(length):
        window = b.part(rows, 2, k * step, k * step + count)
        same = b("Equal", window, grams[:, k].reshape(1, -1, 1))
        hit = b("And", hit, same) if hit else same
    return b("ReduceSum", b.cast(hit, dtypes.F32), np.asarray([2], np.int64), keepdims=0)


def _weighted(
    b: Body,
    node: OnnxNode,
    total: str,
    weights: tuple[float, ...] | None,
    columns: Array,
    width: int,
) -> str:
    factor = np.ones(width, np.float32)
    if weights:
        factor[columns] = weights
    mode = node.attr("mode")
    if mode == "TF":
        return total
    if mode == "IDF":
        total = b.cast(b("Greater", total, 0.0), dtypes.F32)
    return b("Mul", total, factor)


@body("Binarizer", domain=_ML)
def binarizer(b: Body, node: OnnxNode) -> str:
    """1 above the threshold, else 0."""
    threshold = np.asarray(node.attr("threshold", 0.0), node.value(0).type.dtype.numpy)
    return b.like(b("Greater", b.input(0), threshold), 0)


@body("ArrayFeatureExtractor", domain=_ML)
def array_feature_extractor(b: Body, node: OnnxNode) -> str:
    """Columns of a tensor by their numbers."""
    count = node.value(1).type.numel
    return b("Gather", b.input(0), b.reshape(b.input(1), count), axis=-1)
