"""Runs every `bench_*.py` beside this file and prints its rows. Times are rows here, never assertions in tests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

Row = tuple[str, float, str]  # what was measured, the number, its unit


def main(words: list[str]) -> int:
    """Run the benchmarks whose names contain one of `words`, all without words."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    for name in names:
        if words and not any(word in name for word in words):
            continue
        module = importlib.import_module(f"tests.benchmarks.{name}")
        rows: list[Row] = module.rows()
        for what, number, unit in rows:
            print(f"{name.removeprefix('bench_'):<14} {what:<58} {number:>12,.2f} {unit}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
