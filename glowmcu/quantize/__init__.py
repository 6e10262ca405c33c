"""Post-training quantization: calibrate on samples, assign scales, store activations as int8."""

from __future__ import annotations

from glowmcu.quantize.explain import LayerError, layer_errors
from glowmcu.quantize.profile import Profile, load_profile, measure, save_profile
from glowmcu.quantize.quantize import quantize
from glowmcu.quantize.settings import Settings
from glowmcu.quantize.stage import Quantized, Stage, check_options
from glowmcu.quantize.tradeoff import Cost, Mixed

__all__ = [
    "Cost",
    "LayerError",
    "Mixed",
    "Profile",
    "Quantized",
    "Settings",
    "Stage",
    "check_options",
    "layer_errors",
    "load_profile",
    "measure",
    "quantize",
    "save_profile",
]
