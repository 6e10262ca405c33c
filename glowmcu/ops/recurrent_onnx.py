"""Importers of ONNX's recurrent layers RNN, GRU and LSTM."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.graph.graph import Value
from glowmcu.ops._functions import HALVES
from glowmcu.ops._recurrent import ACTIVATIONS, Activation
from glowmcu.ops.base import onnx_op
from glowmcu.ops.cast import Cast
from glowmcu.ops.concat import Concat
from glowmcu.ops.elementwise_onnx import elementwise
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.recurrent import DEFAULTS, Recurrent
from glowmcu.ops.slice import part
from glowmcu.ops.transpose import Transpose

_USED = {"rnn": 1, "gru": 2, "lstm": 3}
"""How many activations a direction names."""
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
Inputs = list[Value | None]


@onnx_op("RNN", "GRU", "LSTM")
def import_recurrent(node: OnnxNode) -> tuple[Value | None, ...]:
    """Every option: directions, lengths, states, peepholes, activations, clip, layout, both resets.

    Computed in float32.
    """
    dtype = node.value(0).type.dtype
    if dtype not in (dtypes.F32, *HALVES):
        node.fail(f"elements of type {dtype}", why="recurrent layers are computed in float32")
    cell = node.op_type.lower()
    transposed = bool(node.attr("layout", 0))
    inputs = _inputs(node, cell, transposed)
    x, r = inputs[0], inputs[2]
    assert x is not None
    assert r is not None
    if int(node.attr("hidden_size", r.shape[-1])) != r.shape[-1]:
        node.fail(f"hidden_size is {node.attr('hidden_size')}, but R is {r.type}")
    results = _directions(node, cell, inputs)
    perms = ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2))
    named: list[Value | None] = []
    for number, value in enumerate(results[: len(node.output_names)]):
        if value is not None and transposed:
            value = node.apply(Transpose(perms[number]), value, suffix=f"layout{number}").output
        if value is not None and dtype in HALVES:
            value = node.apply(Cast(dtype), value, suffix=f"rounded{number}").output
        named.append(value)
    return tuple(named)


def _inputs(node: OnnxNode, cell: str, transposed: bool) -> Inputs:
    """Return x, w, r, b, rb, lengths, h0, c0, peephole as the operator takes them."""
    x, w, r = (_wide(node, node.value(i), f"input{i}") for i in range(3))
    b, lengths = (node.optional(i) for i in (3, 4))
    states: Inputs = [node.optional(5), node.optional(6) if cell == "lstm" else None]
    if transposed:
        x = _swapped(node, x, "steps_first")
        states = [s and _swapped(node, s, f"state{n}") for n, s in enumerate(states)]
    peephole = node.optional(7) if cell == "lstm" else None
    if r.type.rank != 3 or x.type.rank != 3 or w.type.rank != 3:
        node.fail("X, W and R must have three dimensions")
    if lengths is not None and lengths.data is not None:
        if (np.asarray(lengths.data) >= x.shape[0]).all():
            lengths = None
    bias, rb = _biases(node, cell, b, r)
    rest = [v and _wide(node, v, f"part{n}") for n, v in enumerate((*states, peephole))]
    return [x, w, r, bias, rb, lengths, *rest]


def _wide(node: OnnxNode, x: Value, suffix: str) -> Value:
    """Return a value as float32."""
    if x.type.dtype not in HALVES:
        return x
    return node.apply(Cast(dtypes.F32), x, suffix=f"{suffix}.f32").output


def _swapped(node: OnnxNode, x: Value, suffix: str) -> Value:
    return node.apply(Transpose((1, 0, 2)), x, suffix=suffix).output


def _biases(
    node: OnnxNode, cell: str, b: Value | None, r: Value
) -> tuple[Value | None, Value | None]:
    """Return the sum of both biases, and with linear_before_reset that of the candidate's r."""
    if b is None:
        return None, None
    b = _wide(node, b, "bias")
    rows, hidden = r.shape[1], r.shape[2]
    if b.type.rank != 2 or b.shape != (r.shape[0], 2 * rows):
        node.fail(f"B is {b.type}, but R is {r.type}")

    def piece(start: int, size: int, suffix: str) -> Value:
        assert b is not None
        return node.apply(part(b.type, 1, start, size), b, suffix=suffix).output

    if cell != "gru" or not node.attr("linear_before_reset", 0):
        both = piece(0, rows, "bias.w"), piece(rows, rows, "bias.r")
        return elementwise(node, "add", *both, suffix="bias.sum"), None
    two = 2 * hidden
    both = piece(0, two, "bias.w"), piece(rows, two, "bias.r")
    gates = elementwise(node, "add", *both, suffix="bias.gates")
    joined = node.apply(Concat(1), gates, piece(two, hidden, "bias.wh"), suffix="bias.sum").output
    return joined, piece(rows + two, hidden, "bias.rh")


def _directions(node: OnnxNode, cell: str, inputs: Inputs) -> tuple[Value | None, ...]:
    """Return (y or None, y_h, y_c of LSTM); directions that differ in activations are two nodes."""
    direction = str(node.attr("direction", "forward")).lower()
    if direction not in _DIRECTIONS:
        node.fail(f"the direction '{direction}' is not one of {', '.join(_DIRECTIONS)}")
    activations = _activations(node, cell, _DIRECTIONS[direction])
    if len(set(activations)) == 1:
        return _apply(node, cell, direction, activations[0], inputs, "cell")
    halves = [
        _apply(node, cell, name, activations[d], _one_direction(node, inputs, d), f"cell.{name}")
        for d, name in enumerate(("forward", "reverse"))
    ]
    joined: list[Value | None] = []
    for number, (one, other) in enumerate(zip(*halves, strict=True)):
        axis = 1 if number == 0 else 0
        both = None
        if one is not None and other is not None:
            both = node.apply(Concat(axis), one, other, suffix=f"both{number}").output
        joined.append(both)
    return tuple(joined)


def _one_direction(node: OnnxNode, inputs: Inputs, direction: int) -> Inputs:
    """Return the inputs of one of two directions; x and the lengths are common."""
    found: Inputs = []
    for number, value in enumerate(inputs):
        if value is not None and number not in (0, 5):
            suffix = f"direction{direction}.{number}"
            value = node.apply(part(value.type, 0, direction, 1), value, suffix=suffix).output
        found.append(value)
    return found


def _apply(
    node: OnnxNode,
    cell: str,
    direction: str,
    activations: tuple[Activation, ...],
    inputs: Inputs,
    suffix: str,
) -> tuple[Value | None, ...]:
    sequence = bool(node.output_names and node.output_names[0])
    clip = float(node.attr("clip", 0.0))
    op = Recurrent(
        cell=cell,
        direction=direction,
        activations=activations,
        clip=clip if clip > 0 else math.inf,
        linear_before_reset=cell == "gru" and bool(node.attr("linear_before_reset", 0)),
        input_forget=cell == "lstm" and bool(node.attr("input_forget", 0)),
        sequence=sequence,
    )
    count = 1 + sequence + (cell == "lstm")
    made = node.apply(op, *inputs, suffix=suffix, outputs=count).outputs
    return made if sequence else (None, *made)


def _activations(node: OnnxNode, cell: str, directions: int) -> list[tuple[Activation, ...]]:
    """Return three activations for each direction; those that the cell does not use are tanh."""
    used = _USED[cell]
    default = [name for name, _, _ in DEFAULTS[cell][:used]]
    names = [str(n).lower() for n in node.attr("activations", ())] or default * directions
    if len(names) != used * directions:
        node.fail(f"it names {len(names)} activations instead of {used * directions}")
    alphas = iter(node.attr("activation_alpha", ()))
    betas = iter(node.attr("activation_beta", ()))
    found = [_activation(node, name, alphas, betas) for name in names]
    tail = DEFAULTS[cell][used:]
    return [(*found[d * used : (d + 1) * used], *tail) for d in range(directions)]


def _activation(
    node: OnnxNode, name: str, alphas: Iterator[Any], betas: Iterator[Any]
) -> Activation:
    """Return an activation; each that has a parameter takes the next value of the attribute."""
    kind = ACTIVATIONS.get(name)
    if kind is None:
        node.fail(f"the activation '{name}' is not one of {', '.join(ACTIVATIONS)}")
    alpha = 0.0 if kind.alpha is None else float(next(alphas, kind.alpha))
    beta = 0.0 if kind.beta is None else float(next(betas, kind.beta))
    return name, alpha, beta
