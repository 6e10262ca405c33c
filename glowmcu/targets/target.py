"""Target: a processor's capabilities, compiler flags and alignment; the built-in table."""

from __future__ import annotations

from dataclasses import dataclass

from glowmcu.errors import OptionError

CAPABILITIES = {
    "arm-dsp": "Armv7E-M / Armv8-M DSP extension: SMLAD, SXTB16, SMMLAR, SSAT (__ARM_FEATURE_DSP)",
    "arm-mve": "Helium with integer vectors (__ARM_FEATURE_MVE & 1)",
    "arm-fpu": "single-precision FPU with 32 registers",
    "armv6m": "Armv6-M: Thumb instructions of 16 bits (Cortex-M0, M0+)",
    "x86-avx2": "x86-64 with AVX2",
}

ANYWHERE = frozenset({"armv6m"})
"""Capabilities whose kernels run on every processor: on larger ones of the family, else as C."""


@dataclass(frozen=True)
class Target:
    """A processor to compile for.

    compiler  prefix of the tool chain ("" for the host's), flags its command line
    align     bytes that buffers in the arena are aligned to
    """

    name: str
    summary: str
    capabilities: frozenset[str]
    compiler: str
    flags: tuple[str, ...]
    align: int = 4

    def lacks(self, other: Target) -> frozenset[str]:
        """Return the capabilities that code for `other` uses and this processor has not."""
        return other.capabilities - self.capabilities - ANYWHERE


def _arm(name: str, summary: str, capabilities: set[str], *flags: str, align: int = 4) -> Target:
    return Target(
        name, summary, frozenset(capabilities), "arm-none-eabi-", ("-mthumb", *flags), align
    )


_SOFT = "-mfloat-abi=soft"
_HARD = "-mfloat-abi=hard"
TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("host", "this machine, portable C99", frozenset(), "", (), 16),
        Target("x86-avx2", "x86-64 with AVX2", frozenset({"x86-avx2"}), "", ("-mavx2",), 16),
        _arm("cortex-m0", "Armv6-M", {"armv6m"}, "-mcpu=cortex-m0", _SOFT),
        _arm("cortex-m0plus", "Armv6-M", {"armv6m"}, "-mcpu=cortex-m0plus", _SOFT),
        _arm("cortex-m3", "Armv7-M", set(), "-mcpu=cortex-m3", _SOFT),
        _arm(
            "cortex-m4",
            "Armv7E-M with DSP and FPU",
            {"arm-dsp", "arm-fpu"},
            "-mcpu=cortex-m4",
            _HARD,
            "-mfpu=fpv4-sp-d16",
        ),
        _arm(
            "cortex-m7",
            "Armv7E-M with DSP and FPU",
            {"arm-dsp", "arm-fpu"},
            "-mcpu=cortex-m7",
            _HARD,
            "-mfpu=fpv5-sp-d16",
        ),
        _arm(
            "cortex-m33",
            "Armv8-M with DSP and FPU",
            {"arm-dsp", "arm-fpu"},
            "-mcpu=cortex-m33",
            _HARD,
            "-mfpu=fpv5-sp-d16",
        ),
        _arm(
            "cortex-m55",
            "Armv8.1-M with DSP, FPU and Helium",
            {"arm-dsp", "arm-fpu", "arm-mve"},
            "-mcpu=cortex-m55",
            _HARD,
            "-mfpu=auto",
            align=16,
        ),
        # no -mcpu=cortex-m85: GCC knows it from version 13 on, the architecture before
        _arm(
            "cortex-m85",
            "Armv8.1-M with DSP, FPU and Helium",
            {"arm-dsp", "arm-fpu", "arm-mve"},
            "-march=armv8.1-m.main+mve.fp+fp.dp",
            _HARD,
            "-mfpu=auto",
            align=16,
        ),
        Target(
            "riscv32",
            "RV32IMAC",
            frozenset(),
            "riscv64-unknown-elf-",
            ("-march=rv32imac", "-mabi=ilp32"),
        ),
    )
}


def target(name: str) -> Target:
    """Return a built-in target; raise OptionError that lists them all for an unknown name."""
    found = TARGETS.get(name)
    if found is None:
        raise OptionError(f"there is no target '{name}'", hint=f"one of: {', '.join(TARGETS)}")
    return found
