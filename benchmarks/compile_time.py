"""Print how long the tool chain takes for the MLPerf Tiny int8 networks, start of Python included.

python benchmarks/compile_time.py [--models DIR] [--target cortex-m4]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NETWORKS = ("kws", "vww", "ic", "ad", "ww")


def seconds(model: Path, target: str) -> float:
    """Return the least of three whole runs of `glowmcu compile`."""
    found = []
    for _ in range(3):
        with tempfile.TemporaryDirectory(prefix="glowmcu-bench-") as folder:
            command = [sys.executable, "-m", "glowmcu", "compile", str(model), "-o", folder]
            start = time.perf_counter()
            subprocess.run([*command, "--target", target, "--quiet"], check=True)
            found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/mlperf_tiny/models")
    parser.add_argument("--target", default="cortex-m4")
    arguments = parser.parse_args()
    for name in NETWORKS:
        print(
            f"{name:<6}{seconds(arguments.models / f'{name}_int8.onnx', arguments.target):6.2f} s"
        )


if __name__ == "__main__":
    main()
