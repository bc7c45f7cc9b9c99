"""`recover`: settle what can be settled without the agent's code."""

from __future__ import annotations

import argparse
import json
import sqlite3
from pathlib import Path

from journal.cli.codes import OK, WAITS
from journal.cli.terminal import clean
from journal.errors import JournalUnreadable, UsageError
from journal.reader import dialects, inspect
from journal.store import connection

_COMES_RIGHT = ("ok", "busy", "log_unreadable")


def run(options: argparse.Namespace) -> int:
    """Apply the inbox, settle pending steps, say what became of each; 75 where something still waits."""
    state = inspect(options.file)
    # Opening for writing merges a log that a reader may not touch; everything else stays closed.
    if state.kind not in _COMES_RIGHT:
        raise JournalUnreadable(state.sentence, kind=state.kind, hint=state.hint)
    if state.dialect not in (None, dialects.OURS):
        raise UsageError(f"Journal {clean(options.file)}: of another maker; stepkeeper only reads it.")
    from journal.settle.visit import reconcile_file

    path = Path(options.file)
    try:
        report = reconcile_file(path, role="cli", wait=options.wait)
    except (sqlite3.Error, OSError) as error:
        # A damaged page or a full disk that was met only after the file had been opened.
        raise connection.explain_refusal(path, error) from error
    waits = bool(report.held or report.waiting or report.left)
    if options.json:
        print(
            json.dumps(
                {
                    "settled": report.settled,
                    "held": report.held,
                    "waiting": report.waiting,
                    "left_to_agent": report.left,
                    "messages": report.messages,
                    "lines": list(report.lines),
                },
                indent=2,
            )
        )
    else:
        for line in report.lines:
            print(clean(line))
        print(
            f"{report.settled} settled, {report.held} held, {report.waiting} waiting, {report.left} left to the agent."
        )
    return WAITS if waits else OK
