"""Loop: a graph run over and over on values that it hands on; Loop and Scan of ONNX are made so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.graph.evaluate import evaluate_all
from glowmcu.graph.graph import Graph, Node, Value, apply
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.loop_head import LoopHead
from glowmcu.ops.base import Example, Op, f32
from glowmcu.ops.copy import Copy
from glowmcu.ops.elementwise import Elementwise
from glowmcu.ops.indexed_copy import IndexedCopy
from glowmcu.ops.strided_copy import Fill, dense_strides

NUMBER = TensorType(dtypes.I32, ())
"""The type of the number of an iteration."""
_LONG = 20_000
"""More nodes of all iterations together are not computed by the compiler."""


class Loop(Op):
    """Runs `body` at most `count` times, as long as its number is below `limit` and `condition`.

    inputs        limit, condition, first values of the states, what the body reads of outside
    outputs       last values of the states, a row of each iteration stacked (zeros where there was
                  none) along an axis of `axes`, the number of iterations
    body inputs   the number of the iteration, states, what it reads of outside
    body outputs  new states, rows, and where `goes_on` whether to go on
    """

    body: Graph
    count: int
    states: int
    axes: tuple[int, ...] = ()
    goes_on: bool = False

    raw = True

    def infer(
        self, limit: TensorType | None, condition: TensorType | None, *values: TensorType
    ) -> tuple[TensorType, ...]:
        expected = tuple(v.type for v in self.body.inputs)
        if expected != (NUMBER, *values):
            raise TypeError(f"the body takes {expected}, not {(NUMBER, *values)}")
        results = [v.type for v in self.body.outputs]
        if tuple(results[: self.states]) != values[: self.states]:
            raise TypeError(f"the states {values[: self.states]} become {results}")
        for what, type_, kinds in (
            ("limit", limit, (dtypes.I32, dtypes.I64)),
            ("condition", condition, (dtypes.BOOL,)),
        ):
            if type_ is not None and (type_.dtype not in kinds or type_.numel != 1):
                raise TypeError(f"the {what} is one element of {kinds}, not {type_}")
        rows = results[self.states : self.states + len(self.axes)]
        stacked = (
            row.with_shape((*row.shape[:axis], self.count, *row.shape[axis:]))
            for row, axis in zip(rows, self.axes, strict=True)
        )
        return (*results[: self.states], *stacked, NUMBER)

    def reference(self, limit: Array | None, condition: Array | None, *values: Array) -> Any:
        states, outside = list(values[: self.states]), values[self.states :]
        types = [v.type for v in self.body.outputs[self.states :]]
        rows = [
            np.zeros((self.count, *type_.shape), type_.dtype.numpy)
            for type_, _ in zip(types, self.axes, strict=False)
        ]
        most = self.count if limit is None else min(self.count, int(np.asarray(limit).item()))
        done, going = 0, condition is None or bool(np.asarray(condition).item())
        while done < most and going:
            number = np.asarray(done, np.int32)
            feeds = zip(self.body.inputs, (number, *states, *outside), strict=True)
            arrays = evaluate_all(self.body, {v.name: a for v, a in feeds})
            found = [arrays[v] for v in self.body.outputs]
            states = found[: self.states]
            for row, array in zip(rows, found[self.states :], strict=False):
                row[done] = array
            done += 1
            going = not self.goes_on or bool(found[-1].item())
        stacked = (np.moveaxis(r, 0, a) for r, a in zip(rows, self.axes, strict=True))
        return (*states, *stacked, np.asarray(done, np.int32))

    def lower(
        self, b: Builder, limit: Buffer | None, condition: Buffer | None, *values: Buffer
    ) -> tuple[Buffer, ...]:
        results = [Buffer(r.name, r.type, "activation") for r in b.results]
        states, stacked = results[: self.states], results[self.states : -1]
        for state, first in zip(states, values, strict=False):
            _copy(b, state, first)
        for rows in stacked:
            b.emit(Fill(y=rows, value=0))
        going = self._first_condition(b, condition)
        with b.looped(self.count):
            number = results[-1]
            b.emit(LoopHead(y=number, limit=limit, condition=going))
            assert b.lower_body is not None, "the builder can lower no body"
            found = b.lower_body(self.body, (number, *states, *values[self.states :]))
            rows_found = found[self.states : self.states + len(self.axes)]
            for rows, row, axis in zip(stacked, rows_found, self.axes, strict=True):
                _insert(b, rows, row, number, axis)
            new = list(zip(states, found, strict=False))
            if self.goes_on and going is not None:
                new.append((going, found[-1]))
            _assign(b, new)
        return tuple(results)

    def _first_condition(self, b: Builder, condition: Buffer | None) -> Buffer | None:
        """Return what the head of the loop reads; where it changes, a buffer of its own."""
        if not self.goes_on:
            return condition
        going = b.activation(TensorType(dtypes.BOOL, ()))
        if condition is None:
            b.emit(Fill(y=going, value=1))
        else:
            _copy(b, going, condition)
        return going

    def __repr__(self) -> str:
        """Leave out the body, which is printed below the node."""
        return (
            f"Loop(count={self.count}, states={self.states}, axes={self.axes}, "
            f"goes_on={self.goes_on})"
        )


def takes_long(node: Node) -> bool:
    """Tell whether a node is a loop that would hold up the compiler, even on constants."""
    op = node.op
    return isinstance(op, Loop) and op.count * len(op.body.nodes()) > _LONG


def _copy(b: Builder, y: Buffer, x: Buffer) -> None:
    if y.nbytes:
        b.emit(Copy(y=y, x=x, bytes=y.nbytes))


def _insert(b: Builder, rows: Buffer, row: Buffer, number: Buffer, axis: int) -> None:
    """Emit rows[..., number, ...] = row."""
    if not row.nbytes:
        return
    shape, strides = rows.type.shape, dense_strides(rows.type.shape)
    b.emit(
        IndexedCopy(
            y=rows,
            x=row,
            index=number,
            shape=row.type.shape,
            x_strides=dense_strides(row.type.shape),
            y_strides=(*strides[:axis], *strides[axis + 1 :]),
            index_strides=(0,) * row.type.rank,
            terms=((shape[axis], strides[axis]),),
            known=True,
            scatter=True,
        )
    )


def _assign(b: Builder, pairs: Sequence[tuple[Buffer, Buffer]]) -> None:
    """Emit copies (to, from) all at once: what another one overwrites is put aside first."""
    targets = {to.root for to, _ in pairs}
    moving = [(to, x) for to, x in pairs if (to.root, to.root_offset) != (x.root, x.root_offset)]
    aside: list[tuple[Buffer, Buffer]] = []
    for to, x in moving:
        if x.root in targets:
            held = b.activation(to.type)
            _copy(b, held, x)
            x = held
        aside.append((to, x))
    for to, x in aside:
        _copy(b, to, x)


def _doubling() -> Graph:
    """Return a body that doubles a state, hands out its square and ends beyond a limit."""
    number, state, most = (
        Value(name, type_)
        for name, type_ in (("number", NUMBER), ("state", f32(3)), ("most", f32(3)))
    )
    new = apply(Elementwise("add"), state, state, name="new").output
    row = apply(Elementwise("mul"), state, state, name="row").output
    return Graph("body", (number, state, most), (new, row), ("new", "row"))


Loop.examples = (
    Example(
        (None, None, f32(3), f32(3)),
        {"body": _doubling(), "count": 5, "states": 1, "axes": (0,)},
    ),
    Example(
        (TensorType(dtypes.I64, ()), TensorType(dtypes.BOOL, ()), f32(3), f32(3)),
        {"body": _doubling(), "count": 6, "states": 1, "axes": (1,)},
        low=0,
        high=9,
    ),
    Example(
        (TensorType(dtypes.I32, ()), TensorType(dtypes.BOOL, ()), f32(3), f32(3)),
        {"body": _doubling(), "count": 6, "states": 1, "axes": (0,)},
        constants=(0, 1),
        low=0,
        high=9,
    ),
)
