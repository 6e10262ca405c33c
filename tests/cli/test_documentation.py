"""Generated pages are up to date, and what the pages say can be run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_pages() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


@pytest.mark.parametrize(("name", "text"), load_pages().items())
def test_generated_pages_are_up_to_date(name: str, text: str) -> None:
    written = (ROOT / "docs" / "generated" / name).read_text(encoding="utf-8")
    assert written == text, "run python docs/generate.py"


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert "://" not in target, "the documentation names no hosts"
        assert (page.parent / target).exists(), target
