"""The trade-off table: what each precision costs and what it loses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from glowmcu.graph.graph import Graph
from glowmcu.options import Precision
from glowmcu.quantize.goal import Goal, Quality
from glowmcu.quantize.search import Found, Trial


@dataclass(frozen=True)
class Cost:
    """What a network needs: bytes of RAM and flash; cycles where every kernel has an estimate."""

    ram: int
    flash: int
    cycles: float | None


Appraise = Callable[[Graph], Cost]


@dataclass(frozen=True)
class Row:
    """One precision of the network: what it loses, what it costs.

    price  multiplications, each counted with the bytes of its activation, int8 throughout being 1
    """

    precision: str
    quality: Quality
    price: float
    cost: Cost

    def record(self) -> dict[str, Any]:
        """Return what report.json says about it."""
        q = self.quality
        return {
            "precision": self.precision,
            "accuracy": q.accuracy,
            "agreement": q.agreement,
            "sqnr_db": round(q.sqnr, 2) if math.isfinite(q.sqnr) else None,
            "price": round(self.price, 3),
            "cycles_estimate": self.cost.cycles,
            "ram_bytes": self.cost.ram,
            "flash_bytes": self.cost.flash,
        }


@dataclass(frozen=True)
class Mixed:
    """What mixed precision came to: the table, its last row the choice, and the raised layers."""

    goal: Goal
    met: bool
    trials: int
    rows: tuple[Row, ...]
    raised: tuple[tuple[str, Precision], ...]

    @staticmethod
    def of(goal: Goal, found: Found, appraise: Appraise) -> Mixed:
        """Find the costs of the uniform precisions and of the choice."""
        unit = max(found.uniform["int8"].price, 1.0)
        trials: dict[str, Trial] = {p: found.uniform[p] for p in found.uniform}
        trials["mixed"] = found.chosen
        rows = tuple(
            Row(name, t.quality, t.price / unit, appraise(t.graph)) for name, t in trials.items()
        )
        raised = tuple(
            (node.name, found.chosen.plan[node])
            for node in found.layers
            if found.chosen.plan[node] != "int8"
        )
        return Mixed(goal, found.met, found.trials, rows, raised)

    def record(self) -> dict[str, Any]:
        """Return what report.json says about it."""
        return {
            "max_drop": str(self.goal),
            "met": self.met,
            "trials": self.trials,
            "trade_off": [row.record() for row in self.rows],
            "raised": [{"name": name, "precision": p} for name, p in self.raised],
        }

    def sentence(self) -> str:
        """Say how it ended."""
        count = {p: sum(q == p for _, q in self.raised) for p in ("int16", "float")}
        parts = [f"{n} in {p}" for p, n in count.items() if n]
        where = f": {' and '.join(parts)}" if parts else ""
        many = f"{len(self.raised)} layers need" if len(self.raised) > 1 else "one layer needs"
        what = f"{many} more than int8{where}" if parts else "int8 will do"
        goal = f"at most {self.goal} lost" if self.goal.share is not None else f"{self.goal}"
        if not self.met:
            return f"no assignment meets the goal ({goal}); this is the one that came nearest."
        return f"{what} ({goal}, assignments measured: {self.trials})."
