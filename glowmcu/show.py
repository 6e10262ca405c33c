"""What the command line prints: tables, summaries, dumps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from glowmcu.core import dtypes
from glowmcu.core.types import Array
from glowmcu.errors import OptionError
from glowmcu.frontend.functions import has_body
from glowmcu.frontend.signature import ONNX_NAMES, schema_of
from glowmcu.frontend.unsupported import reason_of
from glowmcu.graph import printer as graph_printer
from glowmcu.graph.graph import Graph
from glowmcu.instr import printer as function_printer
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction

if TYPE_CHECKING:
    from glowmcu.driver import Compilation
    from glowmcu.instr.instruction import Instruction
    from glowmcu.targets.board import Board
    from glowmcu.targets.kernel import Kernel
    from glowmcu.verify.compare import Comparison, Difference

Rows = tuple[Sequence[str], list[Sequence[str]]]
"""Headings and rows of a table."""


_WHOLE = 18
"""Columns of texts up to this length are not wrapped."""


def table(console: Console, title: str, rows: Rows, markdown: bool = False) -> None:
    """Print a table, or its Markdown for the documentation."""
    headings, body = rows
    if markdown:
        console.print(markdown_table(rows), markup=False)
        return
    shown = Table(title=title, box=None, title_justify="left", header_style="bold", pad_edge=False)
    for heading in headings:
        cells = [row[len(shown.columns)] for row in body]
        numeric = bool(body) and all(c.replace(",", "").isdigit() for c in cells)
        whole = max(map(len, cells), default=0) <= _WHOLE
        shown.add_column(heading, justify="right" if numeric else "left", no_wrap=whole)
    for row in body:
        shown.add_row(*(escape(cell) for cell in row))
    console.print(shown)


def markdown_table(rows: Rows) -> str:
    """Return headings and rows as a Markdown table."""
    headings, body = rows
    lines = [headings, ["---"] * len(headings), *body]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in lines)


def pass_rows() -> Rows:
    """Every pass in order of execution, with its description."""
    from glowmcu.generate import function_passes
    from glowmcu.options import Options
    from glowmcu.passes import GRAPH_PASSES

    named = [("graph", p) for p in GRAPH_PASSES]
    named += [("function", p) for p in function_passes(Options())]  # type: ignore[misc]
    body = [(str(i + 1), level, p.name, p.summary) for i, (level, p) in enumerate(named)]
    return ("", "level", "pass", "what it does"), body  # type: ignore[return-value]


def operator_rows(name: str | None) -> Rows:
    """The ONNX operators with an importer, or one of them."""
    import glowmcu.ops  # noqa: F401 - importing the cards fills the table
    from glowmcu.frontend.bodies import BODIES
    from glowmcu.frontend.control import NAMES
    from glowmcu.ops.base import IMPORTERS, INNER

    makers = {**BODIES, **{k: i for k, i in IMPORTERS.items() if k[0] != INNER}}
    known = {key: " ".join((m.__doc__ or "").split()) for key, m in makers.items()}
    known |= {("", op): text for op, text in NAMES.items()}
    if name is not None and not any(op == name for _, op in known):
        schema = schema_of(name, _NEWEST, "")
        if not has_body(schema):
            reason = reason_of(name, "", None, schema)
            raise OptionError(
                f"the operator '{name}' is not supported", why=reason.why, hint=reason.hint
            )
        known["", name] = "Expanded into other operators, as ONNX defines it."
    body = []
    for (domain, op), lines in sorted(known.items()):
        if name in (None, op):
            text = lines if name else lines.split(". ")[0]
            body.append((f"{domain}.{op}" if domain else op, text))
            body += _schema_rows(domain, op) if name else []
    return ("operator", "what is supported"), body  # type: ignore[return-value]


_NEWEST = 1000


def _schema_rows(domain: str, op: str) -> list[tuple[str, str]]:
    """What ONNX says of an operator: attributes with their defaults, inputs, outputs, types."""
    schema: Any = schema_of(op, _NEWEST, domain)
    if schema is None:
        return []
    rows = [("  as of opset", str(schema.since_version))]
    for what, formals in (("input", schema.inputs), ("output", schema.outputs)):
        rows += [(f"  {what} {f.name}", types_text(set(f.types))) for f in formals]
    rows += [(f"  attribute {n}", _default(a)) for n, a in sorted(schema.attributes.items())]
    return rows


_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_GROUPS = (
    ("float16, bfloat16, float, double", {"float16", "bfloat16", "float", "double"}),
    ("integers of 8 to 64 bits", _INTEGERS),
    ("integers of 2 and 4 bits", {"int2", "int4", "uint2", "uint4"}),
    ("float8", {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"}),
)


def types_text(types: set[str]) -> str:
    """Return the element types that C code has of ONNX's types, whole families by one name."""
    tensors = {t[7:-1] for t in types if t.startswith("tensor(")}
    left = tensors & set(ONNX_NAMES.values())
    words = []
    for text, group in _GROUPS:
        if group <= left:
            words.append(text)
            left -= group
    return ", ".join([*words, *sorted(left)]) or "no tensors of numbers"


def _default(attribute: Any) -> str:
    if not attribute.default_value.name:
        return "required" if attribute.required else "optional"
    value = onnx.helper.get_attribute_value(attribute.default_value)
    return f"default {value.decode() if isinstance(value, bytes) else value}"


def instruction_rows() -> Rows:
    """The instructions that operators are lowered to, with their kernels."""
    import glowmcu.instr.striped
    import glowmcu.ops  # noqa: F401 - importing the cards defines the instructions

    found = sorted((c for c in _below(Instruction) if c.kernels), key=lambda c: c.__name__)
    body = [
        (
            str(number),
            c.__name__,
            " ".join((c.__doc__ or "").split("\n\n")[0].split()),
            ", ".join(k.symbol for k in c.kernels),
        )
        for number, c in enumerate(found, 1)
    ]
    return ("", "instruction", "what it does", "kernels"), body  # type: ignore[return-value]


def _below(cls: type[Instruction]) -> Iterator[type[Instruction]]:
    for child in cls.__subclasses__():
        if child.__module__.startswith("glowmcu."):
            yield child
        yield from _below(child)


def target_rows() -> Rows:
    """The built-in targets."""
    from glowmcu.targets.target import TARGETS

    body = [
        (t.name, t.summary, ", ".join(sorted(t.capabilities)) or "c99", " ".join(t.flags))
        for t in TARGETS.values()
    ]
    return ("target", "what", "capabilities", "compiler flags"), body  # type: ignore[return-value]


def board_rows() -> Rows:
    """The boards, with memory and clock."""
    from glowmcu.targets.board import FLASHES, RAMS, list_boards

    body = [
        (
            b.name,
            _sizes(b, FLASHES),
            _sizes(b, RAMS),
            f"{b.clock / 1e6:g}",
            "yes" if b.emulated else "no",
            "yes" if b.startup else "no",
            b.summary,
        )
        for b in list_boards()
    ]
    headings = ("board", "flash KiB", "RAM KiB", "MHz", "emulated", "images", "what")
    return headings, body  # type: ignore[return-value]


def _sizes(on: Board, regions: Sequence[str]) -> str:
    """Return KiB of each region, the quickest first."""
    return " + ".join(str(on.memory[r].length // 1024) for r in regions if r in on.memory)


def summary(console: Console, compilation: Compilation, folder: Path | None = None) -> None:
    """Print what was made: flash, RAM, MACs; also the files, where they are alone in `folder`."""
    report = compilation.unit.report
    console.print(f"[bold]{escape(compilation.unit.name)}[/] for {compilation.target.name}")
    console.print(
        f"  arena    {report['arena_bytes']:>10,} bytes of RAM"
        f" (no plan can be below {compilation.plan.lower_bound:,})"
    )
    console.print(f"  weights  {report['weights_bytes']:>10,} bytes of flash")
    console.print(f"  MACs     {report['macs']:>10,} per inference")
    if folder is not None:
        console.print(
            f"  written to {escape(str(folder))}: {len(compilation.unit.files)} files;"
            f" start with {compilation.unit.name}.h"
        )


def summary_together(console: Console, report: Mapping[str, Any], folder: Path) -> None:
    """Print what several networks take together."""
    shared = report["shared_arena"]
    names = ", ".join(report["networks"])
    how = f"shared, {report['scratch_bytes']:,} of them in turn" if shared else "each its own"
    console.print(f"[bold]{escape(names)}[/] together")
    console.print(f"  arena    {report['arena_bytes']:>10,} bytes of RAM ({how})")
    console.print(f"  weights  {report['weights_bytes']:>10,} bytes of flash")
    start = "shared_arena.h" if shared else f"{report['networks'][0]}.h"
    console.print(
        f"  written to {escape(str(folder))}: {len(report['files'])} files; start with {start}"
    )


def layers(console: Console, compilation: Compilation) -> None:
    """Print one row per instruction: kernel, MACs, memory."""
    body: list[Sequence[str]] = []
    for number, layer in enumerate(compilation.unit.report["layers"]):
        first, last = layer["lifetime"]
        body.append(
            (
                str(number),
                layer["op"] + (f" x{layer['turns']}" if layer["turns"] > 1 else ""),
                layer["name"],
                layer["kernel"],
                f"{layer['macs']:,}",
                f"{layer['output_bytes']:,}",
                f"in {layer['memory']}" if layer["memory"] else f"{layer['offset']:,}",
                f"{first}-{last}",
            )
        )
        for place, member in enumerate(layer["members"]):
            figures = f"{member['macs']:,}", f"{member['output_bytes']:,}"
            named = f"{number}.{place}", f"  {member['op']}", member["name"], member["kernel"]
            body.append((*named, *figures, f"{member['rows']} rows", ""))
    headings = ("", "instruction", "layer", "kernel", "MACs", "bytes", "offset", "live")
    table(console, compilation.unit.name, (headings, body))
    console.print(f"arena {compilation.plan.size:,} bytes, bound {compilation.plan.lower_bound:,}")


def kernels(console: Console, compilation: Compilation) -> None:
    """Print every choice of a kernel: what was taken, what was not and why, with figures."""
    from glowmcu.instr.striped import Striped

    options = compilation.options
    limit = options.flash_limit
    lines = [
        f"{compilation.unit.name} for {compilation.target.name}, --optimize {options.optimize}"
        + ("" if limit is None else f", --flash-limit {limit}")
    ]
    for number, instruction in enumerate(compilation.function.instructions):
        if isinstance(instruction, Striped):
            lines.append(f"{number}: row by row, so that less memory is needed:")
            for place, member in enumerate(instruction.members):
                lines += _decision(f"{number}.{place}", member.instruction, compilation)
        else:
            lines += _decision(str(number), instruction, compilation)
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _decision(number: str, instruction: Instruction, compilation: Compilation) -> Iterator[str]:
    """Yield the kernel of one layer, then every other one and why it was not taken."""
    from glowmcu.targets.select import verdicts

    kernel = instruction.kernel
    assert kernel is not None
    head = f"{number}: {type(instruction).__name__} '{instruction.name}': {kernel.symbol}"
    yield f"{head}{_figures(kernel, instruction)}"
    options = compilation.options
    reasons = dict(verdicts(instruction, compilation.target, options.optimize, kernel))
    for other in instruction.kernels:
        if other.symbol in reasons:
            known = "" if other.accepts(instruction) else _figures(other, instruction)
            yield f"    not {other.symbol}: {reasons[other.symbol]}{known}"


def _figures(kernel: Kernel, instruction: Instruction) -> str:
    """Return what a kernel says of an instruction that it accepts, in brackets."""
    found = [f"about {kernel.cycles(instruction):,.0f} cycles"] if kernel.cycles else []
    found += [f"{kernel.flash(instruction):,} bytes of flash"] if kernel.flash else []
    scratch = kernel.scratch(instruction)
    found += [f"{scratch:,} of scratch"] if scratch else []
    return f" ({', '.join(found)})" if found else ""


def stage_text(compilation: Compilation, stage: str) -> str:
    """Return the dump of a compilation at one stage."""
    if stage == "imported":
        return graph_printer.dump(compilation.imported)
    if stage == "graph":
        return graph_printer.dump(compilation.graph)
    plan = compilation.plan
    return function_printer.dump(compilation.function, plan.offsets, plan.lifetimes)


def dump_any(subject: object) -> str:
    """Return the text of a graph, a function or what is text already."""
    if isinstance(subject, Graph):
        return graph_printer.dump(subject)
    if isinstance(subject, Function):
        return function_printer.dump(subject)
    return str(subject)


def memory_map(compilation: Compilation, width: int) -> str:
    """Return the arena over time as text."""
    from glowmcu.memory.draw import draw_text

    return draw_text(compilation.function, compilation.plan, width)


def comparisons(console: Console, results: Sequence[Comparison]) -> None:
    """Print one row per pair of levels, and the layers that differ more than they may."""
    body: list[Sequence[str]] = []
    for result in results:
        worst = _worst(result.layers.values())
        outputs = _worst(result.outputs.values())
        verdict = "-" if not result.judged else "same" if result.passed else "DIFFERENT"
        body.append(
            (
                result.title,
                str(len(result.layers)),
                worst,
                outputs,
                verdict,
                result.first or "" if result.judged else "",
            )
        )
    headings = ("levels", "layers", "worst layer", "network outputs", "", "first that differs")
    table(console, "verification", (headings, body))


def _worst(found: Any) -> str:
    differences: list[Difference] = list(found)
    if not differences:
        return "-"
    if all(d.lsb is not None for d in differences):
        return f"{max(d.lsb or 0 for d in differences)} LSB"
    worst = max(d.relative for d in differences)
    return f"{worst:.1e} of the range"


def arrays(console: Console, results: Mapping[str, Array]) -> None:
    """Print arrays in short."""
    for name, array in results.items():
        text = np.array2string(array, threshold=40, edgeitems=4, max_line_width=console.width)
        console.print(f"{name} {array.dtype}{list(array.shape)}\n{text}", markup=False)


def write_arrays(path: Path, results: Mapping[str, Array]) -> None:
    """Write arrays into an .npz file."""
    try:
        with path.open("wb") as file:
            known = {n: _known_to_numpy(a) for n, a in results.items()}
            np.savez(file, **known)  # type: ignore[arg-type]
    except OSError as error:
        raise OptionError(f"cannot write '{path}'", why=str(error)) from None


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write '{path}'", why=str(error)) from None


def _known_to_numpy(array: Array) -> Array:
    """Return integers of fewer than 8 bits as bytes, which a file can say."""
    dtype = dtypes.of(array.dtype)
    return array.astype(dtype.storage) if dtype in dtypes.SMALL_INTEGERS else array
