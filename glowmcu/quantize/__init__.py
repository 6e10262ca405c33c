"""Post-training quantization: calibrate on samples, assign scales, store activations as int8."""

from __future__ import annotations

from glowmcu.quantize.quantize import quantize

__all__ = ["quantize"]
