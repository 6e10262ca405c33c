"""Labels: the class of every sample, from a file or from beside the samples themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from glowmcu.core.types import Array
from glowmcu.errors import InvalidModelError
from glowmcu.frontend.samples import Input, Samples

_NAMES = ("y", "label", "labels")


def load_labels(source: str | Path | Sequence[int] | Array) -> Array:
    """Return labels from a .npy, an .npz with one array or one named 'y', text, or numbers."""
    if not isinstance(source, str | Path):
        return np.asarray(source)
    path = Path(source)
    try:
        if path.suffix not in (".npy", ".npz"):
            return np.array([int(word) for word in path.read_text(encoding="utf-8").split()])
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        names = [n for n in _NAMES if n in loaded.files] or loaded.files
        if len(names) != 1:
            raise ValueError(f"which of its {len(names)} arrays they are cannot be told")
        return np.asarray(loaded[names[0]])
    except (OSError, ValueError, EOFError) as error:
        raise InvalidModelError(
            f"cannot read labels from '{path}'",
            why=str(error),
            hint="give a .npy, an .npz with an array 'y', or a text file with a number a line",
        ) from None


def labels_beside(source: Samples, inputs: Sequence[Input]) -> Array | None:
    """Return the array 'y' or 'label' beside the inputs in a dict or .npz of samples, if any.

    It must hold integers, one or more for each sample, and be no input itself.
    """
    arrays: Mapping[str, Array] = {}
    if isinstance(source, Mapping):
        arrays = source
    elif isinstance(source, str | Path) and Path(source).suffix == ".npz":
        arrays = np.load(source, allow_pickle=False)
    names = [n for n in _NAMES if n in arrays and all(n != i.name for i in inputs)]
    found = np.asarray(arrays[names[0]]) if names else None
    return found if found is not None and found.dtype.kind in "iu" and found.ndim else None
