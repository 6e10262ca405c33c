"""Recurrent layers with numpy: activations, the three cells, the walk over a sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glowmcu.core.types import Array

CELLS = {"rnn": 1, "gru": 3, "lstm": 4}
"""Kinds of cells in the order of the kernel's numbers, and their gates."""


def _sigmoid(x: Array) -> Array:
    y: Array = 1 / (1 + np.exp(-x))
    return y


def _softplus(x: Array) -> Array:
    y: Array = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return y


@dataclass(frozen=True)
class ActivationKind:
    """A function of (x, alpha, beta); alpha and beta are None where it has no such parameter."""

    function: Callable[[Array, np.float32, np.float32], Array]
    alpha: float | None = None
    beta: float | None = None


ACTIVATIONS: dict[str, ActivationKind] = {
    "tanh": ActivationKind(lambda x, a, b: np.tanh(x)),
    "sigmoid": ActivationKind(lambda x, a, b: _sigmoid(x)),
    "relu": ActivationKind(lambda x, a, b: np.maximum(x, 0)),
    "affine": ActivationKind(lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": ActivationKind(lambda x, a, b: np.where(x < 0, a * x, x), 0.01),
    "thresholdedrelu": ActivationKind(lambda x, a, b: np.where(x > a, x, 0), 1.0),
    "scaledtanh": ActivationKind(lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": ActivationKind(lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": ActivationKind(lambda x, a, b: np.where(x < 0, a * (np.exp(x) - 1), x), 1.0),
    "softsign": ActivationKind(lambda x, a, b: x / (1 + np.abs(x))),
    "softplus": ActivationKind(lambda x, a, b: _softplus(x)),
}
"""ONNX's names in lower case, in the order of the kernel's numbers; alpha, beta by default."""

Activation = tuple[str, float, float]
"""A name of ACTIVATIONS with alpha and beta."""


@dataclass(frozen=True)
class Layer:
    """One direction of a recurrent layer: its options and its weights, see ops.recurrent."""

    cell: str
    activations: tuple[Activation, ...]
    clip: float
    linear_before_reset: bool
    input_forget: bool
    w: Array
    r: Array
    b: Array | None
    rb: Array | None
    peephole: Array | None

    def sequence(
        self, x: Array, h: Array, c: Array, reverse: bool
    ) -> tuple[list[Array], Array, Array]:
        """Return the state after each step of x [steps, inputs], and the last h and c."""
        states: list[Array] = [h] * len(x)
        for t in reversed(range(len(x))) if reverse else range(len(x)):
            h, c = self._step(x[t], h, c)
            states[t] = h
        return states, h, c

    def _step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        gates = self.w @ x + (0 if self.b is None else self.b)
        if self.cell == "rnn":
            return self._gate(0, gates + self.r @ h), c
        if self.cell == "gru":
            return self._gru(gates, h), c
        return self._lstm(gates + self.r @ h, c)

    def _lstm(self, gates: Array, c: Array) -> tuple[Array, Array]:
        enter, leave, forget, candidate = np.split(gates, 4)
        p = (0, 0, 0) if self.peephole is None else np.split(self.peephole, 3)
        enter = self._gate(0, enter + p[0] * c)
        forget = 1 - enter if self.input_forget else self._gate(0, forget + p[2] * c)
        c = forget * c + enter * self._gate(1, candidate)
        return self._gate(0, leave + p[1] * c) * self._activated(2, c), c

    def _gru(self, gates: Array, h: Array) -> Array:
        wz, wr, wh = np.split(gates, 3)
        rz, rr, rh = np.split(self.r, 3)
        update, reset = self._gate(0, wz + rz @ h), self._gate(0, wr + rr @ h)
        if self.linear_before_reset:
            wh = wh + reset * (rh @ h + (0 if self.rb is None else self.rb))
        else:
            wh = wh + rh @ (reset * h)
        new: Array = (1 - update) * self._gate(1, wh) + update * h
        return new

    def _gate(self, which: int, x: Array) -> Array:
        limit = np.float32(self.clip)
        return self._activated(which, np.clip(x, -limit, limit))

    def _activated(self, which: int, x: Array) -> Array:
        name, alpha, beta = self.activations[which]
        with np.errstate(over="ignore"):
            y = ACTIVATIONS[name].function(x, np.float32(alpha), np.float32(beta))
        return y.astype(x.dtype)
