"""Mutated bytes of small models: a graph or a GlowmcuError comes out, nothing else, and quickly."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from toy import model

from glowmcu.errors import GlowmcuError
from glowmcu.frontend import load
from glowmcu.ops.base import IMPORTERS

Mutation = Callable[[bytes, np.random.Generator], bytes]

SMALL = (
    "(float[N, 4] X) => (float[4] Y) { s = Shape(X) z = ConstantOfShape(s) Y = toy.Double(X) }",
    "(float[2] X) => (float[2] Y) <float[2] C = {5, 6}> { c = toy.Sum(C, C) Y = toy.Sum(X, c) }",
    """(float[4] X) => (float[4] Y) { a, b = toy.Halves(X) c = toy.Grow<times = 2>(a)
    d = Selu(c) i = Constant<value_ints = [2, 2]>() f = Reshape(d, i) g = Transpose(f)
    h = Constant<value_ints = [4]>() Y = Reshape(g, h) }""",
    """(float[2] X) => (float[2] Y) <bool c = {1}> { Y = If (c) <
    then_branch = one () => (float[2] a) { a = toy.Double(X) },
    else_branch = two () => (float[2] b) { b = toy.Same(X) } > }""",
)


def mutated(data: bytes, random: np.random.Generator) -> bytes:
    """Change, delete, insert or repeat a few bytes."""
    out = bytearray(data)
    for _ in range(int(random.integers(1, 5))):
        at = int(random.integers(0, len(out)))
        match int(random.integers(0, 6)):
            case 0:
                out[at] = int(random.integers(0, 256))
            case 1:
                out[at] ^= 1 << int(random.integers(0, 8))
            case 2:
                del out[at : at + int(random.integers(1, 5))]
            case 3:
                out[at:at] = bytes(random.integers(0, 256, 2, np.uint8))
            case 4:
                out[at:at] = out[at : at + int(random.integers(1, 40))]
            case 5:
                out[at] = int(random.choice([0, 1, 0x7F, 0x80, 0xFF]))
        if not out:
            return b"\0"
    return bytes(out)


NUMBERS = (-(1 << 63), -(1 << 31), -2, -1, 0, 1, 2, 3, 7, 255, 65536, (1 << 31) - 1, (1 << 63) - 1)


def rewritten(data: bytes, random: np.random.Generator) -> bytes:
    """Change fields of the parsed model, so that importers see nonsense that is well-formed."""
    proto = onnx.ModelProto()
    proto.ParseFromString(data)
    graph = proto.graph
    for _ in range(int(random.integers(1, 3))):
        node = graph.node[int(random.integers(0, len(graph.node)))] if graph.node else None
        number = NUMBERS[int(random.integers(0, len(NUMBERS)))]
        match int(random.integers(0, 8)):
            case 0 if node:
                _change_attribute(node, number, random)
            case 1 if node and len(node.input):
                names = [n for other in graph.node for n in (*other.input, *other.output)] + [""]
                at = int(random.integers(0, len(node.input)))
                node.input[at] = names[int(random.integers(0, len(names)))]
            case 2 if node:
                keys = sorted(IMPORTERS)
                node.domain, node.op_type = keys[int(random.integers(0, len(keys)))]
            case 3 if graph.initializer:
                tensor = graph.initializer[int(random.integers(0, len(graph.initializer)))]
                _change_tensor(tensor, number, random)
            case 4 if graph.input:
                value = graph.input[int(random.integers(0, len(graph.input)))].type.tensor_type
                if value.shape.dim:
                    dim = value.shape.dim[int(random.integers(0, len(value.shape.dim)))]
                    dim.dim_value = number
            case 5 if graph.input:
                value = graph.input[int(random.integers(0, len(graph.input)))].type.tensor_type
                value.elem_type = int(random.integers(0, 24))
            case 6 if proto.opset_import:
                proto.opset_import[0].version = int(random.integers(7, 23))
            case 7 if node and len(node.input):
                del node.input[-1]
    return proto.SerializeToString()


def _change_attribute(node: onnx.NodeProto, number: int, random: np.random.Generator) -> None:
    if not node.attribute:
        return
    attribute = node.attribute[int(random.integers(0, len(node.attribute)))]
    if attribute.ints:
        attribute.ints[int(random.integers(0, len(attribute.ints)))] = number
        if random.integers(0, 3) == 0:
            attribute.ints.append(number)
    elif attribute.HasField("i"):
        attribute.i = number
    elif attribute.HasField("f"):
        attribute.f = float(random.choice([0.0, -1.0, np.inf, np.nan, 1e38]))
    elif attribute.HasField("t"):
        _change_tensor(attribute.t, number, random)
    else:
        attribute.s = b"NONSENSE"


def _change_tensor(tensor: onnx.TensorProto, number: int, random: np.random.Generator) -> None:
    dtype = np.int64 if tensor.data_type == onnx.TensorProto.INT64 else np.float32
    rank = int(random.integers(0, 4))
    shape = [int(random.integers(0, 4)) for _ in range(rank)]
    data = np.full(shape, number if dtype == np.int64 else np.float32(number), dtype)
    changed = onnx.numpy_helper.from_array(data, tensor.name)
    tensor.CopyFrom(changed)


def check(data: bytes, count: int, seed: int, change: Mutation = mutated) -> None:
    random = np.random.default_rng(seed)
    for number in range(count):
        changed = change(data, random)
        start = time.perf_counter()
        try:
            load(changed)
        except GlowmcuError:
            pass
        except Exception as error:
            raise AssertionError(f"mutation {number} of seed {seed}: {error!r}") from error
        assert time.perf_counter() - start < 5


@pytest.mark.parametrize("number", range(len(SMALL)))
def test_mutated_toys(number: int) -> None:
    check(model(SMALL[number]).SerializeToString(), 300, number)


def test_truncations() -> None:
    data = model(SMALL[2]).SerializeToString()
    for length in range(len(data) - 30):  # the last bytes are opsets that it can do without
        with pytest.raises(GlowmcuError):
            load(data[:length])


def test_mutated_cases(shared: Path) -> None:
    for seed, path in enumerate(sorted((shared / "cases").glob("*.onnx"))):
        if path.stat().st_size:
            check(path.read_bytes(), 12, seed)


def test_rewritten_cases(shared: Path) -> None:
    for seed, path in enumerate(sorted((shared / "cases").glob("*.onnx"))):
        if path.name != "I10_garbage.onnx":
            check(path.read_bytes(), 25, seed, rewritten)


@pytest.mark.parametrize("number", range(len(SMALL)))
def test_rewritten_toys(number: int) -> None:
    check(model(SMALL[number]).SerializeToString(), 200, number, rewritten)
