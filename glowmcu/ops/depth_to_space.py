"""Importers of DepthToSpace and SpaceToDepth: reshape, transpose, reshape on NHWC images."""

from __future__ import annotations

from glowmcu.graph.graph import Value
from glowmcu.ops.base import onnx_op
from glowmcu.ops.onnx_node import OnnxNode
from glowmcu.ops.reshape import Reshape, reshaped
from glowmcu.ops.transpose import Transpose, to_nchw, to_nhwc


def _image(node: OnnxNode) -> tuple[Value, int]:
    x, block = node.value(0), node.attr("blocksize")
    if x.type.rank != 4:
        node.fail(f"a tensor of {x.type.rank} dimensions is not an image [N, C, H, W]")
    if not block or block < 1:
        node.fail(f"blocksize {block} is not a positive number")
    return x, block


def _moved(
    node: OnnxNode, x: Value, split: tuple[int, ...], perm: tuple[int, ...], shape: tuple[int, ...]
) -> Value:
    """Return x [N, H, W, C] split, transposed and joined again, as the node's output."""
    y = reshaped(node, x, split, suffix="split")
    y = node.apply(Transpose(perm), y, suffix="moved").output
    y = node.apply(Reshape(shape), y, perm=(0, 2, 3, 1)).output
    return to_nchw(node, y)


@onnx_op("DepthToSpace")
def import_depth_to_space(node: OnnxNode) -> Value:
    """Modes DCR and CRD."""
    x, b = _image(node)
    batch, channels, height, width = x.shape
    mode = node.attr("mode", "DCR")
    if channels % (b * b):
        node.fail(f"{channels} channels do not make blocks of {b} x {b}")
    depth = channels // (b * b)
    if mode == "DCR":  # [N, H, W, down, right, C'] -> [N, H, down, W, right, C']
        split, perm = (batch, height, width, b, b, depth), (0, 1, 3, 2, 4, 5)
    elif mode == "CRD":  # [N, H, W, C', down, right] -> the same
        split, perm = (batch, height, width, depth, b, b), (0, 1, 4, 2, 5, 3)
    else:
        node.fail(f"mode '{mode}' is not known", hint="DCR or CRD")
    shape = (batch, height * b, width * b, depth)
    return _moved(node, to_nhwc(node, x), split, perm, shape)


@onnx_op("SpaceToDepth")
def import_space_to_depth(node: OnnxNode) -> Value:
    """Every block size that divides height and width."""
    x, b = _image(node)
    batch, channels, height, width = x.shape
    if height % b or width % b:
        node.fail(f"an image of {height} x {width} does not split into blocks of {b} x {b}")
    split = (batch, height // b, b, width // b, b, channels)
    shape = (batch, height // b, width // b, b * b * channels)
    return _moved(node, to_nhwc(node, x), split, (0, 1, 3, 2, 4, 5), shape)
