"""Tables of functions of int16: 256 pieces, each as finely divided as its function needs."""

from __future__ import annotations

import numpy as np

from glowmcu.core.types import Array

PIECES = 256
_LARGEST = 1 << 13
"""Elements that a piece's beginning can point to."""


def divided(values: Array) -> Array:
    """Return a table from which `looked_up` gives the 65,536 values within 1, in int16.

    A function so uneven that its table would pass 16 KB is given less exactly.
    """
    exact = values.astype(np.int64)
    for tolerance in (2**n for n in range(18)):
        bits = _bits(exact, tolerance)
        if PIECES + int((PIECES >> bits).sum()) < _LARGEST:
            return _packed(exact, bits)
    raise AssertionError("every function is a line within 2^17")


def looked_up(table: Array, x: Array) -> Array:
    """Return what gm_lut_s16_at gives for int16 x."""
    wide = x.astype(np.int64)
    pieces = table[:PIECES].view(np.uint16).astype(np.int64)[(wide >> 8) + PIECES // 2]
    bits, entries = pieces & 7, table.astype(np.int64)
    place = (pieces >> 3) + ((wide & 255) >> bits)
    low, part = entries[place], wide & ((1 << bits) - 1)
    rise = (entries[place + 1] - low) * part
    return np.asarray(low + ((rise + (1 << bits >> 1)) >> bits))


def _entries(exact: Array, bits: int) -> Array:
    """Return an entry for every 2^bits values of each piece, and the one after its last."""
    grid = exact.reshape(PIECES, 256)[:, :: 1 << bits]
    return np.concatenate([grid, np.append(grid[1:, 0], exact[-1])[:, None]], axis=1)


def _bits(exact: Array, tolerance: int) -> Array:
    """Return for each piece how coarse its entries may be, at least two to a piece."""
    found = np.zeros(PIECES, np.int64)
    place = np.arange(256)
    for bits in range(1, 8):
        entries, part = _entries(exact, bits), place & ((1 << bits) - 1)
        low, high = entries[:, place >> bits], entries[:, (place >> bits) + 1]
        lines = low + (((high - low) * part + (1 << bits >> 1)) >> bits)
        error = np.abs(lines - exact.reshape(PIECES, 256)).max(axis=1)
        found[error <= tolerance] = bits
    return found


def _packed(exact: Array, bits: Array) -> Array:
    counts = 256 >> bits
    begins = PIECES + np.cumsum(counts) - counts
    entries = [_entries(exact, int(n))[i, :-1] for i, n in enumerate(bits)]
    table = np.concatenate([begins * 8 + bits, *entries, exact[-1:]])
    return table.astype(np.uint16).view(np.int16)
