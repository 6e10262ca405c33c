"""Pairs of an input and an output whose value the network keeps from one call to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.errors import OptionError
from glowmcu.graph.evaluate import evaluate
from glowmcu.graph.graph import Graph, Value, apply
from glowmcu.ops.quant import Dequantize, Quantize


def check_states(graph: Graph, states: Mapping[str, str]) -> None:
    """Raise OptionError where a pair does not name an input and an output of one type."""
    inputs = {v.name: v for v in graph.inputs}
    outputs = dict(zip(graph.output_names, graph.outputs, strict=True))
    for state, source in states.items():
        pair = f"the state '{state}={source}'"
        for name, known, role in ((state, inputs, "input"), (source, outputs, "output")):
            if name not in known:
                raise OptionError(
                    f"{pair} names '{name}', which is not an {role} of the network",
                    hint=f"{role}s: {', '.join(known) or 'none'}",
                )
        if inputs[state].type != outputs[source].type:
            raise OptionError(
                f"{pair} pairs tensors of different types",
                why=f"the input is {inputs[state].type}, the output {outputs[source].type}",
            )
        quant = inputs[state].type.quant
        wide = inputs[state].type.dtype.nbytes > 1
        if quant and (quant.axis is not None or (wide and any(quant.zero_point))):
            raise OptionError(f"{pair} cannot start at zero, as it is {inputs[state].type}")
    if len(set(states.values())) < len(states):
        raise OptionError("two states take over the same output")


def match_states(graph: Graph, states: Mapping[str, str]) -> Graph:
    """Return the graph with every kept output in its input's quantization."""
    inputs = {v.name: v for v in graph.inputs}
    wanted = {source: inputs[state] for state, source in states.items()}
    outputs = tuple(
        _matched(value, wanted[name]) if name in wanted else value
        for value, name in zip(graph.outputs, graph.output_names, strict=True)
    )
    return graph if outputs == graph.outputs else replace(graph, outputs=outputs)


def streamed(
    graph: Graph, samples: Sequence[Mapping[str, Array]], states: Mapping[str, str]
) -> list[dict[str, Array]]:
    """Return samples with the states added that follow from one another, at first zeros."""
    known = {
        v.name: np.zeros(v.shape, v.type.dtype.numpy) for v in graph.inputs if v.name in states
    }
    complete: list[dict[str, Array]] = []
    for sample in samples:
        complete.append({**sample, **known})
        if states:
            outputs = evaluate(graph, complete[-1])
            known = {state: outputs[source] for state, source in states.items()}
    return complete


def _matched(value: Value, like: Value) -> Value:
    if value.type == like.type:
        return value
    name = f"{value.name}.state"
    if value.type.quant is not None:
        value = apply(Dequantize(), value, name=f"{name}.real").output
    if like.type.quant is None:
        return value
    assert value.type.dtype is dtypes.F32
    return apply(Quantize(like.type.dtype, like.type.quant), value, name=name).output
