"""Labels: the class of every sample, from a file or from beside the samples themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from glowmcu.core.types import Array
from glowmcu.errors import InvalidModelError
from glowmcu.frontend.samples import Input, Samples

_BESIDE = "y"


def load_labels(source: str | Path | Sequence[int] | Array) -> Array:
    """Return labels from a .npy, an .npz with one array or one named 'y', a text file, numbers."""
    if not isinstance(source, str | Path):
        return np.asarray(source)
    path = Path(source)
    try:
        if path.suffix not in (".npy", ".npz"):
            return np.array([int(word) for word in path.read_text(encoding="utf-8").split()])
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        names = [_BESIDE] if _BESIDE in loaded.files else loaded.files
        if len(names) != 1:
            raise ValueError(f"it has the arrays {', '.join(names) or 'of nothing'}, none is 'y'")
        return np.asarray(loaded[names[0]])
    except (OSError, ValueError, EOFError) as error:
        raise InvalidModelError(
            f"cannot read labels from '{path}'",
            why=str(error),
            hint="give a .npy, an .npz with an array 'y', or a text file with a number a line",
        ) from None


def labels_beside(source: Samples, inputs: Sequence[Input]) -> Array | None:
    """Return the array 'y' beside the inputs in a dict or .npz of samples, None if there is none.

    It must hold integers, one or more for each sample, and be no input itself.
    """
    if any(i.name == _BESIDE for i in inputs):
        return None
    found = None
    if isinstance(source, Mapping):
        found = source.get(_BESIDE)
    elif isinstance(source, str | Path) and Path(source).suffix == ".npz":
        loaded = np.load(source, allow_pickle=False)
        found = loaded[_BESIDE] if _BESIDE in loaded.files else None
    if found is None or np.asarray(found).dtype.kind not in "iu" or np.asarray(found).ndim < 1:
        return None
    return np.asarray(found)
