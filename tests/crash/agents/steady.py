"""An agent that does many small protected steps at a steady rate, and counts what its own writes run into."""

from __future__ import annotations

import os
import sqlite3
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from journal import Journal, tool

RATE = float(os.environ["RATE"])


@tool(effect="mutating", keyed=timedelta(hours=24))
def tick(call: Any, number: int, text: str) -> dict[str, object]:
    """The smallest effect there is: none outside, but a protected step all the same."""
    return {"number": number, "seen": len(text)}


def work(task: Any, seconds: float) -> dict[str, object]:
    """One step, and once FOLDER/watched is there all the steps that RATE makes of so many seconds, or of more until
    FOLDER/enough is there. None before its time; what is late is caught up."""
    task.run(tick, number=0, text="x" * 400)
    folder = Path(os.environ["FOLDER"])
    while not (folder / "watched").exists():
        time.sleep(0.05)
    begun = time.monotonic()
    number = 0
    while number < seconds * RATE or not (folder / "enough").exists():
        number += 1
        time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
        task.run(tick, number=number, text="x" * 400)
    return {"steps": number + 1, "rate": number / (time.monotonic() - begun)}


if __name__ == "__main__":
    errors = 0
    journal = Journal(os.environ["JOURNAL"], agent="steady", tools=[tick])
    with journal, journal.task("steady") as task:
        try:
            done = work(task, float(os.environ["SECONDS"]))
        except sqlite3.OperationalError as error:
            print("lock error", error, flush=True)
            raise
    Path(os.environ["FOLDER"], "steady").write_text(f"{done['steps']} {done['rate']:.0f}")
