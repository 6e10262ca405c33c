"""The MLPerf Tiny networks and their data, where the folder beside the checkout has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

INT8 = ("kws", "vww", "ic", "ad", "ww")
FLOAT = ("kws", "vww", "ic", "ad")


def model(shared: Path, name: str, kind: str) -> Path:
    """Path of the ONNX file of network `name`, `kind` float or int8."""
    return shared / "mlperf_tiny" / "models" / f"{name}_{kind}.onnx"


def labels(shared: Path, name: str) -> NDArray[np.int64]:
    """Class of every sample (for ad: 1 where the machine is anomalous)."""
    return np.load(shared / "mlperf_tiny" / "data" / f"{name}.npz")["y"].astype(np.int64)


def inputs(shared: Path, name: str, kind: str, count: int | None = None) -> NDArray[np.generic]:
    """The first samples as the network takes them, one more axis in front than its input.

    For ad the windows of 5 consecutive frames, 196 for each recording, `count` recordings.
    """
    data = shared / "mlperf_tiny" / "data"
    if name == "ww":
        specs = np.load(data / "ww_calibration.npz")["specs"][:count]
        stored = np.rint(specs / np.float32(0.0037010426)) - 128
        return np.clip(stored, -128, 127).astype(np.int8)
    x = np.load(data / f"{name}.npz")["x"][:count]
    return _as_float(name, x) if kind == "float" else _as_int8(name, x)


def _as_float(name: str, x: NDArray[np.generic]) -> NDArray[np.float32]:
    if name == "kws":
        return ((x.astype(np.float32) - 83) * np.float32(0.5847029089927673)).astype(np.float32)
    if name == "vww":
        return (x / np.float32(255)).astype(np.float32)
    if name == "ad":
        return windows(x)
    return x.astype(np.float32)


def _as_int8(name: str, x: NDArray[np.generic]) -> NDArray[np.generic]:
    if name in ("ic", "vww"):
        return (x.astype(np.int16) - 128).astype(np.int8)
    if name == "ad":
        stored = np.rint(windows(x) / np.float32(0.39101523)) + 89
        return np.clip(stored, -128, 127).astype(np.int8)
    return x


def windows(spectrogram: NDArray[np.generic]) -> NDArray[np.float32]:
    """[N, 200, 128] log-mel frames -> [N * 196, 640]: five frames after each other."""
    frames = spectrogram.astype(np.float32)
    parts = [frames[:, i : i + 196] for i in range(5)]
    return np.concatenate(parts, axis=2).reshape(-1, 640)


def auc(scores: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Area under the ROC curve by the rank sum; ties count half."""
    positive, negative = scores[truth == 1], scores[truth == 0]
    wins = (positive[:, None] > negative).sum() + 0.5 * (positive[:, None] == negative).sum()
    return float(wins) / (len(positive) * len(negative))
