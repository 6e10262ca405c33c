"""How far the output of a kernel may lie over its input: it trails behind what is still read."""

from __future__ import annotations

from glowmcu.ops._window import WindowInstruction, extent


def rows_distance(i: WindowInstruction, out_pixel: int, in_pixel: int, *, moved: bool) -> int:
    """Return the largest address(y) - address(x) for a kernel that writes row after row.

    moved  the rows of the window are copied before a row of y is written; else they are read where
           they lie while it is written
    out_pixel, in_pixel  bytes of a pixel
    """
    y_row, x_row = i.out_width * out_pixel, i.width * in_pixel
    span = extent(i.kernel_height, i.dilation_height)
    distance = i.batch * i.height * x_row
    for image in range(i.batch):
        for r in range(i.out_height):
            first = r * i.stride_height - i.pad_top
            needed = min(max(first + span if moved else first, 0), i.height)
            is_last = image == i.batch - 1 and r == i.out_height - 1
            if not (moved and is_last):
                end = (image * i.out_height + r + 1) * y_row
                distance = min(distance, (image * i.height + needed) * x_row - end)
    return distance


def blocks_distance(pixels: int, block: int, out_pixel: int, in_pixel: int, *, moved: bool) -> int:
    """Return the largest address(y) - address(x) for a kernel that makes pixels of pixels.

    block  pixels that are made at once
    moved  the pixels of a block are copied before its results are written
    """
    distance = pixels * in_pixel
    for start in range(0, pixels, block):
        stop = min(start + block, pixels)
        if not (moved and stop == pixels):
            needed = stop if moved else start
            distance = min(distance, needed * in_pixel - stop * out_pixel)
    return distance
