"""The numbers of a compiled network: report.json, report.html, the banner, the memory map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jinja2
import markupsafe

import glowmcu
from glowmcu.emit import literals
from glowmcu.emit.estimate import code_estimate
from glowmcu.emit.memory import address
from glowmcu.emit.names import short
from glowmcu.emit.specialize import called_symbol
from glowmcu.emit.stack import stack_estimate
from glowmcu.emit.unit import ModelInfo, Plan, Slot
from glowmcu.emit.view import Code, LayerView, shape_text
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.cost import cycles, member_cycles
from glowmcu.instr.function import Function
from glowmcu.instr.striped import Member, Striped
from glowmcu.memory.draw import draw_svg
from glowmcu.options import Options
from glowmcu.targets.select import verdicts
from glowmcu.targets.target import Target

GENERATOR = f"glowmcu {glowmcu.__version__}"


@dataclass(frozen=True)
class Banner:
    """Head of the generated files: a title, and lines of facts that are safe in a comment."""

    title: str
    facts: tuple[str, ...]


def facts(
    function: Function,
    plan: Plan,
    code: Code,
    runtime: dict[str, str],
    target: Target,
    options: Options,
    info: ModelInfo,
    inputs: tuple[Slot, ...],
    outputs: tuple[Slot, ...],
) -> dict[str, Any]:
    """Return the content of report.json."""
    # those of specialised layers became constants in the code
    calls = [y.call for y in code.layers]
    calls += [f.text for f in code.functions if f.symbol == Striped.kernels[0].symbol]
    passed = [s for s in code.structs if any(f"&{s.name}," in call for call in calls)]
    parameter_bytes = sum(4 * len(s.members) for s in passed)
    peak = peak_layer(function, plan)
    return {
        "generator": GENERATOR,
        "name": options.name or function.name,
        "model": info.name,
        "sha256": info.sha256,
        "target": target.name,
        "capabilities": sorted(target.capabilities),
        "options": {
            "quantize": options.quantize,
            "optimize": options.optimize,
            "specialize": options.specialize,
        },
        "arena_bytes": plan.size,
        "arena_align": plan.align,
        "lower_bound_bytes": plan.lower_bound,
        "peak_layer": peak,
        "weights_bytes": sum(a.nbytes for a in code.arrays) + parameter_bytes,
        "code_bytes_estimate": code_estimate(code, runtime, target),
        "stack_bytes": stack_estimate(code, runtime, target),
        "sizes_are": "estimated",
        "macs": sum(i.macs * i.turns for i in function.instructions),
        "inputs": [slot(s) for s in inputs],
        "outputs": [slot(s) for s in outputs],
        "extents": dict(info.extents),
        "states": [
            {"name": b.name, "type": shape_text(b.type), "offset": address(b, plan)}
            for b in function.states
        ],
        "layers": [_layer(layer, plan, code, target, options) for layer in code.layers],
        "quantization": info.quantization,
        "passes": [
            {"name": p.name, "before": p.before, "after": p.after, "rules": p.rules}
            for p in info.passes
        ],
        "notes": list(info.notes),
    }


def slot(slot: Slot) -> dict[str, Any]:
    """Return the record of an input, an output or work memory."""
    quant = slot.type.quant
    scalar = quant is not None and quant.axis is None
    return {
        "name": slot.name,
        "id": slot.id,
        "dtype": slot.type.dtype.numpy.name,
        "packed": slot.type.packed,
        "shape": list(slot.type.shape),
        "scale": quant.scale[0] if quant and scalar else list(quant.scale) if quant else None,
        "zero_point": (
            quant.zero_point[0] if quant and scalar else list(quant.zero_point) if quant else None
        ),
        "offset": slot.offset,
        "memory": slot.memory,
        "align": slot.align,
        "section": slot.section,
        "bytes": slot.type.nbytes,
        "perm": list(slot.perm) if slot.perm else None,
    }


def _layer(
    layer: LayerView, plan: Plan, code: Code, target: Target, options: Options
) -> dict[str, Any]:
    instruction, kernel = layer.instruction, layer.kernel
    written = instruction.outputs()
    lifetime = plan.lifetimes.get(written[0].root) if written else None
    others = verdicts(instruction, target, options.optimize, instruction.kernel)
    prefix = f"layer{layer.index}_"
    return {
        "name": instruction.name,
        "op": type(instruction).__name__,
        "kernel": kernel.symbol,
        "function": layer.function,
        "specialised": not kernel.template and layer.function not in ("", kernel.symbol),
        "turns": instruction.turns,
        "macs": instruction.macs * instruction.turns,
        "weights_bytes": _weights(code, prefix),
        "output_bytes": sum(b.nbytes for b in written),
        "scratch_bytes": instruction.scratch.nbytes if instruction.scratch else 0,
        "lifetime": list(lifetime) if lifetime else [layer.index, layer.index],
        "offset": layer.results[0].offset if layer.results else None,
        "memory": layer.results[0].memory if layer.results else "",
        "outputs": [
            {
                "name": s.name,
                "type": shape_text(s.type),
                "dtype": s.type.dtype.numpy.name,
                "shape": list(s.type.shape),
                "offset": s.offset,
                "memory": s.memory,
                "bytes": s.type.nbytes,
            }
            for s in layer.results
        ],
        "origin": list(instruction.origin),
        "cycles_estimate": _cycles(layer),
        "rejected": [list(other) for other in others],
        "members": [
            _member(number, member, prefix, code)
            for number, member in enumerate(
                instruction.members if isinstance(instruction, Striped) else ()
            )
        ],
    }


def _cycles(layer: LayerView) -> float | None:
    """Return the estimated cycles of a layer, None where its kernel does not say."""
    known = layer.kernel.cycles is not None or isinstance(layer.instruction, Striped)
    return cycles(layer.instruction, layer.kernel) if known else None


def _member(number: int, member: Member, prefix: str, code: Code) -> dict[str, Any]:
    """Return what is known of one layer of a chain that runs row by row."""
    instruction = member.instruction
    return {
        "name": instruction.name,
        "op": type(instruction).__name__,
        "kernel": called_symbol(member),
        "rows": member.count,
        "macs": instruction.macs,
        "weights_bytes": _weights(code, f"{prefix}{number}_"),
        "output_bytes": member.y.nbytes,
        "scratch_bytes": member.scratch.nbytes if member.scratch is not None else 0,
        "cycles_estimate": member_cycles(member),
        "origin": list(instruction.origin),
    }


def _weights(code: Code, prefix: str) -> int:
    """Return the bytes of the arrays whose names begin so, after the name of the network."""
    found = (a for a in code.arrays if a.name.split("_layer")[-1].startswith(prefix[5:]))
    return sum(a.nbytes for a in found)


def peak_layer(function: Function, plan: Plan) -> int | None:
    """Return the layer during which most bytes are in use, the first of equals."""
    best, most = None, -1
    for index in range(len(function.instructions)):
        live = sum(
            b.nbytes
            for b, (first, last) in plan.lifetimes.items()
            if first <= index <= last and b.in_arena
        )
        if live > most:
            best, most = index, live
    return best


def banner(facts: dict[str, Any], info: ModelInfo, target: Target, options: Options) -> Banner:
    """Return the head of the generated files; no dates and no paths."""
    capabilities = f" ({', '.join(facts['capabilities'])})" if facts["capabilities"] else ""
    chosen = ", ".join(f"{k} {v}" for k, v in facts["options"].items())
    peak = ""
    if facts["peak_layer"] is not None:
        layer = facts["layers"][facts["peak_layer"]]
        peak = f", fullest at layer {facts['peak_layer']}, {layer['op']} {short(layer['name'], 44)}"
    lines = (
        f"model    sha256 {info.sha256 or 'unknown'}",
        f"target   {target.name}{capabilities}",
        f"options  {chosen}",
        "",
        f"flash    {facts['weights_bytes']} B weights, about {facts['code_bytes_estimate']} B code",
        f"RAM      {facts['arena_bytes']} B arena{peak}",
        f"stack    about {facts['stack_bytes']} B at most",
        f"MACs     {facts['macs']} per inference",
    )
    title = f"network '{info.name or facts['name']}', generated by {GENERATOR}. Do not edit."
    wrapped = [part for line in lines for part in literals.wrap(line, literals.WIDTH - 4)]
    return Banner(title, tuple(wrapped))


def memory_map(function: Function, plan: Plan) -> tuple[str, ...]:
    """Return the lines of the arena's table: offset, size, lifetime, name, ONNX tensor."""
    views: dict[Buffer, list[str]] = {}
    for buffer in function.buffers():
        if buffer.base is not None and buffer.root.kind != "constant":
            views.setdefault(buffer.root, []).append(buffer.name)
    rows = [("offset", "size", "layers", "buffer")]
    for buffer, offset in sorted(plan.offsets.items(), key=lambda item: item[1]):
        first, last = plan.lifetimes.get(buffer, (0, 0))
        end = "out" if last >= len(function.instructions) else last
        span = f"{'in' if first < 0 else first}..{end}"
        others = list(dict.fromkeys(v for v in views.get(buffer, ()) if v != buffer.name))
        text = short(buffer.name, 48)
        text += f" ({', '.join(short(v, 48) for v in others)})" if others else ""
        text += f" {shape_text(buffer.type)}" if buffer.kind != "scratch" else ""
        place = str(plan.slow[buffer]) + " slow" if buffer in plan.slow else str(offset)
        place = "caller's" if buffer.is_outside else place
        rows.append((place, str(buffer.nbytes), span, text))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines: list[str] = []
    for offset_text, size, span, text in rows:
        head = f"{offset_text:>{widths[0]}}  {size:>{widths[1]}}  {span:>{widths[2]}}  "
        parts = literals.wrap(text, literals.WIDTH - 6 - len(head))
        lines.append(head + parts[0])
        lines += [" " * len(head) + part for part in parts[1:]]
    return tuple(lines)


_PLAIN = {"turns": 1, "specialised": False, "offset": None, "lifetime": ()}
"""What a layer of a chain does not have of its own."""


def html(facts: dict[str, Any], function: Function, plan: Any, template: jinja2.Template) -> str:
    """Return report.html, complete in one file."""
    most = max((layer["macs"] for layer in facts["layers"]), default=0) or 1
    layers = [
        {**x, "number": number, "percent": round(60 * x["macs"] / most)}
        for n, layer in enumerate(facts["layers"])
        for number, x in [(str(n), layer)]
        + [(f"{n}.{k}", {**_PLAIN, **m}) for k, m in enumerate(layer["members"])]
    ]
    svg = markupsafe.Markup(draw_svg(function, plan))
    return template.render(facts={**facts, "layers": layers}, svg=svg)
