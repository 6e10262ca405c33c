"""Importers of recurrent layers against ONNX Runtime and the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from imported import Array, import_node, run
from onnx import helper

from glowmcu.errors import UnsupportedError

STEPS, BATCH, INPUTS, HIDDEN = 4, 2, 3, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTHS = np.array([2, 4], np.int32)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias": {"parts": "b"},
    "states": {"parts": "b h c"},
    "lengths": {"parts": "b lengths h c"},
    "clip": {"parts": "b", "clip": 0.4},
    "sequence only": {"parts": "b h c", "keep": "y"},
}


def parameters(op: str, directions: int, parts: str) -> list[tuple[str, Array | None]]:
    """Return the inputs after x by name, None for those that are not among `parts`."""
    rng = np.random.default_rng(7)

    def random(*shape: int) -> Array:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    rows = GATES[op] * HIDDEN
    state = (directions, BATCH, HIDDEN)
    wanted = parts.split()
    found: list[tuple[str, Array | None]] = [
        ("w", random(directions, rows, INPUTS)),
        ("r", random(directions, rows, HIDDEN)),
    ]
    optional = {
        "b": random(directions, 2 * rows),
        "lengths": LENGTHS,
        "h": random(*state),
    }
    if op == "LSTM":
        optional |= {"c": random(*state), "p": random(directions, 3 * HIDDEN)}
    return found + [(n, a if n in wanted else None) for n, a in optional.items()]


def check(
    op: str,
    direction: str = "forward",
    parts: str = "",
    keep: str = "y h c",
    fixed: str = "w r b p",
    oracle: str = "onnxruntime",
    opset: int = 14,
    **attributes: Any,
) -> None:
    """Compare one layer; `fixed` names the inputs that are constants."""
    directions = 2 if direction == "bidirectional" else 1
    given = parameters(op, directions, parts)
    rng = np.random.default_rng(8)
    feeds = {"x": rng.uniform(-1, 1, (STEPS, BATCH, INPUTS)).astype(np.float32)}
    feeds |= {n: a for n, a in given if a is not None and n not in fixed.split()}
    constants = {n: a for n, a in given if a is not None and n in fixed.split()}
    inputs = ["x", *(n if a is not None else "" for n, a in given)]
    while not inputs[-1]:
        inputs.pop()
    run(
        op,
        feeds,
        constants,
        inputs=inputs,
        outputs=len([n for n in keep.split() if n != "c" or op == "LSTM"]),
        opset=opset,
        oracle=oracle,
        tolerance=2e-6,
        direction=direction,
        hidden_size=HIDDEN,
        **attributes,
    )


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", GATES)
def test_options(op: str, direction: str, option: str) -> None:
    check(op, direction, **OPTIONS[option])


@pytest.mark.parametrize("parts", ["", "b", "b h lengths"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_gru_that_resets_the_product(direction: str, parts: str) -> None:
    check("GRU", direction, parts, linear_before_reset=1)


@pytest.mark.parametrize("fixed", ["", "w r", "w r b h c p lengths"])
@pytest.mark.parametrize("op", GATES)
def test_every_input_may_be_constant_or_not(op: str, fixed: str) -> None:
    check(op, "bidirectional", "b lengths h c", fixed=fixed)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_peepholes(direction: str) -> None:
    check("LSTM", direction, "b h c p")
    check("LSTM", direction, "b c p", clip=0.5)


def test_coupled_input_and_forget_gates() -> None:
    check("LSTM", "forward", "b h c", input_forget=1)


@pytest.mark.parametrize(
    ("names", "alpha", "beta"),
    [
        (["Relu"], [], []),
        (["Affine"], [0.7], [0.1]),
        (["LeakyRelu"], [0.2], []),
        (["ThresholdedRelu"], [0.3], []),
        (["ScaledTanh"], [0.8], [0.6]),
        (["HardSigmoid"], [0.3], [0.4]),
        (["Elu"], [0.5], []),
        (["Softsign"], [], []),
        (["Softplus"], [], []),
        (["Sigmoid"], [], []),
    ],
)
def test_activations(names: list[str], alpha: list[float], beta: list[float]) -> None:
    extra: dict[str, Any] = {"activation_alpha": alpha} if alpha else {}
    extra |= {"activation_beta": beta} if beta else {}
    check("RNN", parts="b", activations=names, **extra)


def test_activations_take_their_parameters_in_order() -> None:
    check(
        "LSTM",
        "bidirectional",
        "b",
        activations=["HardSigmoid", "Tanh", "Elu", "Sigmoid", "Elu", "Softsign"],
        activation_alpha=[0.3, 0.6, 0.9],
        activation_beta=[0.45],
    )
    check("GRU", "forward", "b", activations=["HardSigmoid", "Softsign"])


@pytest.mark.parametrize("op", GATES)
def test_batch_first(op: str) -> None:
    rng = np.random.default_rng(9)
    rows = GATES[op] * HIDDEN
    feeds = {"x": rng.uniform(-1, 1, (BATCH, STEPS, INPUTS)).astype(np.float32)}
    constants = {
        "w": rng.uniform(-1, 1, (1, rows, INPUTS)).astype(np.float32),
        "r": rng.uniform(-1, 1, (1, rows, HIDDEN)).astype(np.float32),
    }
    run(op, feeds, constants, outputs=2, oracle="reference", tolerance=2e-6, opset=14, layout=1)


@pytest.mark.parametrize("opset", [7, 22])
@pytest.mark.parametrize("op", GATES)
def test_opsets(op: str, opset: int) -> None:
    check(op, "forward", "b", opset=opset)


def test_halves_are_computed_in_float32() -> None:
    rng = np.random.default_rng(9)
    feeds = {"x": rng.uniform(-1, 1, (3, 1, 2)).astype(np.float16)}
    constants = {
        "w": rng.uniform(-1, 1, (1, 8, 2)).astype(np.float16),
        "r": rng.uniform(-1, 1, (1, 8, 2)).astype(np.float16),
    }
    run("LSTM", feeds, constants, outputs=3, oracle="reference", tolerance=4e-3, hidden_size=2)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activations": ["Cube"]}, "the activation 'cube' is not one of"),
        ({"activations": ["Tanh", "Tanh"]}, "2 activations instead of 1"),
        ({"direction": "sideways"}, "the direction 'sideways'"),
        ({"hidden_size": 9}, "hidden_size is 9"),
    ],
)
def test_what_does_not_fit_is_named(attributes: dict[str, Any], message: str) -> None:
    x, w, r = (np.zeros(s, np.float32) for s in ((2, 1, 3), (1, 4, 3), (1, 4, 4)))
    proto = helper.make_node("RNN", ["x", "w", "r"], ["y"], name="node", **attributes)
    with pytest.raises(UnsupportedError, match=message):
        import_node(proto, {"x": x}, {"w": w, "r": r}, 14)
