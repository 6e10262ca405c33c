"""ONNX to Graph: opset differences, function bodies, shapes bound, bad files refused."""

from __future__ import annotations

from glowmcu.frontend.load import Imported, Survey, load, survey

__all__ = ["Imported", "Survey", "load", "survey"]
