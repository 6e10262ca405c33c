"""Random Loop nodes on integers, one in another, ending early: the numbers of ONNX Runtime."""

from __future__ import annotations

import random

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from glowmcu.core.types import Array
from glowmcu.driver import Compilation, compile_network
from glowmcu.graph.evaluate import evaluate as evaluate_graph
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.loop import loop_spans
from glowmcu.memory.lifetime import dead_ranges
from glowmcu.options import Options
from glowmcu.verify.extent import cropped
from glowmcu.verify.host import HostLibrary, build_library

SIZE = 6
INT = TensorProto.INT32


def info(name: str, shape: list[int | str] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, INT, [SIZE] if shape is None else shape)


class Maker:
    """Writes nodes that use names known so far."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def steps(self, known: list[str], depth: int) -> list[onnx.NodeProto]:
        nodes = []
        for _ in range(self.chance.randrange(2, 7)):
            if depth and self.chance.random() < 0.25:
                nodes += self.loop(known, depth - 1)
                continue
            op = self.chance.choice(["Add", "Sub", "Mul", "Min", "Max", "Neg", "Identity"])
            arity = 1 if op in ("Neg", "Identity") else 2
            inputs = [self.chance.choice(known[-8:]) for _ in range(arity)]
            known.append(self.name())
            nodes.append(helper.make_node(op, inputs, [known[-1]]))
        return nodes

    def loop(self, known: list[str], depth: int) -> list[onnx.NodeProto]:
        """Return a Loop and what it needs; its results become known."""
        nodes: list[onnx.NodeProto] = []
        limit = self.name()
        most = self.chance.choice([0, 1, 5, 30, 70])
        nodes.append(helper.make_node("Constant", [], [limit], value_int=most))
        if self.chance.random() < 0.5:
            nodes.append(helper.make_node("Min", [limit, "trips"], [self.name()]))
            limit = f"t{self.count}"
        first = [self.chance.choice(known) for _ in range(self.chance.randrange(1, 4))]
        states = [self.name() for _ in first]
        number, going, more, wide = (self.name() for _ in range(4))
        inner = [*known, wide, *states]
        body = [
            helper.make_node("Cast", [number], [f"{wide}a"], to=INT),
            helper.make_node("Add", [f"{wide}a", "x"], [wide]),
        ]
        body += self.steps(inner, depth)
        same = [n for n in inner if n != wide]
        new = [self.chance.choice([*same, *states]) for _ in states]
        if self.chance.random() < 0.4:
            body += [
                helper.make_node("ReduceMax", [new[0]], [f"{more}a"], keepdims=0),
                helper.make_node("Less", [f"{more}a", "bound"], [more]),
            ]
        else:
            body.append(helper.make_node("Identity", [going], [more]))
        results = [self.name() for _ in new]
        body += [helper.make_node("Identity", [n], [r]) for n, r in zip(new, results, strict=True)]
        graph = helper.make_graph(
            body,
            self.name(),
            [
                helper.make_tensor_value_info(number, TensorProto.INT64, []),
                helper.make_tensor_value_info(going, TensorProto.BOOL, []),
                *map(info, states),
            ],
            [helper.make_tensor_value_info(more, TensorProto.BOOL, []), *map(info, results)],
        )
        outputs = [self.name() for _ in states]
        nodes.append(helper.make_node("Loop", [limit, "", *first], outputs, body=graph))
        known += outputs
        return nodes


def network(seed: int) -> onnx.ModelProto:
    maker = Maker(seed)
    known = ["x", "y"]
    nodes = maker.steps(known, 0) + maker.loop(known, 2) + maker.steps(known, 1)
    last = list(dict.fromkeys([known[-1], *maker.chance.sample(known[2:], 2)]))
    nodes += [helper.make_node("Identity", [n], [f"o{n}"]) for n in last]
    scalars = [
        helper.make_tensor_value_info("trips", TensorProto.INT64, []),
        helper.make_tensor_value_info("bound", INT, []),
    ]
    graph = helper.make_graph(
        nodes, "random", [info("x"), info("y"), *scalars], [info(f"o{n}") for n in last]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def feeds_of(seed: int) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    return {
        "x": chance.integers(-9, 9, SIZE).astype(np.int32),
        "y": chance.integers(-9, 9, SIZE).astype(np.int32),
        "trips": np.asarray(chance.choice([-1, 0, 1, 2, 6, 40]), np.int64),
        "bound": np.asarray(chance.choice([-(1 << 30), 50, 1 << 30]), np.int32),
    }


def poisoned(compilation: Compilation, feeds: dict[str, Array]) -> dict[str, Array]:
    function, plan = compilation.function, compilation.plan

    def poison(index: int, arena: Array) -> None:
        for start, stop in dead_ranges(function, plan, index):
            arena[start:stop] = 0xA5

    return evaluate(function, feeds, plan.offsets, plan.size, before=poison)


@pytest.mark.cc
def test_random_loops() -> None:
    models = {seed: network(seed) for seed in range(24)}
    made = {n: compile_network(m, Options(name=f"loop{n}")) for n, m in models.items()}
    assert sum(bool(loop_spans(c.function.instructions)) for c in made.values()) > 14
    units = [c.unit for c in made.values()]
    library = build_library(units, flags=("-std=c99", "-O1", "-fwrapv", "-ffp-contract=off"))
    for seed, compilation in made.items():
        session = onnxruntime.InferenceSession(models[seed].SerializeToString())
        names = [o.name for o in session.get_outputs()]
        host = HostLibrary(compilation.unit, library=library)
        for sample in range(3):
            feeds = feeds_of(10 * seed + sample)
            right = session.run(None, feeds)
            given = {i.name for i in compilation.function.inputs}
            taken = {n: a for n, a in feeds.items() if n in given}
            levels = (
                evaluate_graph(compilation.graph, feeds),
                poisoned(compilation, feeds),
                host.run(taken),
            )
            for level in levels:
                found = cropped(level, compilation.unit.extents)
                for name, array in zip(names, right, strict=True):
                    np.testing.assert_array_equal(found[name], array, err_msg=f"{seed} {name}")
