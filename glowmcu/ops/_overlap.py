"""How the output of a kernel may lie over its input: it trails behind what is still read.

All functions return (low, high): address(y) - address(x) must not lie strictly between. With
`moved`, a kernel copies what a step reads before it writes the step's results; without, it reads
while it writes. out_pixel and in_pixel are the bytes of a pixel.
"""

from __future__ import annotations

from glowmcu.ops._window import WindowInstruction, extent


def ascending_rows(
    i: WindowInstruction, out_pixel: int, in_pixel: int, *, moved: bool
) -> tuple[int, int]:
    """Return the interval for a kernel that makes y row after row, y below x."""
    y_row, x_row = i.out_width * out_pixel, i.width * in_pixel
    span = extent(i.kernel_height, i.dilation_height)
    total = i.batch * i.height * x_row
    low = total
    for image in range(i.batch):
        for r in range(i.out_height):
            first = r * i.stride_height - i.pad_top
            needed = min(max(first + span if moved else first, 0), i.height)
            is_last = image == i.batch - 1 and r == i.out_height - 1
            if not (moved and is_last):
                end = (image * i.out_height + r + 1) * y_row
                low = min(low, (image * i.height + needed) * x_row - end)
    return low, total


def within_rows(i: WindowInstruction, block: int, out_pixel: int, in_pixel: int) -> tuple[int, int]:
    """Return the interval for a row of y over one of x, made `block` pixels at once, ascending."""
    low = x_row = i.width * in_pixel
    for x in range(i.out_width):
        needed = min(max(max(x - block + 1, 0) * i.stride_width - i.pad_left, 0), i.width)
        low = min(low, needed * in_pixel - (x + 1) * out_pixel)
    return low, x_row


def ascending_blocks(
    pixels: int, block: int, out_pixel: int, in_pixel: int, *, moved: bool
) -> tuple[int, int]:
    """Return the interval for a kernel that makes pixels of pixels, some at once, y below x."""
    low = pixels * in_pixel
    for start in range(0, pixels, block):
        stop = min(start + block, pixels)
        if not (moved and stop == pixels):
            needed = stop if moved else start
            low = min(low, needed * in_pixel - stop * out_pixel)
    return low, pixels * in_pixel


def descending_blocks(
    pixels: int, block: int, out_pixel: int, in_pixel: int, *, moved: bool
) -> tuple[int, int]:
    """Return the interval for a kernel that makes the last pixels first, y above x."""
    high = -pixels * out_pixel
    for start in range(0, pixels, block):
        stop = min(start + block, pixels)
        if not (moved and start == 0):
            needed = start if moved else stop
            high = max(high, needed * in_pixel - start * out_pixel)
    return -pixels * out_pixel, high
