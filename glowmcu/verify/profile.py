"""What every layer costs on an emulated board: instructions, per multiplication, its share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from glowmcu.core.types import Array
from glowmcu.emit.unit import CodeUnit
from glowmcu.targets.board import Board
from glowmcu.verify.board import run_on_board


@dataclass(frozen=True)
class LayerCost:
    """One layer: `share` is its part of all instructions, `per_mac` None where it has no MACs.

    members  the layers of a chain that runs row by row, counted as one: what the chain took is
             divided among them as estimated
    """

    name: str
    op: str
    kernel: str
    macs: int
    instructions: int
    per_mac: float | None
    share: float
    members: tuple[LayerCost, ...] = ()


@dataclass(frozen=True)
class Profile:
    """One inference on one board."""

    name: str
    board: str
    instructions: int
    layers: tuple[LayerCost, ...]
    stack: int
    flash: int

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)


def profile_on_board(
    unit: CodeUnit, on: Board, sample: Mapping[str, Array], *, timeout: float = 120.0
) -> Profile:
    """Run one sample on an emulated board and count the instructions of each layer."""
    run = run_on_board(unit, on, [sample], profile=True, timeout=timeout)
    counts = run.instructions[0]
    total = sum(counts)
    layers = tuple(
        _cost(record, count, total)
        for record, count in zip(unit.report["layers"], counts, strict=True)
    )
    return Profile(unit.name, on.name, total, layers, run.stack, run.footprint.flash)


def _cost(record: Mapping[str, Any], count: int, total: int) -> LayerCost:
    members = record.get("members", ())
    estimated = sum(member["cycles_estimate"] for member in members)
    return LayerCost(
        record["name"],
        record["op"],
        record["kernel"],
        record["macs"],
        count,
        count / record["macs"] if record["macs"] else None,
        count / total if total else 0.0,
        tuple(
            _cost(member, round(count * member["cycles_estimate"] / estimated), total)
            for member in members
        ),
    )
