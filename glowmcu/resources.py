"""Where templates/, runtime_c/, boards/ and cmake/ are: in the package or beside it."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Return the folder `name`; raise FileNotFoundError that names both places looked at."""
    places = (_PACKAGE / "_data" / name, _PACKAGE.parent / name)
    for place in places:
        if place.is_dir():
            return place
    raise FileNotFoundError(f"glowmcu's folder '{name}' is neither at {places[0]} nor {places[1]}")
