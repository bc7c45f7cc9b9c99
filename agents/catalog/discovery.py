"""Journal files: found by the configured patterns, told apart by their id, and opened only inside the patterns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count

from agents.catalog.identity import forget_rows, settle_identity
from agents.catalog.patterns import is_inside, is_real_and_inside, matching_paths
from agents.models import JournalFile, PendingIntent
from agents.models.journal_file import COPY, HUNG, OUTSIDE, REWOUND, VANISHED
from journal import clock
from journal.errors import JournalUnreadable
from journal.reader import JournalState, Reader, file_signature, process
from journal.reader.open import BUDGET

RETRY = timedelta(minutes=10)  # wait after a file hung: each new try may cost watch a restart


def find_paths() -> list[str]:
    """The real paths that the patterns match, each once. A symbolic link to a file outside is listed as itself."""
    patterns = settings.STEPKEEPER_JOURNALS
    found: dict[str, None] = {}
    for path in matching_paths(patterns):
        real = os.path.realpath(path)
        found[real if is_inside(real, patterns) else path] = None
    return list(found)


def inspect_path(path: str) -> JournalState:
    """The state of the file at a path. A file outside the patterns is never opened."""
    try:
        path.encode()
    except UnicodeEncodeError:
        path = _storable(path)
    if "\\udc" in path:
        return _card(path, "odd_name", "Its name is not valid UTF-8.", "Rename the file.")
    if not _may_open(path):
        return _card(
            path,
            OUTSIDE,
            "It is a symbolic link to a file outside STEPKEEPER_JOURNALS, which is never opened.",
            "Add the file's own path to STEPKEEPER_JOURNALS, or remove the link.",
        )
    return Reader(path).state


def reader_for(journal: JournalFile) -> Reader:
    """A reader of a journal file. The path is checked anew each time: a file swapped for a link out is not opened.

    Raises JournalUnreadable where it may not be opened; the reader raises it at use where it cannot be read.
    """
    if journal.kind == HUNG:
        raise JournalUnreadable(f"Journal {journal.path}: {journal.sentence}", kind=HUNG, hint=journal.hint)
    if journal.kind in (OUTSIDE, VANISHED) or not _may_open(journal.path):
        raise JournalUnreadable(
            f"Journal {journal.path}: not inside STEPKEEPER_JOURNALS.",
            kind=OUTSIDE,
            hint="Add its path to STEPKEEPER_JOURNALS and start again.",
        )
    return Reader(journal.path)


def refresh_journals(before_each: Callable[[str], None] = lambda path: None) -> bool:
    """Add, revive and retire rows after the files that the patterns match. Choose the one journal of each id.

    Returns whether files were found that had no row. `before_each` is called before a new file is opened.
    """
    now, present = clock.wall(), [_storable(path) for path in find_paths()]
    known = set(JournalFile.objects.values_list("path", flat=True))
    found = {}
    for path in present:
        if path not in known:
            before_each(path)
            found[path] = inspect_path(path)
    for path, state in found.items():
        # The row counts as a copy at first: the journal of the file may be indexed already under another path.
        kind = COPY if state.uuid else "new"
        JournalFile.objects.create(path=path, uuid=state.uuid or "", kind=kind, found_at=now, seen_at=now)
    JournalFile.objects.filter(path__in=present).update(seen_at=now)
    _settle(found, present)
    for row in JournalFile.objects.all():
        if row.path not in present and (row.vanished_at is None or row.kind == COPY):
            _vanish(row)
        elif row.path in present and row.vanished_at is not None:
            row.vanished_at, row.kind, row.signature = None, COPY if row.kind == COPY else "new", ""
            row.save(update_fields=["vanished_at", "kind", "signature"])
    for row in JournalFile.objects.filter(path__in=list(found)):
        record_state(row, found[row.path])
    return bool(found)


def record_state(row: JournalFile, state: JournalState) -> None:
    """Store the state of a file in its row. Recognises a copy, a rewound file and a replaced file."""
    if state.readable and row.uuid and state.uuid and state.uuid != row.uuid:
        forget_rows(row)  # another journal lies at this path now
        row.uuid = ""
    row.doubt, row.doubt_boot = state.doubt[:16], state.doubt_boot
    original = _original(row, state)
    if original is not None:
        state = _card(row.path, COPY, *_said_of_copy(original), like=state)
    elif state.readable and state.dialect == "stepkeeper" and _is_rewound(row, state):
        if state.highest_boot < row.highest_boot:
            row.rewound_from = row.rewound_from or row.highest_revision
        state = _card(
            row.path,
            REWOUND,
            "It holds an older state than was read before: steps that were on disk are gone from it.",
            "Find out who restored it; effects since then may be repeated. Then acknowledge it here.",
            like=state,
        )
    elif state.readable:
        row.highest_revision, row.highest_boot = state.highest_revision, state.highest_boot
        row.rewound_from = None
    row.copy_of = original
    row.kind, row.sentence, row.hint = state.kind, state.sentence, state.hint
    row.warnings = list(state.warnings)
    row.uuid, row.agent = state.uuid or row.uuid, state.agent or row.agent or _name(row.path)
    row.dialect, row.journal_mode = state.dialect or "", state.journal_mode or ""
    row.user_version, row.retry_at = state.user_version, None
    row.save()


def record_hang(path: str, *, seconds: float) -> None:
    """Make a file whose reading hung a card, and leave it alone for a while. The card is on disk afterwards."""
    now = clock.wall()
    card: dict[str, Any] = {
        "kind": HUNG,
        "sentence": f"Reading it took over {seconds:g} s and was cut off.",
        "hint": f"Look whether its disk answers. It is tried again every {RETRY.total_seconds() / 60:.0f} minutes.",
        "signature": "",
        "retry_at": now + RETRY,
    }
    JournalFile.objects.update_or_create(
        path=_storable(path), defaults=card, create_defaults=card | {"found_at": now, "seen_at": now}
    )


def acknowledge_rewind(row: JournalFile) -> bool:
    """Accept a rewound file as it is now: the index forgets what it read from it and begins anew.

    False where it is no rewound file any more, or fell from another revision than `row` says: nothing is changed.
    """
    with transaction.atomic():
        still = JournalFile.objects.filter(pk=row.pk, kind=REWOUND, highest_revision=row.highest_revision)
        if still.update(kind="new") != 1:
            return False
        row.kind = "new"
        forget_rows(row)
    return True


def change_stamp(path: str) -> str:
    """The change signature of a journal as stored text; empty where there is no file."""
    try:
        return json.dumps(file_signature(path))
    except OSError:
        return ""


def _settle(found: dict[str, JournalState], present: list[str]) -> None:
    """Look at every journal id that stands in more than one row."""
    shared = JournalFile.objects.exclude(uuid="").values("uuid").annotate(rows=Count("pk")).filter(rows__gt=1)
    for uuid in list(shared.values_list("uuid", flat=True)):
        paths = JournalFile.objects.filter(uuid=uuid, path__in=present).values_list("path", flat=True)
        settle_identity(uuid, {path: found.get(path) or inspect_path(path) for path in paths})


def _vanish(row: JournalFile) -> None:
    if row.kind == COPY and not row.jobs.exists():
        row.delete()  # no row of the index came from this file
        return
    row.vanished_at, row.kind, row.signature = clock.wall(), VANISHED, ""
    row.sentence = "The file is gone: no pattern of STEPKEEPER_JOURNALS gives it any more."
    row.hint = "If it was moved, add its new place to STEPKEEPER_JOURNALS."
    row.writer_pid, row.writer_role = None, ""
    row.save()
    # A person cannot decide about a journal whose file is gone.
    PendingIntent.objects.filter(journal=row).delete()


def _is_rewound(row: JournalFile, state: JournalState) -> bool:
    """A journal with fewer boots than before is a restored backup. Its lost rows do not come back by later writes.

    A lower revision within one boot may be a power cut that took unsynced rows: the next boot is read anew.
    """
    return row.rewound_from is not None or state.highest_revision < row.highest_revision


def _said_of_copy(original: JournalFile) -> tuple[str, str]:
    if original.kind == VANISHED:
        return (
            f"It is an older copy of {original.path}, which is gone: it holds less than was read there.",
            "Put the journal back. If this file is all that is left, start its agent on it: then it takes over.",
        )
    return (
        f"It is a copy of {original.path}: both carry the same journal id. Its rows are not merged.",
        "Move the copy out of STEPKEEPER_JOURNALS. If this is the original, move the other: this one takes over.",
    )


def _original(row: JournalFile, state: JournalState) -> JournalFile | None:
    if not state.uuid:
        return None
    others = JournalFile.objects.filter(uuid=state.uuid).exclude(pk=row.pk).exclude(kind=COPY)
    # A journal known by this uuid is the original; only a newcomer, or what was a copy before, can be a copy. One that
    # is gone keeps what was read of it, until `refresh` gives it the place of its copy.
    return others.order_by("found_at", "pk").first() if row.kind == COPY or not row.uuid else None


def _may_open(path: str) -> bool:
    return process.run(path, BUDGET, is_real_and_inside, path, settings.STEPKEEPER_JOURNALS)


def _storable(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


def _name(path: str) -> str:
    return os.path.basename(path).partition(".")[0]


def _card(path: str, kind: str, sentence: str, hint: str, *, like: JournalState | None = None) -> JournalState:
    return JournalState(
        path=path,
        kind=kind,
        sentence=sentence,
        hint=hint,
        dialect=like.dialect if like else None,
        uuid=like.uuid if like else None,
        agent=like.agent if like else None,
        journal_mode=like.journal_mode if like else None,
        user_version=like.user_version if like else None,
    )
