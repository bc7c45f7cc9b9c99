"""Several files with one journal id: which of them is the journal, and which are copies.

One row of the index holds everything that was read of an id, and its path is where the journal lies now. So whatever is
copied, moved or deleted, no task, step or cost of one id is counted twice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction

from agents.models import IndexedModelCall, IndexedRun, IndexedTask, JournalFile, PendingIntent, SpendHour
from agents.models.journal_file import COPY
from journal import writer_lock
from journal.reader import JournalState


@dataclass(frozen=True, slots=True)
class Claim:
    """The facts that decide whether a file is the journal or a copy."""

    path: str
    indexed: bool = False  # the index holds its rows
    held: bool = False  # an agent writes it
    revision: int = 0
    changed_ns: int = 0


def choose_original(claims: Sequence[Claim], *, known: int = 0) -> Claim:
    """Which of the files with one id is the journal, by the first of these that tells them apart.

    An agent writes it and it holds what was indexed; it is the indexed one; an agent writes it; it is the newest by
    revision; it was changed the longest ago, as whatever was copied from it came later; its path. `known` is the
    revision up to which this id was read.
    """
    known = max([known, *(claim.revision for claim in claims if claim.indexed)])

    def rank(claim: Claim) -> tuple[bool, bool, bool, int, int, str]:
        goes_on = claim.held and claim.revision >= known
        return (not goes_on, not claim.indexed, not claim.held, -claim.revision, claim.changed_ns, claim.path)

    return min(claims, key=rank)


def settle_identity(uuid: str, states: Mapping[str, JournalState]) -> None:
    """Give the row that holds an id's rows the path of its journal; every other row of the id is a copy.

    `states` is what lies at each path of these rows that is still there. While the journal itself cannot be read, it
    stays what it is; while it is gone, a file that holds less than was read stays a copy, unless an agent writes it.
    """
    rows = list(JournalFile.objects.filter(uuid=uuid).order_by("found_at", "pk"))
    rows.sort(key=lambda row: (row.kind == COPY, row.highest_revision == 0))
    keeper = rows[0]
    there = [row for row in rows if (state := states.get(row.path)) is not None and state.uuid == uuid]
    at_its_place = states.get(keeper.path)
    is_unread = at_its_place is not None and at_its_place.uuid is None and not at_its_place.readable
    with transaction.atomic():
        for row in rows[1:]:
            if row.kind != COPY:
                forget_rows(row)
                row.kind = COPY
                row.save(update_fields=["kind"])
        if there and not is_unread:
            claims = [_claim(row, states[row.path], indexed=row is keeper) for row in there]
            chosen = choose_original(claims, known=keeper.highest_revision)
            if chosen.path == keeper.path:
                _be_known(keeper)
            elif chosen.held or chosen.revision >= keeper.highest_revision:
                _take_place(keeper, next(row for row in there if row.path == chosen.path), states)


def forget_rows(row: JournalFile) -> None:
    """Remove everything the index holds of a journal; its row, jobs and audit stay."""
    with transaction.atomic():
        for table in (PendingIntent, IndexedModelCall, IndexedRun, IndexedTask, SpendHour):
            table.objects.filter(journal=row).delete()
        row.highest_revision = row.highest_boot = row.indexed_revision = row.indexed_boot = 0
        row.rewound_from, row.signature, row.unsummed_hours, row.read_at = None, "", [], None
        row.save()


def _claim(row: JournalFile, state: JournalState, *, indexed: bool) -> Claim:
    writer = writer_lock.find_holder(Path(row.path))
    try:
        changed = os.stat(row.path).st_ctime_ns
    except OSError:
        changed = 0
    return Claim(
        path=row.path,
        indexed=indexed and row.kind != COPY,
        held=writer is not None and writer.alive and writer.role == "agent",
        revision=state.highest_revision,
        changed_ns=changed,
    )


def _be_known(keeper: JournalFile) -> None:
    """Take the journal out of the copies. Files that are found together all count as copies at first."""
    if keeper.kind == COPY:
        keeper.kind = "new"
        keeper.save(update_fields=["kind"])


def _take_place(keeper: JournalFile, other: JournalFile, states: Mapping[str, JournalState]) -> None:
    """Swap the paths of two rows, so that what was read, decided and audited stays with the journal."""
    old, new = keeper.path, other.path
    was_copy = other.copy_of_id is not None or old in states
    is_older = keeper.rewound_from is not None or states[new].highest_revision < keeper.highest_revision
    # What was beside the journal may have gone its own way since: the index begins anew with it, unless it holds less
    # than was read, which a person must look at first. A file that was only moved goes on where it was.
    if was_copy and not is_older:
        forget_rows(keeper)
    JournalFile.objects.filter(pk=other.pk).update(path="")
    keeper.path, keeper.kind, keeper.signature, keeper.vanished_at = new, "new", "", None
    keeper.save()
    other.path, other.uuid, other.kind, other.copy_of = old, "", COPY, None
    other.save()
