"""The director's record on disk: which agent it killed, when, and in which step. It does not record the result."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from agents.demo.paths import COMMITS, MESSAGES, PULLS, Paths
from journal import clock

MID_REQUEST: Final = "mid_request"
AFTER_504: Final = "after_504"
UNRECORDED: Final = "unrecorded"
UNANSWERABLE: Final = "unanswerable"

# Kind of kill → whose, in the order the page tells them.
KINDS: Final = {MID_REQUEST: PULLS, AFTER_504: PULLS, UNRECORDED: COMMITS, UNANSWERABLE: MESSAGES}


@dataclass(frozen=True, slots=True)
class Kill:
    """One SIGKILL of the director."""

    kind: str
    agent: str
    task_id: str
    step_index: int
    pid: int
    killed_at: datetime


def read(path: Path) -> dict[str, Kill]:
    """The kills so far by kind; none while there is no file."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {row["kind"]: Kill(**{**row, "killed_at": clock.parse(row["killed_at"])}) for row in rows}


def forget(paths: Paths) -> None:
    """Forget the kills and the visitor of an earlier run."""
    for path in (paths.story, paths.seen):
        path.unlink(missing_ok=True)


def add(path: Path, kill: Kill) -> None:
    """Keep one more kill; a reader sees the file before or after, never in between."""
    kills = {**read(path), kill.kind: kill}
    rows = [{**asdict(kill), "killed_at": clock.text(kill.killed_at)} for kill in kills.values()]
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    os.replace(temporary, path)
