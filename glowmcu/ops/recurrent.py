"""Recurrent: RNN, GRU and LSTM over a sequence, in one or both directions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.function import Builder
from glowmcu.instr.instruction import In, Instruction, Out
from glowmcu.ops._recurrent import ACTIVATIONS, CELLS, Activation, Layer
from glowmcu.ops.base import Example, Op, f32
from glowmcu.targets.kernel import Kernel

TANH: Activation = ("tanh", 0.0, 0.0)
SIGMOID: Activation = ("sigmoid", 0.0, 0.0)
DEFAULTS: dict[str, tuple[Activation, ...]] = {
    "rnn": (TANH, TANH, TANH),
    "gru": (SIGMOID, TANH, TANH),
    "lstm": (SIGMOID, TANH, TANH),
}
"""Activations of the gates, of the candidate, and of the LSTM's state, by kind of cell."""


class Recurrent(Op):
    """ONNX's RNN, GRU and LSTM with its order of gates; the outputs are (y, y_h, y_c).

    Inputs, of which all but x, w and r may be absent:
    x [S, B, I]; w [D, G*H, I]; r [D, G*H, H]; b [D, G*H], the sum of both biases, except with
    linear_before_reset for the candidate, where the bias of r is rb [D, H]; lengths [B];
    h0, c0 [D, B, H]; peephole [D, 3*H], for the gates i, o, f
    y [S, D, B, H], only where `sequence`; y_h, y_c [D, B, H], y_c of LSTM only

    direction  forward, reverse or bidirectional
    """

    floats = (dtypes.F32,)

    cell: str
    direction: str = "forward"
    activations: tuple[Activation, ...] = ()
    clip: float = math.inf
    linear_before_reset: bool = False
    input_forget: bool = False
    sequence: bool = True

    def infer(
        self, x: TensorType, w: TensorType, r: TensorType, *rest: TensorType | None
    ) -> tuple[TensorType, ...]:
        steps, batch, inputs = x.shape
        directions, rows, hidden = r.shape
        wanted = 2 if self.direction == "bidirectional" else 1
        if directions != wanted:
            raise TypeError(f"{self.direction} needs weights of {wanted} directions: r is {r}")
        if rows != CELLS[self.cell] * hidden or w.shape != (directions, rows, inputs):
            raise TypeError(f"w {w}, r {r} and x {x} do not go together")
        shapes = _optional_shapes(directions, rows, hidden, batch)
        for type_, (name, shape) in zip(rest, shapes.items(), strict=False):
            if type_ is not None and type_.shape != shape:
                raise TypeError(f"{name} is {type_}, but should have shape {shape}")
        if x.dtype is not dtypes.F32:
            raise TypeError(f"recurrent cells take float32, not {x.dtype}")
        state = TensorType(x.dtype, (directions, batch, hidden))
        y = TensorType(x.dtype, (steps, directions, batch, hidden))
        states = (state, state) if self.cell == "lstm" else (state,)
        return (y, *states) if self.sequence else states

    def reference(self, x: Array, w: Array, r: Array, *rest: Array | None) -> tuple[Array, ...]:
        b, rb, lengths, h0, c0, peephole = _padded(rest)
        steps, batch, _ = x.shape
        directions, _, hidden = r.shape
        y = np.zeros((steps, directions, batch, hidden), x.dtype)
        state = np.zeros((2, directions, batch, hidden), x.dtype)
        for n, initial in enumerate((h0, c0)):
            if initial is not None:
                state[n] = initial
        for d in range(directions):
            own = (None if a is None else a[d] for a in (w, r, b, rb, peephole))
            layer = Layer(
                self.cell,
                self.activations or DEFAULTS[self.cell],
                self.clip,
                self.linear_before_reset,
                self.input_forget,
                *own,  # type: ignore[arg-type]
            )
            backward = self.direction == "reverse" or d == 1
            for s in range(batch):
                count = steps if lengths is None else min(max(int(lengths[s]), 0), steps)
                found, h, c = layer.sequence(x[:count, s], state[0, d, s], state[1, d, s], backward)
                y[:count, d, s] = np.reshape(found, (count, hidden))
                state[0, d, s], state[1, d, s] = h, c
        states = (state[0], state[1]) if self.cell == "lstm" else (state[0],)
        return (y, *states) if self.sequence else states

    def lower(
        self, b: Builder, x: Buffer, w: Buffer, r: Buffer, *rest: Buffer | None
    ) -> tuple[Buffer, ...]:
        bias, rb, lengths, h0, c0, peephole = _padded(rest)
        steps, batch, inputs = x.type.shape
        activations = self.activations or DEFAULTS[self.cell]
        names = list(ACTIVATIONS)
        results = b.results
        y = results[0] if self.sequence else None
        states = results[1:] if self.sequence else results
        b.emit(
            RecurrentF32(
                y=y,
                yh=states[0],
                yc=states[1] if self.cell == "lstm" else None,
                x=x,
                w=w,
                r=r,
                b=bias,
                rb=rb,
                lengths=lengths,
                h0=h0,
                c0=c0,
                peephole=peephole,
                cell=list(CELLS).index(self.cell),
                steps=steps,
                batch=batch,
                features=inputs,
                hidden=r.type.shape[2],
                directions=r.type.shape[0],
                reverse=int(self.direction == "reverse"),
                linear_before_reset=int(self.linear_before_reset),
                input_forget=int(self.input_forget),
                clip=self.clip,
                activations=tuple(names.index(name) for name, _, _ in activations),
                alpha=tuple(alpha for _, alpha, _ in activations),
                beta=tuple(beta for _, _, beta in activations),
            )
        )
        return results


def _padded(rest: tuple[Any, ...]) -> list[Any]:
    """Return the six optional inputs, None for those left out at the end."""
    return [*rest, *[None] * (6 - len(rest))]


def _optional_shapes(
    directions: int, rows: int, hidden: int, batch: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs after x, w and r, by name."""
    return {
        "b": (directions, rows),
        "rb": (directions, hidden),
        "lengths": (batch,),
        "h0": (directions, batch, hidden),
        "c0": (directions, batch, hidden),
        "peephole": (directions, 3 * hidden),
    }


class RecurrentF32(Instruction):
    """A recurrent layer; the struct of its kernel says what the attributes mean."""

    y: Out | None = None
    yh: Out
    yc: Out | None = None
    x: In
    w: In
    r: In
    b: In | None = None
    rb: In | None = None
    lengths: In | None = None
    h0: In | None = None
    c0: In | None = None
    peephole: In | None = None
    cell: int
    steps: int
    batch: int
    features: int
    hidden: int
    directions: int
    reverse: int
    linear_before_reset: int
    input_forget: int
    clip: float
    activations: tuple[int, ...]
    alpha: tuple[float, ...]
    beta: tuple[float, ...]

    kernels = (
        Kernel("gm_recurrent_f32", core=True, scratch=lambda i: 4 * i.hidden * scratch_gates(i)),
    )
    may_share = (("yh", "h0"), ("yc", "c0"))

    @property
    def macs(self) -> int:
        rows = list(CELLS.values())[self.cell] * self.hidden
        return self.directions * self.batch * self.steps * rows * (self.features + self.hidden)

    def reference(self, *arrays: Any) -> tuple[Array, ...]:
        names = list(ACTIVATIONS)
        direction = "reverse" if self.reverse else "forward"
        op = Recurrent(
            list(CELLS)[self.cell],
            "bidirectional" if self.directions == 2 else direction,
            tuple(
                (names[n], alpha, beta)
                for n, alpha, beta in zip(self.activations, self.alpha, self.beta, strict=True)
            ),
            self.clip,
            bool(self.linear_before_reset),
            bool(self.input_forget),
            self.y is not None,
        )
        return op.reference(*arrays)


def scratch_gates(i: RecurrentF32) -> int:
    """Return how many vectors of the size of the state a step needs."""
    return list(CELLS.values())[i.cell] + i.linear_before_reset


def _example(
    cell: str, s: int, b: int, i: int, h: int, inputs: str = "", **attributes: Any
) -> Example:
    """Make an example; `inputs` names the optional ones that are there."""
    d = 2 if attributes.get("direction") == "bidirectional" else 1
    rows = CELLS[cell] * h
    shapes = _optional_shapes(d, rows, h, b)
    optional = (
        (TensorType(dtypes.I32, shape) if name == "lengths" else f32(*shape))
        if name in inputs.split()
        else None
        for name, shape in shapes.items()
    )
    types = (f32(s, b, i), f32(d, rows, i), f32(d, rows, h), *optional)
    return Example(types, {"cell": cell, **attributes}, constants=(1, 2, 3, 4), low=-1.2, high=2.2)


Recurrent.examples = (
    _example("lstm", 4, 1, 3, 5, "b"),
    _example("lstm", 3, 2, 3, 6, "b h0 c0 lengths", direction="bidirectional"),
    _example("lstm", 1, 1, 4, 5, "h0 c0 peephole", sequence=False, clip=1.5),
    _example("lstm", 2, 1, 2, 2, "b c0", input_forget=True, direction="reverse"),
    _example("gru", 4, 2, 3, 5, "b rb h0", linear_before_reset=True, direction="bidirectional"),
    _example("gru", 3, 2, 2, 6, "b lengths", direction="reverse"),
    _example("gru", 2, 1, 2, 4, "h0", linear_before_reset=True, sequence=False),
    _example("rnn", 5, 2, 3, 7, "b h0 lengths"),
    *(
        _example("rnn", 3, 1, 2, 5, "b", activations=((name, 0.7, 0.4),) * 3, clip=2.0)
        for name in ACTIVATIONS
    ),
)
