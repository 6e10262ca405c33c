"""The law of every pass: the graph computes the same before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from glowmcu.core.types import Array, TensorType
from glowmcu.graph.evaluate import evaluate, evaluate_all
from glowmcu.graph.graph import Graph, Value
from glowmcu.graph.verify import verify
from glowmcu.ops.base import f32


def network(inputs: Sequence[Value], *outputs: Value) -> Graph:
    names = tuple(f"out{i}" for i in range(len(outputs)))
    return Graph("net", tuple(inputs), outputs, names)


def source(*shape: int, name: str = "x") -> Value:
    return Value(name, f32(*shape))


def feeds(graph: Graph, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {v.name: any_values(v.type, rng) for v in graph.inputs}


def any_values(type_: TensorType, rng: np.random.Generator) -> Array:
    if type_.dtype.is_integer:
        low, high = max(type_.dtype.low, -128), min(type_.dtype.high, 255)
        return rng.integers(low, high + 1, type_.shape).astype(type_.dtype.numpy)
    return rng.normal(0, 2, type_.shape).astype(type_.dtype.numpy)


def weights(*shape: int, seed: int = 1) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0, 0.5, shape).astype(np.float32)


def changed(
    graph: Graph, function: Callable[[Graph], Graph], tolerance: float = 1e-5, lsb: int = 0
) -> Graph:
    """Run a pass; check that the result is well formed and computes the same; return it."""
    after = function(graph)
    verify(graph)
    verify(after)
    assert [v.name for v in after.inputs] == [v.name for v in graph.inputs]
    assert [v.type.shape for v in after.outputs] == [v.type.shape for v in graph.outputs]
    for seed in range(2):
        values = feeds(graph, seed)
        want, have = evaluate(graph, values), evaluate(after, values)
        for name, expected in want.items():
            assert expected.dtype == have[name].dtype
            if expected.dtype.kind in "iub":
                difference = np.abs(expected.astype(np.int64) - have[name].astype(np.int64))
                assert difference.max(initial=0) <= lsb
            else:
                scale = max(float(np.abs(expected[np.isfinite(expected)]).max(initial=0)), 1.0)
                np.testing.assert_allclose(have[name], expected, rtol=0, atol=tolerance * scale)
    return after


def same_tensors(before: Graph, after: Graph) -> None:
    """Check that a value with the name of a tensor is that tensor, transposed by its perm."""
    values = feeds(before)
    known = {v.name: a for v, a in evaluate_all(before, values).items() if v.perm is None}
    for value, array in evaluate_all(after, values).items():
        if value.name not in known or value.is_constant:
            continue
        expected = known[value.name]
        expected = expected if value.perm is None else expected.transpose(value.perm)
        np.testing.assert_allclose(array, expected, rtol=1e-3, atol=1e-3, err_msg=value.name)


def operators(graph: Graph) -> list[str]:
    """Class names of the operators, elementwise ones by their function."""
    return [getattr(n.op, "fn", type(n.op).__name__) for n in graph.nodes()]
