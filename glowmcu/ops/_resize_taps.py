"""Shared by the resizing cards: which elements of an axis make up each element of the result.

Coordinates are computed in float32, as ONNX Runtime does, so that ties fall on the same side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glowmcu.core.types import Array

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")


@dataclass(frozen=True)
class Axis:
    """How one axis is resized: `size` elements to `out`, by ONNX's rules.

    roi is the part of the axis, in [0, 1], that tf_crop_and_resize takes.
    """

    size: int
    out: int
    scale: float
    coordinates: str = "half_pixel"
    roi: tuple[float, float] = (0.0, 1.0)

    def __str__(self) -> str:
        return f"{self.size}->{self.out} {self.coordinates}"

    def sources(self, real: type[np.floating[Any]] = np.float32) -> Array:
        """Return the coordinate in the input of every element of the output."""
        return np.asarray(self._coordinates(np.arange(self.out, dtype=real), real))

    def _coordinates(self, x: Any, real: Any) -> Any:
        """Return the coordinates of elements x, computed in the type `real`."""
        one, half, scale = real(1), real(0.5), real(self.scale)
        length, resized = real(self.size), real(self.scale * self.size)
        zero = np.zeros_like(x)
        match self.coordinates:
            case "asymmetric":
                return x / scale
            case "align_corners":
                return zero if resized == 1 else x * (length - one) / (resized - one)
            case "tf_half_pixel_for_nn":
                return (x + half) / scale
            case "tf_crop_and_resize":
                start, end = (real(r) for r in self.roi)
                if self.out == 1:
                    return zero + half * (start + end) * (length - one)
                step = (end - start) * (length - one) / real(self.out - 1)
                return start * (length - one) + x * step
            case "half_pixel_symmetric":
                adjustment = real(self.out) / resized
                center = length * half
                return center * (one - adjustment) + (x + half) / scale - half
            case "pytorch_half_pixel" if self.out == 1:
                return zero
        return (x + half) / scale - half

    def outside(self) -> Array:
        """Return which elements of the output take the extrapolation value."""
        if self.coordinates != "tf_crop_and_resize":
            return np.zeros(self.out, np.bool_)
        x = self.sources()
        return (x < 0) | (x > self.size - 1)

    def nearest(self, rounding: str) -> Array:
        """Return the index of the element that each output element copies (int32)."""
        # the one case in which ONNX Runtime sees ties that float32 misses, 4 / (8 / 7)
        wide = rounding == "round_prefer_ceil" and self.coordinates == "asymmetric"
        x = self.sources(np.float64 if wide else np.float32).astype(np.float64)
        match rounding:
            case "floor":
                found = np.floor(x)
            case "ceil":
                found = np.ceil(x)
            case "round_prefer_ceil":
                found = np.floor(x + 0.5)
            case "simple":
                found = np.ceil(x) if self.scale < 1 else np.trunc(x)
            case _:
                found = np.ceil(x - 0.5)
        return np.clip(found, 0, self.size - 1).astype(np.int32)

    def linear(self) -> tuple[Array, Array]:
        """Return (index, weight): an output is x[index] + (x[index + 1] - x[index]) * weight.

        Where the weight is 0, index + 1 may lie outside.
        """
        x = np.clip(self.sources(), 0, np.float32(self.size - 1))
        index = np.floor(x)
        return index.astype(np.int32), (x - index).astype(np.float32)

    def taps(
        self, mode: str, cubic_a: float, antialias: bool, exclude_outside: bool
    ) -> tuple[Array, Array]:
        """Return indices [out, taps] (int32, inside the axis) and weights [out, taps] (float32)."""
        x = self.sources().astype(np.float64)
        scale = min(self.scale, 1.0) if antialias else 1.0
        reach = int(np.ceil((2 if mode == "cubic" else 1) / scale))
        places = np.floor(x).astype(np.int64)[:, None] + np.arange(1 - reach, reach + 1)
        distance = np.abs(places - x[:, None]) * scale
        weights = _cubic(distance, cubic_a) if mode == "cubic" else np.clip(1 - distance, 0, None)
        if exclude_outside:
            weights = np.where((places < 0) | (places >= self.size), 0.0, weights)
        total = weights.sum(axis=1, keepdims=True)
        weights = np.where(self.outside()[:, None], 0.0, weights / np.where(total == 0, 1, total))
        indices = np.clip(places, 0, self.size - 1)
        used = np.flatnonzero(np.any(weights, axis=0))
        first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 1)
        kept = slice(first, last)
        return indices[:, kept].astype(np.int32), weights[:, kept].astype(np.float32)


def _cubic(distance: Array, a: float) -> Array:
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
