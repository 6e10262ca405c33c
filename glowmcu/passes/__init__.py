"""Passes over the graph: fold, fuse, choose the layout, turn quantized parts into integers."""

from __future__ import annotations

from glowmcu.core.passes import Pass, as_pass
from glowmcu.graph.graph import Graph
from glowmcu.graph.rewrite import with_bodies
from glowmcu.passes.clean import merge_duplicates, remove_identities, transposes_to_views
from glowmcu.passes.fold import fold_constants, fold_dequantized
from glowmcu.passes.functions import recognize_functions
from glowmcu.passes.fuse import fuse_activations, fuse_pad
from glowmcu.passes.integer import fuse_integer, islands
from glowmcu.passes.layout import sink_transposes
from glowmcu.passes.linear import fold_scales, matmul_to_dense
from glowmcu.passes.loop_states import keep_states_stored, states_in_layout
from glowmcu.passes.loops import simplify_loops
from glowmcu.passes.qdq import gather_quantization, make_signed

GRAPH_PASSES: tuple[Pass[Graph], ...] = tuple(
    as_pass(with_bodies(function))
    for function in (
        fold_constants,
        remove_identities,
        merge_duplicates,
        simplify_loops,
        recognize_functions,
        matmul_to_dense,
        states_in_layout,
        sink_transposes,
        fold_scales,
        fuse_activations,
        fuse_pad,
        gather_quantization,
        make_signed,
        keep_states_stored,
        fuse_integer,
        fold_dequantized,
        fuse_pad,
        transposes_to_views,
        merge_duplicates,
    )
)

__all__ = ["GRAPH_PASSES", "islands"]
