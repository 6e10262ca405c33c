from __future__ import annotations

import imported
import numpy as np
import pytest

from glowmcu.errors import UnsupportedError


def x(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    imported.run("DepthToSpace", {"x": x(2, 8, 2, 3)}, blocksize=2, mode=mode, opset=13)
    imported.run("DepthToSpace", {"x": x(1, 9, 1, 3)}, blocksize=3, mode=mode, opset=11)


def test_depth_to_space_without_a_mode_is_dcr() -> None:
    imported.run("DepthToSpace", {"x": x(1, 4, 3, 3)}, blocksize=2, opset=10)


def test_space_to_depth() -> None:
    imported.run("SpaceToDepth", {"x": x(2, 3, 4, 6)}, blocksize=2, opset=13)
    imported.run("SpaceToDepth", {"x": x(1, 1, 3, 6)}, blocksize=3, opset=13)
    imported.run("SpaceToDepth", {"x": x(1, 2, 3, 4)}, blocksize=1, opset=13)


def test_shapes_that_do_not_split_are_refused() -> None:
    for op, shape, block in (
        ("DepthToSpace", (1, 6, 2, 2), 2),
        ("DepthToSpace", (4, 2, 2), 2),
        ("SpaceToDepth", (1, 1, 3, 4), 2),
    ):
        proto = imported.helper.make_node(op, ["x"], ["y"], blocksize=block)
        with pytest.raises(UnsupportedError, match=op):
            imported.import_node(proto, {"x": x(*shape)}, {}, 13)
