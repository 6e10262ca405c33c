"""Function and memory plan to C: lays out the records of view.py with the templates."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from glowmcu import resources
from glowmcu.core import dtypes
from glowmcu.core.types import TensorType
from glowmcu.emit import literals, report, view
from glowmcu.emit.assemble import assemble
from glowmcu.emit.golden import Golden
from glowmcu.emit.golden import context as golden_context
from glowmcu.emit.memory import SLOW, Memory, address, arena_align, arena_size
from glowmcu.emit.names import short
from glowmcu.emit.regions import place_regions
from glowmcu.emit.specialize import specialised_layers
from glowmcu.emit.unit import CodeUnit, Files, ModelInfo, Plan, Slot
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.instr.striped import Striped
from glowmcu.options import Options
from glowmcu.targets.board import board, section
from glowmcu.targets.kernel import Kernel
from glowmcu.targets.target import Target

__all__ = ["ModelInfo", "emit"]


def emit(
    function: Function,
    plan: Plan,
    target: Target,
    options: Options,
    info: ModelInfo,
    golden: Golden | None = None,
) -> CodeUnit:
    """Return the C of a function whose instructions have kernels and whose buffers have places.

    golden  what its self-test expects; None: it has none
    """
    name = options.name or function.name
    chosen = specialised_layers(function, options.specialize, options.optimize)
    inputs, outputs = view.identify(
        (
            *view.slots(function.inputs, (b.name for b in function.inputs), plan),
            *(Slot(b.name, "", b.type, 0, b.tensor, b.perm, b.name) for b in function.fed),
        ),
        view.slots(function.outputs, function.output_names, plan),
    )
    passed = (*function.inputs, *function.fed, *function.outputs)
    named = zip(passed, (*inputs, *outputs), strict=True)
    memory = Memory(plan, {b: s.id for b, s in named if b.is_outside})
    work = _work(plan)
    slots = (*inputs, *outputs, *work)
    code = assemble(function, name, memory, chosen, _render)
    runtime = _runtime_files(code)
    headers = _library_headers(code, runtime)
    align, size = arena_align(plan), arena_size(plan)
    facts = report.facts(function, plan, code, runtime, target, options, info, inputs, outputs)
    facts.update(arena_bytes=size, arena_align=align)
    on = board(options.board) if options.board else None
    regions = place_regions(on, code, size, plan.slow_size, facts["code_bytes_estimate"])
    facts.update(regions=dict(regions.nbytes), work=[report.slot(s) for s in work])
    context: dict[str, Any] = {
        "name": name,
        "NAME": name.upper(),
        "banner": report.banner(facts, info, target, options),
        "facts": facts,
        "code": code,
        "inputs": inputs,
        "outputs": outputs,
        "slots": slots,
        "work": work,
        "outside": _outside(slots),
        "caller_io": bool(_outside((*inputs, *outputs))),
        "board": on.name if on else "",
        "regions": regions,
        "arena_section": section(regions.arena),
        "slow_section": section("flash_slow"),
        "work_section": section(regions.slow_ram),
        "feed": _feed(function, plan, code, inputs),
        "states": _states(function, plan),
        "size": size,
        "align": align,
        "kernel_headers": _kernel_headers(code),
        "infinite_weights": not all(a.is_finite for a in code.arrays),
        "library_headers": [n for n in headers if n != "string.h"],
        "memory_map": report.memory_map(function, plan),
        "names": [literals.string(short(i.name)) for i in function.instructions],
        "usage": _usage(name, slots),
        "prototype": _prototype(name, inputs, (*outputs, *work)),
        "push_prototype": _push_prototype(name, inputs, (*outputs, *work)) if function.fed else "",
        "fence": _mixes_types(function),
        "aliases": _aliases(inputs, outputs),
        "slot_functions": _slot_functions(name, inputs, outputs),
        "golden": golden_context(golden, code, (*inputs, *outputs)) if golden else None,
    }
    files = Files(
        {
            f"{name}.h": template("model.h.j2").render(context),
            f"{name}.c": template("model.c.j2").render(context),
            f"{name}_weights.c": lambda: template("weights.c.j2").render(context),
            **_self_test_files(name, context),
            **runtime,
        }
    )
    context["sources"] = [n for n in files if n.endswith(".c")]
    context["public"] = [n for n in files if n.endswith(".h")]
    context["needs_libm"] = "math.h" in headers
    files["CMakeLists.txt"] = template("CMakeLists.txt.j2").render(context)
    files["example_main.c.txt"] = template("example_main.c.j2").render(context)
    facts["files"] = [*files, "report.json", "report.html"]
    files["report.json"] = json.dumps(facts, indent=1) + "\n"
    files["report.html"] = report.html(facts, function, plan, template("report.html.j2"))
    return CodeUnit(
        name,
        files,
        facts,
        target,
        inputs,
        outputs,
        tuple(layer.results for layer in code.layers),
        size,
        align,
        tuple(headers),
        info.extents,
        tuple((a.name, a.data) for a in code.arrays),
        work,
    )


def _work(plan: Plan) -> tuple[Slot, ...]:
    """Return the slow memory that the caller passes, where a plan needs it."""
    if not plan.slow_size:
        return ()
    type_ = TensorType(dtypes.U8, (plan.slow_size,))
    align = arena_align(plan)
    return (Slot(SLOW, SLOW, type_, 0, memory=SLOW, align=align, section="SLOW_SECTION"),)


def _outside(slots: tuple[Slot, ...]) -> list[Slot]:
    """Return the tensors whose pointers the code checks, because it works in their memory."""
    return [s for s in slots if s.align and s.type.nbytes]


def _states(function: Function, plan: Plan) -> list[tuple[Slot, int]]:
    """Return the slots that NAME_init sets, and the byte that means zero in each."""
    slots = view.slots(function.states, (b.name for b in function.states), plan)
    return [(s, s.type.quant.zero_point[0] if s.type.quant else 0) for s in slots]


def _self_test_files(name: str, context: dict[str, Any]) -> dict[str, str]:
    if context["golden"] is None:
        return {}
    return {
        f"{name}_self_test.{kind}": template(f"self_test.{kind}.j2").render(context)
        for kind in ("h", "c")
    }


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=lambda name: name is not None and ".html" in name,
        loader=jinja2.FileSystemLoader(resources.folder("templates")),
    )
    environment.filters.update(
        comment=literals.comment,
        float32=literals.float32,
        aligned=_aligned,
        pointer=_pointer,
        range=_range,
        describe=describe,
        block=literals.block,
        opening=_opening,
        short=short,
        helper=_helper,
    )
    environment.tests["scalar_quant"] = has_scalar_quant
    environment.tests["convertible"] = _is_convertible
    return environment


def template(name: str) -> jinja2.Template:
    """Return a template of the generated files."""
    return _environment().get_template(name)


def _render(kernel: Kernel, instruction: Instruction, function: str) -> str:
    variables = kernel.view(instruction) if kernel.view else {}
    return template(f"instr/{kernel.template}").render({**variables, "function": function})


def _runtime_files(code: view.Code) -> dict[str, str]:
    """Return the kernels' sources, and every header of ours that any file includes."""
    root = resources.folder("runtime_c")
    sources = {f"{k.symbol}.c": root / "src" / k.folder / f"{k.symbol}.c" for k in code.kernels}
    files = {n: p.read_text(encoding="utf-8") for n, p in sorted(sources.items())}
    folders = {k.symbol: k.folder for k in (*code.kernels, *(y.kernel for y in code.layers))}
    pending = ["gm_types.h", *_kernel_headers(code)]
    pending += [n for text in files.values() for n in _own_includes(text)]
    headers: dict[str, str] = {}
    while pending:
        header = pending.pop()
        if header not in headers:
            headers[header] = _header(root, header, folders).read_text(encoding="utf-8")
            pending += _own_includes(headers[header])
    return {**files, **dict(sorted(headers.items()))}


def _kernel_headers(code: view.Code) -> list[str]:
    """Return the headers that are not of the C library; kernels of users need no gm_ in front."""
    kernels = {f"{k.symbol}.h" for k in (*code.kernels, *(y.kernel for y in code.layers))}
    return [n for n in code.includes if n.startswith("gm_") or n in kernels]


def _own_includes(text: str) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*"(gm_\w+\.h)"', text, re.MULTILINE)


def _header(root: Path, name: str, folders: dict[str, str]) -> Path:
    places = [root / "core" / name]
    places += [root / "src" / f / name for f in dict.fromkeys(folders.values())]
    places += sorted((root / "src").glob(f"*/{name}"))  # rows of chains name no folder
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(f"{name} is not among {', '.join(str(p.parent) for p in places)}")


_MATH = re.compile(
    r"\b(INFINITY|NAN|isnan|isinf|fabsf?|fmodf?|roundf?|cbrtf?"
    r"|(?:a?sin|a?cos|a?tan|exp|expm1|log|log1p|sqrt|erf|pow|floor|ceil|trunc|rint)[hf]?f?)\b"
)
_INFINITE = re.compile("INFINITY|NAN")


def _library_headers(code: view.Code, runtime: dict[str, str]) -> list[str]:
    """Return the C library headers that NAME.c includes itself."""
    own = _kernel_headers(code)
    found = [n for n in code.includes if n not in own]
    literals_used = " ".join(v for s in code.structs for _, v in s.members)
    text = "\n".join(f.text for f in code.functions) + literals_used
    if _MATH.search(text):
        found.append("math.h")
    runtime_text = "\n".join(runtime.values())
    found += re.findall(r"^\s*#\s*include\s*<(math\.h)>", runtime_text, re.MULTILINE)
    return list(dict.fromkeys(found))


def _prototype(name: str, inputs: tuple[Slot, ...], outputs: tuple[Slot, ...]) -> str:
    parameters = (
        f"{name}_arena *arena",
        *(f"const {s.type.c} *{s.id}" for s in inputs),
        *(f"{s.type.c} *{s.id}" for s in outputs),
    )
    return literals.call(f"{name}_status {name}_run", parameters, 0).removesuffix(";")


def _usage(name: str, slots: tuple[Slot, ...]) -> list[str]:
    """Return the lines of the call in the example of the header."""
    arguments = ("&arena", *(s.id for s in slots))
    lines = literals.call(f"{name}_status status = {name}_run", arguments, 7).split("\n")
    return [line[2:] for line in lines]  # " *" takes their place


def _push_prototype(name: str, inputs: tuple[Slot, ...], outputs: tuple[Slot, ...]) -> str:
    parameters = (
        f"{name}_arena *arena",
        f"const {inputs[0].type.c} *row",
        *(f"{s.type.c} *{s.id}" for s in outputs if s.memory),
    )
    return literals.call(f"{name}_status {name}_push_row", parameters, 0)[:-1]


def _aliases(inputs: tuple[Slot, ...], outputs: tuple[Slot, ...]) -> list[tuple[Slot, str]]:
    """Return the slots that are also called INPUT and OUTPUT: the only ones of their kind."""
    groups = (("INPUT", inputs), ("OUTPUT", outputs))
    return [(g[0], r) for r, g in groups if len(g) == 1 and g[0].id != r.lower()]


def _slot_functions(
    name: str, inputs: tuple[Slot, ...], outputs: tuple[Slot, ...]
) -> list[tuple[Slot, str, str]]:
    """Return (slot, role, C name): NAME_input, or NAME_input_ID where there are several."""
    return [
        (slot, role, f"{name}_{role}" if len(group) == 1 else f"{name}_{role}_{slot.id}")
        for role, group in (("input", inputs), ("output", outputs))
        for slot in group
    ]


def _feed(
    function: Function, plan: Plan, code: view.Code, inputs: tuple[Slot, ...]
) -> dict[str, Any] | None:
    """Return what templates say about an input that comes row by row, None without one."""
    chain = function.instructions[0] if function.fed else None
    if not isinstance(chain, Striped) or chain.counter is None:
        return None
    rows = inputs[0].type.shape[1]
    return {
        "slot": inputs[0],
        "rows": rows,
        "row_len": inputs[0].type.numel // rows,
        "call": code.layers[0].call.strip().removesuffix(");") + ", row)",
        "counter": address(chain.counter, plan),
    }


def _opening(text: str) -> str:
    """Return the first lines of a block comment that goes on."""
    return "/* " + "\n * ".join(literals.wrap(text, literals.WIDTH - 4))


def _helper(slot_function: str, verb: str, name: str) -> str:
    """Return NAME_quantize_input for NAME_input."""
    return f"{name}_{verb}_{slot_function.removeprefix(f'{name}_')}"


def _mixes_types(function: Function) -> bool:
    """Tell whether the arena holds more than one type, bytes aside, which may alias anything."""
    buffers = (b for b in function.buffers() if b.root.kind != "constant")
    return len({b.type.c for b in buffers if b.type.dtype.bits > 8}) > 1


def _aligned(slot: Slot, prefix: str) -> str:
    """Return what stands in front of the declaration of a tensor's memory, with a space."""
    section = f"{prefix}_{slot.section} " if slot.section else ""
    align = f"{prefix}_ALIGN({prefix}_{slot.id.upper()}_ALIGN) " if slot.align > 1 else ""
    return section + align


def _pointer(slot: Slot) -> str:
    return f"{slot.type.c} *"


def has_scalar_quant(type_: TensorType) -> bool:
    """Tell whether one scale and one zero point say what a tensor's integers mean."""
    return type_.quant is not None and type_.quant.axis is None


def _is_convertible(type_: TensorType) -> bool:
    return has_scalar_quant(type_) and type_.dtype.is_integer and 8 <= type_.dtype.bits <= 16


def _range(type_: TensorType) -> tuple[int, int]:
    return type_.dtype.low, type_.dtype.high


def describe(slot: Slot) -> str:
    """Return type, shape, meaning and ONNX name of a slot, for a comment."""
    words = [view.shape_text(slot.type), f"'{short(slot.name)}'"]
    if slot.type.quant is not None:
        words.append(f"{{{slot.type.quant}}}")
    if slot.type.dtype.is_float and slot.type.dtype.bits <= 16:
        words.append("as bits")
    if slot.type.packed:
        words.append(f"packed, {8 // slot.type.dtype.bits} in a byte, the first in its lowest bits")
    if slot.perm is not None:
        words.append(f"the ONNX tensor transposed by {slot.perm}")
    return " ".join(words)
