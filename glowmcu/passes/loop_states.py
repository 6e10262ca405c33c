"""What loops carry and stack is kept as it is stored: as integers, in the layout of the layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from glowmcu.graph.graph import Graph, Node, Value, apply
from glowmcu.graph.rewrite import rewrite, substitute
from glowmcu.ops.loop import Loop
from glowmcu.ops.quant import Dequantize, Quantize
from glowmcu.ops.transpose import Transpose
from glowmcu.passes.match import Uses
from glowmcu.passes.permute import inverse

_TO_NHWC = Transpose((0, 2, 3, 1))


def keep_states_stored(graph: Graph) -> Graph:
    """Move conversions at the ends of a loop's body in front of the loop and behind it."""
    return rewrite(graph, (stored_state, stored_rows))


def states_in_layout(graph: Graph) -> Graph:
    """Carry images in the layout of the layers that read them."""
    return rewrite(graph, (state_in_layout,))


def state_in_layout(node: Node, uses: Uses) -> tuple[Value, ...] | None:
    """A state that a layer reads as NHWC is carried so; what else reads it transposes it back.

    The transposes inside then meet those of other layers and cancel.
    """
    if not isinstance(node.op, Loop):
        return None
    body = node.op.body
    for number in range(node.op.states):
        state = body.inputs[1 + number]
        if any(n.op == _TO_NHWC and n.inputs[0] is state for n in body.nodes()):
            new = body.outputs[number]
            turned = apply(_TO_NHWC, new, name=f"{new.name}.nhwc").output
            back = Transpose(inverse(_TO_NHWC.perm))
            return _with_state(node, number, turned, (_TO_NHWC, back), None)
    return None


def stored_state(node: Node, uses: Uses) -> tuple[Value, ...] | None:
    """A state that each turn converts at its end and back at its start stays converted."""
    if not isinstance(node.op, Loop):
        return None
    for number in range(node.op.states):
        new = node.op.body.outputs[number].producer
        back = None if new is None else _undoing(node, new)
        readers = _readers(node.op.body, node.op.body.inputs[1 + number])
        if new is None or back is None or readers is None:
            continue
        stored = new.inputs[0]
        if stored is not None and all(r.op == back and r.types[0] == stored.type for r in readers):
            return _with_state(node, number, stored, (back, new.op), readers)
    return None


def _undoing(loop: Node, conversion: Node) -> Any:
    """Return the operator that undoes a conversion, None for other nodes.

    To quantize the first value is exact only if the loop surely replaces it.
    """
    op, x = conversion.op, conversion.inputs[0]
    if isinstance(op, Transpose):
        return Transpose(inverse(op.perm))
    sure = loop.inputs[0] is None and loop.inputs[1] is None and loop.op.count > 0
    if isinstance(op, Dequantize) and x is not None and x.type.quant is not None and sure:
        return Quantize(x.type.dtype, x.type.quant) if x.type.quant.axis is None else None
    return None


def _readers(body: Graph, state: Value) -> list[Node] | None:
    """Return the nodes that read a state, None where it also leaves the body as it is."""
    if state in body.outputs:
        return None
    return [n for n in body.nodes() if state in n.inputs]


def _with_state(
    node: Node, number: int, stored: Value, ops: tuple[Any, Any], readers: list[Node] | None
) -> tuple[Value, ...]:
    """Return the results of a loop whose state `number` is carried as it is stored.

    ops      into what is stored, and back
    readers  nodes of the body that become what is stored; None: it is converted back for all
    """
    body, place = node.op.body, 1 + number
    state = Value(f"{body.inputs[place].name}.stored", stored.type)
    inputs = (*body.inputs[:place], state, *body.inputs[place + 1 :])
    outputs = (*body.outputs[:number], stored, *body.outputs[number + 1 :])
    mapping = {r.output: state for r in readers or ()}
    if readers is None:
        mapping = {body.inputs[place]: apply(ops[1], state, name=f"{state.name}.real").output}
    changed = substitute(Graph(body.name, inputs, outputs, body.output_names), mapping)
    first = node.inputs[2 + number]
    assert first is not None
    into = apply(ops[0], first, name=f"{first.name}.stored", origin=node.origin).output
    operands = (*node.inputs[: 2 + number], into, *node.inputs[3 + number :])
    return _converted(node, changed, operands, number, ops[1])


def stored_rows(node: Node, uses: Uses) -> tuple[Value, ...] | None:
    """Rows that are dequantized at the end of each turn are stacked as integers."""
    if not isinstance(node.op, Loop):
        return None
    op, body = node.op, node.op.body
    for number in range(op.states, op.states + len(op.axes)):
        made = body.outputs[number].producer
        stored = made.inputs[0] if made is not None else None
        if made is None or stored is None or not isinstance(made.op, Dequantize):
            continue
        if stored.type.quant is None or stored.type.quant.axis is not None:
            continue
        outputs = (*body.outputs[:number], stored, *body.outputs[number + 1 :])
        changed = Graph(body.name, body.inputs, outputs, body.output_names)
        return _converted(node, changed, node.inputs, number, made.op)
    return None


def _converted(
    node: Node, body: Graph, operands: tuple[Value | None, ...], number: int, conversion: Any
) -> tuple[Value, ...]:
    """Return the results of a loop with another body, of which one is converted afterwards."""
    names = tuple(f"{n}.stored" if i == number else n for i, n in enumerate(node.names))
    made = apply(replace(node.op, body=body), *operands, names=names, origin=node.origin)
    back = apply(
        conversion,
        made.outputs[number],
        name=node.names[number],
        origin=node.origin,
        types=(node.types[number],),
    ).output
    return (*made.outputs[:number], back, *made.outputs[number + 1 :])
