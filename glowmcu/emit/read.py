"""Read a folder that `compile` wrote back into a CodeUnit, to run it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from glowmcu.core import dtypes
from glowmcu.core.types import Quant, TensorType
from glowmcu.emit.unit import CodeUnit, Slot
from glowmcu.errors import InvalidModelError, OptionError
from glowmcu.targets.target import target


def read_unit(folder: Path, name: str = "") -> CodeUnit:
    """Return the network in `folder`; raise InvalidModelError where it is not a complete one.

    name  which of several networks
    """
    try:
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        if "networks" in report:
            return _read_one_of(folder, name, report["networks"])
        return _unit(folder, report)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidModelError(
            f"'{folder}' is not a complete folder of a compiled network",
            why=f"{type(error).__name__}: {error}",
            hint="write it again with `glowmcu compile MODEL -o DIR`",
        ) from None


def _unit(folder: Path, report: dict[str, Any]) -> CodeUnit:
    return CodeUnit(
        report["name"],
        {name: _read(folder, name) for name in report["files"]},
        report,
        target(report["target"]),
        tuple(_slot(s) for s in report["inputs"]),
        tuple(_slot(s) for s in report["outputs"]),
        tuple(tuple(_slot(s) for s in layer["outputs"]) for layer in report["layers"]),
        report["arena_bytes"],
        report["arena_align"],
        extents=report["extents"],
        work=tuple(_slot(s) for s in report.get("work", ())),
    )


def _read_one_of(folder: Path, name: str, names: list[str]) -> CodeUnit:
    if name not in names:
        raise OptionError(
            f"'{folder}' holds several networks: {', '.join(names)}",
            hint=f"say which one is meant, as in --name {names[0]}",
        )
    report = json.loads((folder / f"{name}_report.json").read_text(encoding="utf-8"))
    return _unit(folder, report)


def _read(folder: Path, name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.]+", name):
        raise ValueError(f"report.json names the file '{name}'")
    return (folder / name).read_text(encoding="utf-8")


def _slot(record: dict[str, Any]) -> Slot:
    scale = record.get("scale")  # the results of layers are described without it
    quant = Quant.per_tensor(scale, record["zero_point"]) if isinstance(scale, float) else None
    dtype = dtypes.of(np.dtype(record["dtype"]))
    type_ = TensorType(dtype, tuple(record["shape"]), quant)
    perm = record.get("perm")
    identifier = record.get("id", "")
    place = (record["offset"], "", tuple(perm) if perm else None)
    memory = (record.get("memory", ""), record.get("align", 0), record.get("section", ""))
    return Slot(record["name"], identifier, type_, *place, *memory)
