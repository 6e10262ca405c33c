"""Input data: .npz files, folders of .npy, arrays or iterators become one dict per sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from glowmcu.core import dtypes, types
from glowmcu.core.types import Array, TensorType
from glowmcu.errors import InvalidModelError

Samples = str | Path | Array | Mapping[str, Array] | Iterable[Mapping[str, Array]]
Sample = dict[str, Array]


class Input(Protocol):
    """What a network input must tell: its name and type."""

    @property
    def name(self) -> str:
        """Name of the ONNX input."""

    @property
    def type(self) -> TensorType:
        """Type, with the quantization where stored integers stand for real numbers."""


def load_samples(
    source: Samples, inputs: Sequence[Input], limit: int | None = None
) -> list[Sample]:
    """Return samples as dicts of arrays of exactly the inputs' types.

    source  an .npz file or a dict: one array per input, named like it (with one input any name
            but 'y' will do), of the input's shape or with a leading axis of samples; a folder of
            .npy files, one sample each, for a network with one input; an array; or an iterable of
            dicts. Integers are taken as values where the input is real; real numbers are quantized
            where the input is an integer with a scale.
    Raises InvalidModelError when the data do not fit the network.
    """
    if isinstance(source, str | Path):
        source = _read(Path(source))
    if isinstance(source, np.ndarray):
        source = {_only(inputs).name: source}
    if isinstance(source, Mapping):
        return _split(source, inputs, limit)
    samples: list[Sample] = []
    for item in source:
        samples += _split(item, inputs, None)
        if limit is not None and len(samples) >= limit:
            break
    return samples[:limit]


def _only(inputs: Sequence[Input]) -> Input:
    if len(inputs) != 1:
        names = ", ".join(i.name for i in inputs)
        raise InvalidModelError(
            f"the network has {len(inputs)} inputs, so data need names: {names}"
        )
    return inputs[0]


def _read(path: Path) -> dict[str, Array] | list[dict[str, Array]]:
    try:
        if path.is_dir():
            files = sorted(path.glob("*.npy"))
            if not files:
                raise InvalidModelError(f"the folder '{path}' has no .npy files")
            return [{"x": np.load(file, allow_pickle=False)} for file in files]
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"x": loaded}
        return {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError) as error:
        raise InvalidModelError(
            f"cannot read data from '{path}'",
            why=str(error),
            hint="give an .npz with one array per input, or a folder of .npy files",
        ) from None


def _split(arrays: Mapping[str, Array], inputs: Sequence[Input], limit: int | None) -> list[Sample]:
    found = {i.name: _find(arrays, i, inputs) for i in inputs}
    stacked = {i.name: _with_sample_axis(found[i.name], i) for i in inputs}
    counts = {len(a) for a in stacked.values()}
    if len(counts) > 1:
        sizes = ", ".join(f"{n}: {len(a)}" for n, a in stacked.items())
        raise InvalidModelError(f"the inputs have different numbers of samples ({sizes})")
    count = min(counts.pop() if counts else 1, limit if limit is not None else 1 << 62)
    return [{i.name: _convert(stacked[i.name][n], i) for i in inputs} for n in range(count)]


def _find(arrays: Mapping[str, Array], item: Input, inputs: Sequence[Input]) -> Array:
    if item.name in arrays:
        return np.asarray(arrays[item.name])
    others = [name for name in arrays if name != "y"]
    if len(inputs) == 1 and len(others) == 1:
        return np.asarray(arrays[others[0]])
    raise InvalidModelError(
        f"the data have no array for input '{item.name}'",
        why=f"they have: {', '.join(arrays)}",
        hint="name the arrays like the network's inputs",
    )


def _with_sample_axis(array: Array, item: Input) -> Array:
    shape = item.type.shape
    if array.shape == shape:
        return array[None]
    for tail in (shape, shape[1:] if shape[:1] == (1,) else shape):
        if array.ndim >= 1 and array.shape[1:] == tail:
            return array.reshape(len(array), *shape)
    raise InvalidModelError(
        f"data for input '{item.name}' have shape {array.shape}",
        why=f"the network takes {shape}, with or without a leading axis of samples",
    )


def _convert(array: Array, item: Input) -> Array:
    want = item.type.dtype.numpy
    if array.dtype == want or array.dtype == np.dtype((np.void, want.itemsize)):
        # files hold types that numpy does not know as bytes
        return np.ascontiguousarray(array).view(want)
    if item.type.quant is not None and array.dtype.kind == "f":
        return types.quantize(array, item.type.quant, item.type.dtype)
    if want.kind == "f" or np.can_cast(array.dtype, want, "safe"):
        return array.astype(want)
    small = item.type.dtype
    if small in dtypes.SMALL_INTEGERS and array.dtype.kind in "iu":
        if small.low <= array.min(initial=0) and array.max(initial=0) <= small.high:
            return array.astype(want)
    raise InvalidModelError(
        f"data for input '{item.name}' are {array.dtype}, the network takes {item.type.in_bytes()}",
        hint="give the stored integers, or real numbers, which are quantized"
        if item.type.quant
        else f"convert them to {want}",
    )
