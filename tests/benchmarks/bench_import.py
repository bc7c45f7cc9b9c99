"""What `import journal` costs, beside the modules of the standard library that any journal needs."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 15
STANDARD = "import json, sqlite3, hashlib, dataclasses"


def rows() -> list[tuple[str, float, str]]:
    """Milliseconds of a fresh interpreter, each kind in turn; the bare start is taken off both before the ratio."""
    kinds = {"start": "pass", "standard library": STANDARD, "journal": "import journal"}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, code in kinds.items():
            times[kind].append(_milliseconds(code))
    start, standard, ours = (statistics.median(times[kind]) for kind in kinds)
    return [
        ("import json, sqlite3, hashlib, dataclasses", standard - start, "ms"),
        ("import journal", ours - start, "ms"),
        ("import journal against them (at most 2)", (ours - start) / (standard - start), "ratio"),
    ]


def _milliseconds(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - started) * 1000
