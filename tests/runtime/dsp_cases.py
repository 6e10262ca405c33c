"""Cases for kernels of Arm's DSP extension, run as C under ASan, or as assembly in an emulator."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from kernel_program import PRELUDE, SANITIZE, STRICT, literal

import glowmcu.ops  # noqa: F401 - registers the cards
from glowmcu.core import dtypes
from glowmcu.core.types import Array, TensorType
from glowmcu.emit.emitter import ModelInfo, emit
from glowmcu.emit.emitter import template as emitted_template
from glowmcu.emit.unit import CodeUnit
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.function import Function
from glowmcu.instr.instruction import Instruction
from glowmcu.lowering.lower import lower
from glowmcu.lowering.select import select_kernels
from glowmcu.memory import FUNCTION_PASSES
from glowmcu.memory.plan import plan
from glowmcu.ops.base import Example, Op
from glowmcu.options import Options
from glowmcu.resources import folder
from glowmcu.targets.kernel import Kernel, no_scratch
from glowmcu.targets.target import Target, target

M4 = target("cortex-m4")
SUPPORT = Path(__file__).resolve().parent.parent / "support"


def template(name: str) -> Any:
    return emitted_template(f"instr/{name}")


@dataclass(frozen=True)
class Step:
    """One instruction of one example, with what its operands hold before and after."""

    label: str
    graph: Graph
    feeds: dict[str, Array]
    function: Function
    instruction: Instruction
    arrays: dict[Buffer, Array]


def _draw(rng: Any, type_: TensorType, constant_: bool, extreme: bool) -> Array:
    low, high = type_.dtype.low, type_.dtype.high
    if type_.dtype.nbytes > 1:
        low, high = -3000, 3000
    elif constant_:
        low = -127
    values = [low, high] if extreme else np.arange(low, high + 1)
    return rng.choice(values, type_.shape).astype(type_.dtype.numpy)


def steps_of(op: type[Op], examples: Iterable[Example], instruction: str) -> Iterator[Step]:
    """Yield the instructions of a class that the examples are lowered to, all int8."""
    for number, example in enumerate(examples):
        rng = np.random.default_rng((11, number))
        feeds: dict[str, Array] = {}
        values = []
        for i, type_ in enumerate(example.inputs):
            assert type_ is not None
            data = _draw(rng, type_, i in example.constants, number % 3 == 2)
            if i in example.constants:
                values.append(constant(f"c{i}", data, type_))
            else:
                values.append(Value(f"x{i}", type_))
                feeds[f"x{i}"] = data
        types = (example.output,) if example.output else ()
        node = apply(op(**example.attributes), *values, name="y", types=types)
        inputs = tuple(v for v in values if v.data is None)
        name = f"{instruction.lower()}{number}"
        graph = Graph(name, inputs, node.outputs, tuple(v.name for v in node.outputs))
        function = lower(graph, graph.nodes(), name)
        found: list[tuple[Instruction, dict[Buffer, Array]]] = []

        def watch(_: int, step: Instruction, memory: Any, found: Any = found) -> None:
            found.append((step, {o.buffer: memory[o.buffer].copy() for o in step.operands()}))

        evaluate(function, feeds, watch=watch)
        for step, arrays in found:
            if type(step).__name__ == instruction:
                yield Step(name, graph, feeds, function, step, arrays)


def kernel_of(step: Step, symbol: str) -> Kernel | None:
    """Return the kernel of that name if it takes the instruction."""
    (kernel,) = (k for k in step.instruction.kernels if k.symbol == symbol)
    return None if kernel.accepts(step.instruction) else kernel


def _case(
    number: int, step: Step, kernel: Kernel, mode: str, data: bytearray, made: dict[str, str]
) -> str:
    """Return a C function that calls the kernel on blocks of exactly the right size.

    made: rendered kernels by their text, to which this one is added.
    """
    if mode == "rows":
        return _rows_case(number, step, kernel, data, made)
    i = step.instruction
    lines: list[str] = []
    outputs: list[str] = []
    inputs: list[str] = []
    shared = dict(replace(i, kernel=kernel).shares()) if mode == "in_place" else {}
    emitted = ""

    def load(array: Array, name: str) -> None:
        raw = np.ascontiguousarray(array).tobytes()
        data.extend(raw)
        lines.append(f"void *{name} = load(fresh({max(len(raw), 1)}), {len(raw)});")

    for field, role in i.roles().items():
        buffer = getattr(i, field)
        if role == "out":
            if field not in shared:
                lines.append(f"void *{field} = fresh({buffer.nbytes});")
            outputs.append(shared.get(field, field))
            emitted = f"emit({outputs[-1]}, {buffer.nbytes});"
        elif buffer.root.kind != "constant" or not kernel.pack:
            load(step.arrays[buffer], field)
            inputs.append(field)
    for packed in kernel.pack(i) if kernel.pack else ():
        load(packed.data, f"{packed.name}_packed")
        inputs.append(f"{packed.name}_packed")
    if kernel.scratch is not no_scratch:
        size = kernel.scratch(i)
        lines.append(f"void *scratch = {f'fresh({size})' if size else 'NULL'};")
        inputs.append("scratch")
    name = kernel.symbol
    if kernel.template:
        name = made.setdefault(
            template(kernel.template).render(function="THIS", **kernel.view(i)), f"call_{number}"
        )
    else:
        members = ", ".join(literal(v) for v in i.attributes().values())
        lines.append(f"static const {kernel.symbol}_t p = {{{members}}};")
        outputs.insert(0, "&p")
    lines += [f"{name}({', '.join([*outputs, *inputs])});", emitted, "release();"]
    body = "\n".join(f"    {line}" for line in lines)
    return f"static void case_{number}(void)\n{{\n{body}\n}}\n"


def _rows_case(
    number: int, step: Step, kernel: Kernel, data: bytearray, made: dict[str, str]
) -> str:
    """Return the same for a kernel that makes one row a call."""
    i: Any = step.instruction
    row = kernel.row
    assert row is not None
    assert kernel.pack
    (packed,) = kernel.pack(i)
    data.extend(np.ascontiguousarray(step.arrays[i.x]).tobytes())
    data.extend(packed.data.tobytes())
    text = template(row.template).render(function="THIS", **row.view(i))  # type: ignore[misc]
    name = made.setdefault(text, f"call_{number}")
    return f"""static void case_{number}(void)
{{
    char *x = load(fresh({i.x.nbytes}), {i.x.nbytes});
    void *w = load(fresh({packed.data.nbytes}), {packed.data.nbytes});
    char *y = fresh({i.y.nbytes});
    void *scratch = fresh({row.scratch(i)});
    for (int32_t r = 0; r < {i.out_height}; r++) {{
        const void *rows[{i.kernel_height}];
        for (int32_t k = 0; k < {i.kernel_height}; k++) {{
            const int32_t at = r * {i.stride_height} - {i.pad_top} + k;
            rows[k] = at >= 0 && at < {i.height} ? x + at * {i.x.nbytes // i.height} : NULL;
        }}
        {name}((int8_t *)y + r * {i.y.nbytes // i.out_height}, r, rows, w, scratch);
    }}
    emit(y, {i.y.nbytes});
    release();
}}
"""


def run_twins(
    calls: Sequence[tuple[Step, Kernel, str]], place: Path, compiler: str = "gcc"
) -> list[Array]:
    """Run the C of kernels on this machine under sanitizers; return each call's output.

    A call says how: plain, in_place, or rows.
    """
    data = bytearray()
    made: dict[str, str] = {}
    cases = [_case(n, step, k, mode, data, made) for n, (step, k, mode) in enumerate(calls)]
    main = "\n".join(f"    case_{n}();" for n in range(len(calls)))
    plain = sorted({k.symbol for _, k, _ in calls if not k.template})
    text = "\n".join(f'#include "{s}.h"' for s in plain) + "\n#include <stdint.h>\n"
    text += '#include "gm_types.h"\n'
    text += "\n".join(rendered.replace("THIS", name) for rendered, name in made.items())
    text += PRELUDE + "\n".join(cases)
    text += f'\nint main(int n, char **v)\n{{\n    in = n > 1 ? fopen(v[1], "rb") : NULL;\n{main}\n'
    (place / "main.c").write_text(text + "    return 0;\n}\n")
    (place / "data.bin").write_bytes(data)
    root = folder("runtime_c")
    sources = [root / "src" / "arm_dsp" / f"{s}.c" for s in plain]
    command = [compiler, *STRICT, "-Wno-unused-function", *SANITIZE, "-O0", "-DGM_NO_ASM"]
    command += ["-D__ARM_FEATURE_DSP", f"-I{SUPPORT / 'fake_acle'}", f"-I{root / 'core'}"]
    command += [f"-I{root / 'src' / 'arm_dsp'}", place / "main.c", *sources, "-o", place / "run"]
    built = subprocess.run([*command, "-lm"], capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr[-4000:]
    ran = subprocess.run([place / "run", place / "data.bin"], capture_output=True, timeout=120)
    assert ran.returncode == 0, ran.stderr.decode()[-4000:]
    found, start = [], 0
    for step, _, _ in calls:
        (y,) = step.instruction.outputs()
        raw = ran.stdout[start : start + y.nbytes]
        found.append(np.frombuffer(raw, y.type.dtype.numpy).reshape(y.type.shape))
        start += y.nbytes
    assert start == len(ran.stdout)
    return found


def unit_of(step: Step, symbol: str, processor: Target = M4) -> CodeUnit:
    """Return the network of one step for a processor with the kernel `symbol`."""
    chosen = kernel_of(step, symbol)
    assert chosen
    (index,) = (n for n, i in enumerate(step.function.instructions) if i is step.instruction)
    instructions = list(select_kernels(step.function, processor).instructions)
    size = chosen.scratch(step.instruction)
    scratch = Buffer("scratch", TensorType(dtypes.U8, (size,)), "scratch") if size else None
    instructions[index] = replace(step.instruction, kernel=chosen, scratch=scratch)  # type: ignore[type-var]
    function = replace(step.function, instructions=tuple(instructions))
    for item in FUNCTION_PASSES:
        function = item.run(function)
    options = Options(name=step.label)
    info = ModelInfo(step.label)
    return emit(function, plan(function, processor.align), processor, options, info)
