"""`check`: verify a journal without changing it."""

from __future__ import annotations

import argparse
import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from journal.cli.codes import OK, PROBLEM
from journal.cli.findings import QUESTIONS, Finding, Place, Question, of_steps, of_the_file, of_the_origin
from journal.cli.terminal import clean
from journal.errors import JournalUnreadable
from journal.reader import dialects
from journal.reader.header import read_header, require_readable
from journal.reader.open import read_journal
from journal.reader.stat import check_path
from journal.store.high_water import read_mark

# A journal with this much wrong needs no longer list.
_LIMIT = 1000
# Steps per read: each read ends its transaction, so that a check never makes a live agent's log grow.
_CHUNK = 100

T = TypeVar("T")


def run(options: argparse.Namespace) -> int:
    """Make every check and print the findings; 1 if there are any."""
    dialect, findings = _Inquiry(options.file, options.budget).findings()
    if options.json:
        document = {
            "journal": clean(options.file),
            "dialect": dialect,
            "findings": [asdict(finding) for finding in findings],
        }
        print(json.dumps(document, indent=2))
    else:
        for finding in findings:
            print(f"{finding.kind}: {clean(finding.where)}: {clean(finding.sentence)}")
        print(f"{clean(options.file)} ({dialect}): {len(findings) or 'no'} finding{'s' * (len(findings) != 1)}.")
    return PROBLEM if findings else OK


def _answers(question: Question, connection: sqlite3.Connection) -> list[Finding]:
    return list(islice(question(connection), _LIMIT))


class _Inquiry:
    """All questions about one journal, each in a read of its own, within one budget of seconds."""

    def __init__(self, name: str, budget: float) -> None:
        self._name = name
        self._path = check_path(name).path
        # Read before the file: a live agent writes its mark after the file.
        self._mark = read_mark(Path(self._path))
        self._deadline = time.monotonic() + budget

    def findings(self) -> tuple[str, list[Finding]]:
        """The dialect and up to _LIMIT findings. Raises JournalUnreadable(kind="too_slow") past the budget."""
        foreign = self._read(lambda connection: require_readable(read_header(connection, self._name), self._name))
        found = self._read(lambda connection: list(of_the_file(connection)))
        # On damaged pages every further answer would be noise; another maker's rows made us no promises.
        if found or foreign is not None:
            return dialects.OURS if foreign is None else foreign.name, found
        found = self._read(lambda connection: list(of_the_origin(connection, Path(self._path), self._mark)))
        place: Place | None = None
        while len(found) < _LIMIT:
            some, place = self._read(partial(of_steps, after=place, limit=_CHUNK))
            found += some
            if place is None:
                break
        for question in QUESTIONS:
            found += self._read(partial(_answers, question))
        return dialects.OURS, found[:_LIMIT]

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise JournalUnreadable(
                f"Journal {clean(self._name)}: the check took longer than its time budget.",
                kind="too_slow",
                hint="Give it more with --budget.",
            )
        return read_journal(self._path, work, budget=left)
