"""docs/generated/mlperf_tiny.md: every network and board is in it, and no bit differs."""

from __future__ import annotations

from pathlib import Path

from glowmcu.targets.board import emulated_boards

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_table_is_complete() -> None:
    text = (ROOT / "docs" / "generated" / "mlperf_tiny.md").read_text()
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    rows = {tuple(cells[:2]): cells for cells in lines[2:]}
    networks = ("kws", "vww", "ic", "ad", "ww")
    assert list(rows) == [(n, b.name) for n in networks for b in emulated_boards()]
    for cells in rows.values():
        assert len(cells) == 8
        assert cells[-1] == "equal" or cells[-1].startswith("does not fit: ")
    for network in networks:
        fitting = [b for b in emulated_boards() if rows[network, b.name][-1] == "equal"]
        assert len(fitting) >= 6, network
