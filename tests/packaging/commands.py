"""Run a command that must succeed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def run(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Return what the command prints on standard output."""
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
