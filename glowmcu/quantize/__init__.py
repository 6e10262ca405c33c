"""Post-training quantization: calibrate on samples, assign scales, store activations as int8."""

from __future__ import annotations

from glowmcu.quantize.explain import LayerError, layer_errors
from glowmcu.quantize.profile import Profile, load_profile, measure, save_profile
from glowmcu.quantize.quantize import quantize
from glowmcu.quantize.settings import Settings
from glowmcu.quantize.stage import Quantized, quantize_stage

__all__ = [
    "LayerError",
    "Profile",
    "Quantized",
    "Settings",
    "layer_errors",
    "load_profile",
    "measure",
    "quantize",
    "quantize_stage",
    "save_profile",
]
