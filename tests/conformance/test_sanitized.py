"""A case of every operator of ONNX's suite at -O0 under the address and undefined sanitizers."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from glowmcu.onnx_backend import OPTIONS, compile_for
from glowmcu.verify.extent import cropped
from glowmcu.verify.sanitize import run_all_sanitized

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import onnx_support

pytestmark = pytest.mark.cc


def one_of_every_operator() -> dict[str, onnx_support.Case]:
    """Return the last case of every operator with numbers only; its own one, if there is one."""
    known = onnx_support.known_failures()
    found: dict[str, onnx_support.Case] = {}
    for case in onnx_support.node_cases():
        if case.is_numeric and case.name not in known:
            nodes = case.model.graph.node
            for node in nodes:
                if node.op_type not in found or len(nodes) == 1:
                    found[node.op_type] = case
    return found


def test_no_operator_reads_or_writes_where_it_must_not() -> None:
    chosen = one_of_every_operator()
    assert len(chosen) > 170
    cases = list({c.name: c for c in chosen.values()}.values())
    networks, feeds = [], []
    for number, case in enumerate(cases):
        given = onnx_support.feeds_of(case, 0)
        compilation, rest = compile_for(case.model, given, replace(OPTIONS, name=f"c{number}"))
        networks.append(compilation.unit)
        feeds.append([rest])
    found = run_all_sanitized(list(zip(networks, feeds, strict=True)), optimize="-O0")
    for case, unit, (outputs,) in zip(cases, networks, found, strict=True):
        onnx_support.compare_all(case, 0, cropped(outputs, unit.extents))
