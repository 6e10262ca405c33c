"""The toy operators are known while tests of the frontend run."""

from __future__ import annotations

import pytest
import toy

from glowmcu.ops.base import IMPORTERS


@pytest.fixture(autouse=True)
def toy_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, importer in toy.IMPORTERS.items():
        monkeypatch.setitem(IMPORTERS, key, importer)
