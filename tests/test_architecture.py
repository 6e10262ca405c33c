"""The plan of the house: who imports whom, how large a room is, what the README's tree says."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "glowmcu"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 500

# From the top down; a layer imports those below it, siblings in one row do not know each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("cli",),
    ("commands",),
    ("show", "demo", "model", "onnx_backend", "survey"),
    ("together",),
    ("driver",),
    ("generate",),
    ("verify",),
    ("emit",),
    ("frontend", "quantize", "lowering", "memory"),
    ("passes",),
    ("ops",),
    ("graph", "instr"),
    ("targets",),
    ("core",),
)
FOR_ALL = {"errors", "options", "resources", "plugins", ""}
LEVEL = {name: level for level, row in enumerate(LAYERS) for name in row}
FORBIDDEN = {"emit": {"ops", "graph"}, "memory": {"ops", "graph"}}


def layer(module: Path) -> str:
    """Return the folder or module directly below glowmcu/ that `module` is, or is in."""
    first = module.relative_to(PACKAGE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those under `if TYPE_CHECKING:`, which do not run."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from statements(node)


def imports(module: Path) -> Iterator[tuple[str, int]]:
    """Yield (layer, line) of every import of glowmcu in `module`, those inside functions too."""
    for node in statements(ast.parse(module.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: imports are absolute"
            names = [node.module or ""]
            if node.module == "glowmcu":
                names = [f"glowmcu.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "glowmcu":
                yield [*name.split("."), ""][1], node.lineno


def tracked(*patterns: str) -> list[Path]:
    """Return the files that git tracks, or skip where there is no git."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    done = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [Path(name) for name in done.stdout.split("\0") if name]


each_module = pytest.mark.parametrize(
    "module", MODULES, ids=[str(m.relative_to(PACKAGE)) for m in MODULES]
)


@each_module
def test_imports_go_downwards_only(module: Path) -> None:
    own = layer(module)
    if own == "":  # glowmcu/__init__.py is the face of the whole package
        return
    assert own in LEVEL or own in FOR_ALL, f"glowmcu/{own} has no place in LAYERS"
    for name, line in imports(module):
        where = f"{module.relative_to(ROOT)}:{line}"
        if name == own or name in FOR_ALL or name.startswith("__"):
            continue
        assert name in LEVEL, f"{where}: glowmcu.{name} has no place in LAYERS"
        assert own not in FOR_ALL, f"{where}: glowmcu.{own} imports no other part"
        assert LEVEL[name] > LEVEL[own], f"{where}: {own} must not import {name}, which is above it"
        assert name not in FORBIDDEN.get(own, ()), f"{where}: {own} must not know {name}"


@each_module
def test_a_module_is_small_and_says_what_it_is_for(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_LINES
    assert ast.get_docstring(ast.parse(text)), "no module docstring"


def test_every_folder_is_in_the_documented_tree() -> None:
    folders = {file.parts[0] for file in tracked() if len(file.parts) > 1}
    folders |= {file.parts[1] for file in tracked("glowmcu/*/*")}
    tree = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    missing = {f for f in folders if not re.search(rf"^\s*{re.escape(f)}/", tree, re.MULTILINE)}
    assert not missing, f"docs/architecture.md, the tree: {sorted(missing)}"


def test_no_room_for_everything() -> None:
    names = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert not [m for m in MODULES if m.stem in names]


def test_committed_files_name_no_place_on_a_machine() -> None:
    place = re.compile(rb"/(home|root|work|tmp|Users)/[a-z]")
    found = [f for f in tracked() if (ROOT / f).is_file() and place.search((ROOT / f).read_bytes())]
    assert not found
