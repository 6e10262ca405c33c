"""Runs ONNX's official backend suite through generated C and writes docs/generated/onnx_support.md.

python benchmarks/onnx_support.py [--only SUBSTRING] [--write]
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from glowmcu.driver import Compilation
from glowmcu.errors import GlowmcuError
from glowmcu.instr.evaluate import evaluate
from glowmcu.onnx_backend import OPTIONS, compile_for, inputs_of
from glowmcu.verify.extent import cropped
from glowmcu.verify.host import HostLibrary, build_library

FLAGS = ("-O0", "-std=c99", "-ffp-contract=off", "-w")
STRICT = (
    "-O0 -std=c99 -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion "
    "-Wshadow -Wdouble-promotion -Werror"
).split()
BATCH = 40
PAGE = Path(__file__).parents[1] / "docs" / "generated" / "onnx_support.md"
SHIPPED = ("simple", "pytorch-operator", "pytorch-converted")


Row = tuple[str, str, str, bool, str]
"""Kind, name, reason, is it numeric, detail."""


@dataclass(frozen=True)
class Case:
    """One test: a model and (inputs, expected outputs) of each data set."""

    kind: str
    name: str
    model: onnx.ModelProto
    data: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float

    @property
    def is_numeric(self) -> bool:
        """False where a string, sequence, optional or map goes in or out."""
        graph = self.model.graph
        for item in (*graph.input, *graph.output):
            if item.type.WhichOneof("value") != "tensor_type":
                return False
            if item.type.tensor_type.elem_type == onnx.TensorProto.STRING:
                return False
        return True


@cache
def node_cases() -> list[Case]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return [Case("node", c.name, c.model, c.data_sets, c.rtol, c.atol) for c in found]


def shipped_cases(kind: str) -> list[Case]:
    import onnx.backend.test as place

    folder = Path(place.__file__).parent / "data" / kind
    return [_shipped(kind, f) for f in sorted(folder.iterdir()) if f.is_dir()]


def _shipped(kind: str, folder: Path) -> Case:
    model = onnx.load(str(folder / "model.onnx"))
    data = []
    for each in sorted(folder.glob("test_data_set_*")):
        count = len(list(each.glob("input_*.pb")))
        inputs = [_tensor(each / f"input_{n}.pb", model.graph.input[n]) for n in range(count)]
        wanted = range(len(list(each.glob("output_*.pb"))))
        outputs = [_tensor(each / f"output_{n}.pb", model.graph.output[n]) for n in wanted]
        data.append((inputs, outputs))
    return Case(kind, folder.name, model, data, 1e-3, 1e-7)


def light_cases() -> list[Case]:
    """Return the networks of the size that people deploy, on the input that ONNX's runner makes."""
    import onnx.backend.test as place
    from onnx.backend.test.case.model import collect_testcases

    folder = Path(place.__file__).parent / "data" / "light"
    found = []
    for case in collect_testcases():
        if case.kind != "real" or not case.url:
            continue
        path = folder / Path(case.url).name
        model = onnx.load(str(path))
        (name,) = inputs_of(model)
        item = next(i for i in model.graph.input if i.name == name)
        shape = [d.dim_value for d in item.type.tensor_type.shape.dim]
        x = (np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(np.float32)
        wanted = _tensor(path.with_name(f"{path.stem}_output_0.pb"), model.graph.output[0])
        data = [([x], [wanted])]
        found.append(Case("light", case.name, model, data, case.rtol, case.atol))
    return found


def _tensor(path: Path, item: onnx.ValueInfoProto) -> Any:
    if item.type.WhichOneof("value") != "tensor_type":
        return None
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


@dataclass
class Outcome:
    """What became of a case: no reason if it passed."""

    case: Case
    reason: str = ""
    detail: str = ""


def _first_sentence(error: Exception) -> tuple[str, str]:
    problems = getattr(error, "problems", ())
    if problems:
        return problems[0].what, f"{problems[0].where} | {problems[0].why}"
    return f"{type(error).__name__}: {error}".splitlines()[0][:200], ""


def run_cases(cases: Sequence[Case], flags: Sequence[str] = FLAGS) -> Iterator[Outcome]:
    """Run cases, many to a library; large networks one by one, optimised."""
    small = [c for c in cases if c.kind != "light"]
    for start in range(0, len(small), BATCH):
        yield from _run_batch(small[start : start + BATCH], tuple(flags))
    for case in cases:
        if case.kind == "light":
            yield from _run_batch([case], ("-O2", *flags[1:]))


def _run_batch(cases: Sequence[Case], flags: tuple[str, ...]) -> list[Outcome]:
    outcomes = [Outcome(c) for c in cases]
    ready: list[tuple[Outcome, Compilation, int]] = []
    for number, outcome in enumerate(outcomes):
        case = outcome.case
        for index in range(len(case.data)):
            feeds = feeds_of(case, index)
            options = replace(OPTIONS, name=f"c{number}_{index}")
            try:
                compilation, _ = compile_for(case.model, feeds, options)
            except Exception as error:
                outcome.reason, outcome.detail = _first_sentence(error)
                if not isinstance(error, GlowmcuError):
                    outcome.reason = "INTERNAL " + outcome.reason
                break
            ready.append((outcome, compilation, index))
    library = _build([c for _, c, _ in ready], flags)
    for outcome, compilation, index in ready:
        if outcome.reason:
            continue
        try:
            path = library or build_library([compilation.unit], flags=flags)
            _check(outcome.case, compilation, index, path)
        except Exception as error:
            outcome.reason, outcome.detail = _first_sentence(error)
    return outcomes


def feeds_of(case: Case, index: int) -> dict[str, Any]:
    """Return the inputs of a data set by name."""
    names = inputs_of(case.model)
    return {n: _array(v) for n, v in zip(names, case.data[index][0], strict=False)}


def outputs_of(case: Case, index: int) -> list[Any]:
    """Return the recorded outputs of a data set."""
    return [_array(v) for v in case.data[index][1]]


def _array(value: Any) -> Any:
    """Return what a test gives or expects as an array (a sequence as it is)."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if isinstance(value, list) or value is None else np.asarray(value)


def _build(compilations: Sequence[Compilation], flags: tuple[str, ...]) -> Path | None:
    """Build one library; None where that fails, for the culprit to be found."""
    try:
        return build_library([c.unit for c in compilations], flags=flags)
    except GlowmcuError:
        return None


def _check(case: Case, compilation: Compilation, index: int, library: Path) -> None:
    given = feeds_of(case, index)
    feeds = {s.name: given[s.name] for s in compilation.unit.inputs}
    found = HostLibrary(compilation.unit, library=library).run(feeds)
    buffers = compilation.function.buffers()
    if not any(b.type.dtype.is_float for b in buffers):
        for name, array in evaluate(compilation.function, feeds).items():
            if not np.array_equal(array, found[name]):
                raise AssertionError("the C and the numpy instructions differ")
    compare_all(case, index, cropped(found, compilation.unit.extents))


def compare_all(case: Case, index: int, found: Mapping[str, Any]) -> None:
    """Raise AssertionError where an output is not what a data set expects."""
    for item, want in zip(case.model.graph.output, outputs_of(case, index), strict=True):
        _compare(item.name, found[item.name], want, case)


def _compare(name: str, got: Any, want: Any, case: Case) -> None:
    if got.dtype != want.dtype:
        raise AssertionError(f"'{name}' is {got.dtype}, not {want.dtype}")
    if got.shape != want.shape:
        raise AssertionError(f"shape: '{name}' has {got.shape}, not {want.shape}")
    if want.dtype.kind not in "biu":
        # as onnx.backend.test.runner: two units in the last place of a bfloat16
        rtol = max(case.rtol, 2**-6) if want.dtype.name == "bfloat16" else case.rtol
        got, want = got.astype(np.float64), want.astype(np.float64)
        if not np.allclose(got, want, rtol=rtol, atol=case.atol, equal_nan=True):
            with np.errstate(all="ignore"):
                worst = np.max(np.abs(got - want), initial=0.0)
            raise AssertionError(f"numbers: '{name}' differs by {worst:.3g}")
    elif not np.array_equal(got, want):
        raise AssertionError(f"numbers: '{name}' differs in {np.sum(got != want)} places")


def _part(arguments: tuple[str, int, int]) -> list[Row]:
    only, number, count = arguments
    cases = [c for c in everything() if re.search(only, f"{c.kind} {c.name}")][number::count]
    return [
        (
            o.case.kind,
            o.case.name,
            o.reason and RECORDED.get(o.case.name, o.reason),
            o.case.is_numeric,
            o.detail,
        )
        for o in run_cases(cases, FLAGS)
    ]


def everything() -> list[Case]:
    shipped = [c for kind in SHIPPED for c in shipped_cases(kind)]
    return [*node_cases(), *shipped, *light_cases()]


RECORDED = {
    "test_bernoulli_seed": "the recorded draws do not come from the seed; from it, these are right",
    "test_bernoulli_seed_expanded": "the recorded draws do not come from the seed; from it, these "
    "are right",
    "test_dft_inverse": "0 is right and computed; 1.9e-07 is recorded, rounding of numpy's FFT",
    "test_dft_inverse_opset19": "0 is right and computed; 1.9e-07 is recorded, rounding of "
    "numpy's FFT",
}
"""Cases whose recorded results are not what the operator is defined to give, and why (a test shows
that it is so)."""
_EXPLANATION = """\
# What runs of ONNX's backend test suite

Written by `python benchmarks/onnx_support.py --write` with onnx {version}; do not edit.

Every case is compiled to C, built for this machine and run; results are compared as the suite
does it. Where no float is involved the C also gives exactly what the numpy instructions give.
Inputs that parametrise shapes (the shape of Reshape, axes, pads, a zero point...) are first left to
run time; the ones that the compiler then asks for are fixed to their values, as `--fix-input` does.
Results of data-dependent shape are cut to the shape that the C code reports (see c-api.md).

"""


def page(rows: Sequence[Row]) -> str:
    """Return the text of docs/generated/onnx_support.md."""
    lines = [_EXPLANATION.format(version=onnx.__version__).rstrip("\n"), ""]
    lines += ["| set | cases | right | of those with numeric tensors only |", "|---|---|---|---|"]
    for kind in sorted({r[0] for r in rows}):
        mine = [r for r in rows if r[0] == kind]
        numeric = [r for r in mine if r[3]]
        right, good = (sum(not r[2] for r in part) for part in (mine, numeric))
        share = 100 * good / len(numeric)
        lines.append(
            f"| {kind} | {len(mine)} | {right} | {good} of {len(numeric)}, {share:.1f} % |"
        )
    lines += ["", *_counts(), ""]
    for numeric, title in (
        (True, "Numeric cases that fail"),
        (False, "Strings, sequences, optionals"),
    ):
        failing = [r for r in rows if r[2] and r[3] == numeric]
        lines += [f"## {title}", "", "| set | case | reason |", "|---|---|---|"]
        lines += [f"| {r[0]} | {r[1]} | {r[2].replace('|', ' ')} |" for r in failing]
        lines.append("")
    return "\n".join(lines)


def _counts() -> list[str]:
    from glowmcu.frontend.bodies.body import BODIES
    from glowmcu.instr.instruction import Instruction
    from glowmcu.ops.base import IMPORTERS, INNER, Op

    def below(cls: type) -> Iterator[type]:
        for child in cls.__subclasses__():
            yield child
            yield from below(child)

    instructions = [i for i in below(Instruction) if i.kernels]  # type: ignore[attr-defined]
    kernels = {k.symbol for i in instructions for k in i.kernels}  # type: ignore[attr-defined]
    own = [key for key in (*IMPORTERS, *BODIES) if key[0] != INNER]
    return [
        f"Made of {len(set(own))} ONNX operators with an importer or body here (others are "
        f"expanded by ONNX's own function bodies), {len(Op.registry)} graph operators, "
        f"{len(instructions)} instructions and {len(kernels)} kernels."
    ]


def known_failures() -> set[str]:
    """Return the names of cases that the page says fail."""
    rows = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return {
        row[2].strip() for row in rows if len(row) == 5 and row[2].strip() not in ("case", "---")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    parts = [(given.only, n, given.jobs) for n in range(given.jobs)]
    with ProcessPoolExecutor(given.jobs) as pool:
        rows = sorted(row for part in pool.map(_part, parts) for row in part)
    for kind, name, reason, numeric, detail in rows:
        if reason:
            print(kind, "" if numeric else "(not numeric)", name, "|", reason, "|", detail)
    print(Counter((r[0], r[3], not r[2]) for r in rows))
    if given.write:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
