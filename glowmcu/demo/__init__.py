"""The demo network: a small convolutional classifier of handwritten digits, and its data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from glowmcu.core.types import Array

_FOLDER = Path(__file__).resolve().parent
_SHADES = " ░▒▓█"


def model_path() -> Path:
    """Return the ONNX file: input `image` (batch x 1 x 8 x 8, 0 to 1), output `probabilities`."""
    return _FOLDER / "digits.onnx"


def calibration_path() -> Path:
    """Return the file of calibration data, in the form that `--calibration` takes."""
    return _FOLDER / "digits_calibration.npz"


def calibration() -> Array:
    """Return images from the training set to calibrate the quantization with."""
    with np.load(calibration_path()) as data:
        return np.asarray(data["image"])


def held_out() -> tuple[Array, Array]:
    """Return images that the network was not trained on, and their labels."""
    with np.load(_FOLDER / "digits_test.npz") as data:
        return np.asarray(data["image"]), np.asarray(data["label"])


def draw_digit(image: Array) -> str:
    """Return an image (8 x 8, 0 to 1) as eight lines of text, two characters per pixel."""
    rows = np.rint(np.clip(image, 0, 1).reshape(8, 8) * (len(_SHADES) - 1)).astype(int)
    return "\n".join("".join(2 * _SHADES[level] for level in row) for row in rows)
