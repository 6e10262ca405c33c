"""TreeEnsemble: comparisons and choices, all trees and branches at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glowmcu.core.types import Array
from glowmcu.frontend.bodies.body import Body, body
from glowmcu.ops.onnx_node import OnnxNode

_LARGEST = 500
_COMPARE = {0: "LessOrEqual", 1: "Less", 2: "GreaterOrEqual", 3: "Greater", 4: "Equal"}
_NOT_EQUAL, _MEMBER = 5, 6


@dataclass
class _Trees:
    """The trees of a node."""

    b: Body
    node: OnnxNode
    targets: int

    def attr(self, name: str) -> Any:
        return self.node.attr(name)

    def branch(self, index: int, is_leaf: bool) -> str | Array:
        """Return the scores [rows, targets] of a branch."""
        if is_leaf:
            scores = np.zeros((1, self.targets), self.node.value(0).type.dtype.numpy)
            scores[0, self.attr("leaf_targetids")[index]] = self.attr("leaf_weights")[index]
            return scores
        ways = [
            self.branch(
                int(self.attr(f"nodes_{way}nodeids")[index]),
                bool(self.attr(f"nodes_{way}leafs")[index]),
            )
            for way in ("true", "false")
        ]
        return self.b("Where", self.test(index), *ways)

    def test(self, index: int) -> str:
        """Return which rows [rows, 1] take the true branch of a node."""
        feature = int(self.attr("nodes_featureids")[index])
        value = self.b.part("x0", 1, feature, feature + 1)
        mode = int(self.attr("nodes_modes")[index])
        limit = np.asarray(self.attr("nodes_splits")[index], self.node.value(0).type.dtype.numpy)
        if mode == _MEMBER:
            hits = self.b("Equal", value, self.members(index).reshape(1, -1))
            count = self.b("ReduceSum", self.b("Cast", hits, to=1), np.asarray([1], np.int64))
            found = self.b("Greater", count, 0.5)
        elif mode == _NOT_EQUAL:
            found = self.b("Not", self.b("Equal", value, limit))
        else:
            found = self.b(_COMPARE[mode], value, limit)
        tracks = self.attr("nodes_missing_value_tracks_true")
        if tracks and tracks[index]:
            found = self.b("Or", found, self.b("IsNaN", value))
        return found

    def members(self, index: int) -> Array:
        """Return the set of a membership node; the sets are separated by NaN."""
        modes = np.asarray(self.attr("nodes_modes"))
        values = np.asarray(self.attr("membership_values"))
        sets = np.split(values, np.flatnonzero(np.isnan(values)))
        found: Array = sets[int(np.sum(modes[:index] == _MEMBER))]
        return found[~np.isnan(found)]


@body("TreeEnsemble", domain="ai.onnx.ml")
def tree_ensemble(b: Body, node: OnnxNode) -> str:
    """Up to 500 nodes; sums and averages, without a transformation of the scores."""
    count, aggregate = len(node.attr("nodes_modes")), int(node.attr("aggregate_function", 1))
    if count > _LARGEST:
        node.fail(f"{count} nodes, at most {_LARGEST}")
    if aggregate not in (0, 1) or int(node.attr("post_transform", 0)):
        node.fail("another aggregate_function than SUM and AVERAGE, or a post_transform")
    node.attr("nodes_hitrates")
    targets, roots = int(node.attr("n_targets", 1)), node.attr("tree_roots")
    trees = _Trees(b, node, targets)
    total: Any = trees.branch(int(roots[0]), False)
    for root in roots[1:]:
        total = b("Add", total, trees.branch(int(root), False))
    if aggregate == 0:
        total = b("Mul", total, np.asarray(1 / len(roots), node.value(0).type.dtype.numpy))
    return b("Expand", total, np.asarray([node.value(0).shape[0], targets], np.int64))
