"""Why an operator or a kind of value is not supported, and what to do about it, as sentences."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx.defs import OpSchema

from glowmcu.errors import Problem
from glowmcu.ops.base import IMPORTERS, INNER
from glowmcu.ops.onnx_node import OnnxNode


@dataclass(frozen=True)
class Reason:
    """Why something has no C code, and what to try instead."""

    why: str
    hint: str


KINDS = {
    "sequence": Reason(
        "a sequence holds any number of tensors; the C code works on single tensors of fixed size",
        "make each element a tensor of its own, or stack them into one tensor (Concat, Split)",
    ),
    "optional": Reason(
        "whether an optional value is there is known at run time only; the C code works on tensors "
        "that are always there",
        "make it a tensor, or leave it out when exporting",
    ),
    "map": Reason(
        "a map goes from keys to values; the C code works on tensors of numbers",
        "export the model so that it gives tensors (for scikit-learn: options={'zipmap': False})",
    ),
    "string": Reason(
        "the C code works on tensors of numbers, which text is not",
        "turn text into numbers, such as indices of tokens, in the program around the network",
    ),
    "complex": Reason(
        "C code that runs everywhere has no complex numbers",
        "add a last dimension of size 2 for the real and the imaginary part, as DFT does",
    ),
}
"""Kinds of values that are not tensors of real numbers."""

_PREFIXES = {"seq(": "sequence", "optional(": "optional", "map(": "map", "tensor(string": "string"}
_OPERATORS = {
    "ImageDecoder": Reason(
        "it decodes image files (JPEG, PNG and others), whose size is known at run time only",
        "decode the picture in the program around the network and make the pixels its input",
    ),
    "Gradient": Reason(
        "it stands for derivatives that a training framework works out",
        "export the model for inference, or with the derivatives as ordinary operators",
    ),
    "Multinomial": Reason(
        "it draws random numbers, and ONNX does not say which ones a seed gives",
        "leave the draw to the program around the network: make the probabilities the output",
    ),
    "MaxRoiPool": Reason(
        "the regions that it pools over are known at run time only",
        "use RoiAlign, which exporters of current detectors write",
    ),
}


def unsupported(seen: OnnxNode, schema: OpSchema | None) -> Problem:
    """Say that an operator has no importer and no definition, why, and what to try."""
    kind = kind_of(schema)
    what = "the operator is not supported"
    if kind:
        plural = {"optional": "optional values"}.get(kind, f"{kind}s")
        what = f"{plural} are not supported, as they are not tensors of numbers"
    reason = reason_of(seen.op_type, seen.domain, seen.opset, schema)
    return seen.problem(what, why=reason.why, hint=reason.hint)


def reason_of(op_type: str, domain: str, opset: int | None, schema: OpSchema | None) -> Reason:
    """Return why an operator is not supported and what to try.

    opset  None: any
    """
    version = "" if opset is None else f"opset {opset}"
    near = _near(op_type)
    if schema is None and domain:
        why = f"domain {domain} is not part of ONNX and the model brings no function for it"
        return Reason(why, near)
    if schema is None:
        return Reason(
            f"{version} of ONNX has no operator of that name"
            if version
            else "ONNX has no operator of that name",
            near,
        )
    kind = kind_of(schema)
    if kind:
        return KINDS[kind]
    where = ", ".join(p for p in (f"domain {domain or 'ai.onnx'}", version) if p)
    return _OPERATORS.get(op_type, Reason(f"{where}, has it, but glowmcu does not", near))


def kind_of(schema: OpSchema | None) -> str:
    """Return what an operator takes or gives if it is always something other than a tensor."""
    for formal in (*schema.inputs, *schema.outputs) if schema else ():
        types: Any = formal.types
        for kind in KINDS:
            prefixes = tuple(p for p, k in _PREFIXES.items() if k == kind)
            if types and prefixes and all(t.startswith(prefixes) for t in types):
                return kind
    return ""


def _near(op_type: str) -> str:
    domains = sorted(d for d, name in IMPORTERS if name == op_type)
    if domains:
        return f"it is known in domain '{domains[0] or 'ai.onnx'}'"
    close = _close(op_type)
    if close:
        return f"close to it are {', '.join(close)}"
    return "write it as a function of the model, or as a plugin (docs/plugins.md)"


@cache
def _close(op_type: str) -> tuple[str, ...]:
    names = sorted({n for domain, n in IMPORTERS if domain != INNER})
    alike = difflib.get_close_matches(op_type, names, 3)
    return tuple(alike or [n for n in names if len(n) > 3 and op_type.startswith(n)])


def grouped(problems: Sequence[Problem]) -> list[Problem]:
    """Merge problems that differ in their place only."""
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.what, problem.why, problem.hint), []).append(problem)
    merged = []
    for (what, why, hint), group in groups.items():
        where = group[0].where
        if len(group) > 1:
            where += f" and {len(group) - 1} more"
        needs = tuple(dict.fromkeys(n for p in group for n in p.needs))
        merged.append(Problem(what, where, why, hint, needs))
    return merged
