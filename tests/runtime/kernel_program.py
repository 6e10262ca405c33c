"""Runs kernels under ASan and UBSan: every buffer is an allocation of exactly its size."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from glowmcu.core.types import Array, TensorType, quantize
from glowmcu.graph.graph import Graph, Value, apply, constant
from glowmcu.instr.buffer import Buffer
from glowmcu.instr.evaluate import evaluate
from glowmcu.instr.instruction import Instruction
from glowmcu.lowering.lower import lower
from glowmcu.ops.base import Example, Op
from glowmcu.targets.kernel import Kernel, no_scratch

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "runtime_c" / "core"
SOURCES = ROOT / "runtime_c" / "src"
STRICT = (
    "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow "
    "-Wdouble-promotion -Werror -ffp-contract=off"
).split()
SANITIZE = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@dataclass(frozen=True)
class Case:
    """One call of a kernel. mode: general, constant (specialised), in_place, overlap or turned."""

    label: str
    instruction: Instruction
    kernel: Kernel
    mode: str
    arrays: dict[Buffer, Array] = field(repr=False)

    def expected(self) -> list[Array]:
        return [self.arrays[b] for b in self.instruction.outputs()]


def random_array(rng: Any, type_: TensorType, low: float, high: float) -> Array:
    if type_.quant is not None and type_.dtype.nbytes <= 2:
        return rng.integers(type_.dtype.low, type_.dtype.high + 1, type_.shape).astype(
            type_.dtype.numpy
        )
    real = rng.uniform(low, high, type_.shape).astype(np.float32)
    return (
        quantize(real, type_.quant, type_.dtype) if type_.quant else real.astype(type_.dtype.numpy)
    )


def graph_of(op: Op, example: Example, rng: Any) -> tuple[Graph, dict[str, Array]]:
    """Return a graph of one node with random constants, and random feeds."""
    values: list[Value | None] = []
    feeds: dict[str, Array] = {}
    for i, type_ in enumerate(example.inputs):
        if type_ is None:
            values.append(None)
            continue
        data = random_array(rng, type_, example.low, example.high)
        if type_.quant is not None and i in example.constants and type_.dtype.nbytes == 1:
            data = np.clip(data, -127, 127)
        if i in example.constants:
            values.append(constant(f"c{i}", data, type_))
        else:
            values.append(Value(f"x{i}", type_))
            feeds[f"x{i}"] = data
    types = (example.output,) if example.output else ()
    node = apply(op, *values, name="y", types=types)
    inputs = tuple(v for v in values if v is not None and v.data is None)
    return Graph("g", inputs, node.outputs, tuple(v.name for v in node.outputs)), feeds


def cases_of(
    op_class: type[Op], examples: Iterable[Example], modes: Sequence[str], seed: int = 7
) -> Iterator[Case]:
    """Yield a case for every instruction, portable kernel and mode of every example."""
    for number, example in enumerate(examples):
        rng = np.random.default_rng((seed, number))
        graph, feeds = graph_of(op_class(**example.attributes), example, rng)
        function = lower(graph, graph.nodes(), "f")
        steps: list[tuple[Instruction, dict[Buffer, Array]]] = []

        def watch(_index: int, instruction: Instruction, memory: Any, steps: Any = steps) -> None:
            operands = {o.buffer: memory[o.buffer].copy() for o in instruction.operands()}
            steps.append((instruction, operands))

        evaluate(function, feeds, watch=watch)
        for step, (instruction, arrays) in enumerate(steps):
            for kernel in instruction.kernels:
                if kernel.requires or kernel.template or kernel.accepts(instruction):
                    continue
                for mode in modes:
                    if mode == "constant" and not kernel.core:
                        continue
                    if mode == "in_place" and not pairs(instruction, kernel):
                        continue
                    if mode == "overlap" and not kernel.overlap(instruction):
                        continue
                    label = f"{op_class.__name__}{number}.{step}-{kernel.symbol}-{mode}"
                    used = kernel.turned(instruction) if mode == "turned" else instruction
                    if used is not None:
                        yield Case(label, used, kernel, mode, arrays)


def pairs(instruction: Instruction, kernel: Kernel) -> tuple[tuple[str, str], ...]:
    return replace(instruction, kernel=kernel).shares()  # type: ignore[type-var]


def literal(value: Any) -> str:
    if isinstance(value, float):
        if math.isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        return float(np.float32(value)).hex() + "f"
    return str(int(value))


def overlapping(case: Case) -> tuple[list[str], dict[str, str]]:
    """Return C that allocates an output and an input as close as allowed, and their places."""
    if case.mode not in ("overlap", "turned"):
        return [], {}
    (promise,) = case.kernel.overlap(case.instruction)
    y, x = (getattr(case.instruction, f) for f in (promise.output, promise.input))
    distance = promise.high if case.mode == "turned" else promise.low
    distance = max(min(distance, x.nbytes), -y.nbytes)
    size = max(x.nbytes, distance + y.nbytes) - min(0, distance)
    places = {
        promise.output: f"block + {max(0, distance)}",
        promise.input: f"block + {max(0, -distance)}",
    }
    return [f"unsigned char *block = fresh({size});"], places


def scratch_and_parameters(case: Case, used: list[str]) -> list[str]:
    """Return C that makes a call's scratch and parameters, which are added to its arguments."""
    lines, kernel = [], case.kernel
    if kernel.scratch is not no_scratch:
        size = kernel.scratch(case.instruction)
        lines.append(f"void *scratch = {f'fresh({size})' if size else 'NULL'};")
        used.append("scratch")
    attributes = case.instruction.attributes()
    if attributes:
        members = ", ".join(literal(v) for v in attributes.values())
        lines.append(f"static const {kernel.symbol}_t p = {{{members}}};")
        used.insert(0, "&p")
    return lines


def case_function(number: int, case: Case, data: bytearray) -> str:
    """Return the C function of a case; its input bytes are appended to `data`."""
    instruction, kernel = case.instruction, case.kernel
    outputs, inputs, emitted = [], [], []
    lines, placed = overlapping(case)

    def load(array: Array, name: str) -> str:
        raw = np.ascontiguousarray(array).tobytes()
        data.extend(raw)
        place = placed.get(name, f"fresh({len(raw)})")
        lines.append(f"void *{name} = load({place}, {len(raw)});")
        return name

    shared = dict(pairs(instruction, kernel)) if case.mode == "in_place" else {}
    places: dict[str, str] = {}
    for name, role in instruction.roles().items():
        found = getattr(instruction, name)
        if role == "out":
            if name not in shared:
                place = placed.get(name, f"fresh({found.nbytes})")
                lines.append(f"void *{name} = {place};")
                places[name] = name
        elif found is None:
            if not kernel.pack:
                inputs.append("NULL")
        elif found.root.kind != "constant" or not kernel.pack:
            inputs.append(load(case.arrays[found], name))
    for name, role in instruction.roles().items():
        if role == "out":
            place = shared.get(name, name)
            outputs.append(place)
            emitted.append(f"emit({place}, {getattr(instruction, name).nbytes});")
    for packed in kernel.pack(instruction) if kernel.pack else ():
        inputs.append(load(packed.data, f"{packed.name}_packed"))
    used = [*outputs, *inputs]
    lines += scratch_and_parameters(case, used)
    name = kernel.symbol + ("_core" if case.mode == "constant" else "")
    lines += [f"{name}({', '.join(used)});", *emitted, "release();"]
    body = "\n".join(f"    {line}" for line in lines)
    return f"static void case_{number}(void)\n{{\n{body}\n}}\n"


PRELUDE = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
static FILE *in;
static void *owned[64];
static int count;
static void *fresh(size_t n)
{
    void *p = malloc(n);
    memset(p, 0xA5, n);
    owned[count++] = p;
    return p;
}
static void *load(void *p, size_t n)
{
    if (fread(p, 1, n, in) != n) {
        exit(9);
    }
    return p;
}
static void emit(const void *p, size_t n)
{
    fwrite(p, 1, n, stdout);
}
static void release(void)
{
    while (count > 0) {
        free(owned[--count]);
    }
}
"""


def run_cases(
    cases: Sequence[Case], folder: Path, compiler: str = "gcc", flags: Sequence[str] = ()
) -> dict[str, list[Array]]:
    """Return the outputs of every case by label; `flags` are those of the processor."""
    assert shutil.which(compiler), f"{compiler} is needed"
    data = bytearray()
    functions = [case_function(i, case, data) for i, case in enumerate(cases)]
    symbols = sorted({c.kernel.symbol for c in cases})
    headers = "\n".join(f'#include "{s}.h"' for s in symbols)
    calls = "\n".join(f"    case_{i}();" for i in range(len(cases)))
    main = 'int main(int n, char **v)\n{\n    in = n > 1 ? fopen(v[1], "rb") : NULL;\n'
    text = (
        f"{headers}\n{PRELUDE}\n" + "\n".join(functions) + f"\n{main}{calls}\n    return 0;\n}}\n"
    )
    (folder / "main.c").write_text(text)
    (folder / "data.bin").write_bytes(data)
    sources = sorted({SOURCES / c.kernel.folder / f"{c.kernel.symbol}.c" for c in cases})
    command = [compiler, "-std=c99", "-ffp-contract=off", *SANITIZE, *flags, f"-I{CORE}"]
    command += [f"-I{place}" for place in sorted({s.parent for s in sources})]
    command += [folder / "main.c", *sources, "-o", folder / "run", "-lm"]
    subprocess.run(command, check=True, timeout=600)
    ran = subprocess.run([folder / "run", folder / "data.bin"], capture_output=True, timeout=300)
    assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    results: dict[str, list[Array]] = {}
    start = 0
    for case in cases:
        results[case.label] = []
        for buffer in case.instruction.outputs():
            raw = ran.stdout[start : start + buffer.nbytes]
            start += buffer.nbytes
            array = np.frombuffer(raw, buffer.type.dtype.numpy).reshape(buffer.type.shape)
            results[case.label].append(array)
    assert start == len(ran.stdout)
    return results


def compare(case: Case, found: list[Array]) -> None:
    """Assert that the kernel gave what the instruction's reference gives: integers exactly."""
    for have, want in zip(found, case.expected(), strict=True):
        if want.dtype.kind == "f":
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_array_equal(have, want)
