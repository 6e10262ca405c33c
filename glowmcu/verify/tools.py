"""External programs: where they are, and which package brings one that is missing."""

from __future__ import annotations

import shutil

from glowmcu.errors import ToolMissingError

# Debian and Ubuntu package names.
_PACKAGES = {
    "gcc": "gcc libc6-dev",
    "clang": "clang",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "arm-none-eabi-objcopy": "binutils-arm-none-eabi",
    "riscv64-unknown-elf-objcopy": "binutils-riscv64-unknown-elf",
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
    "qemu-system-arm": "qemu-system-arm",
    "qemu-system-riscv32": "qemu-system-misc",
}


def find_tool(program: str) -> str:
    """Return the path of `program`; raise ToolMissingError that says how to install it."""
    path = shutil.which(program)
    if path is None:
        package = _PACKAGES.get(program, program)
        raise ToolMissingError(
            f"the program '{program}' is not installed",
            hint=f"apt-get install {package} (Debian, Ubuntu)",
        )
    return path
