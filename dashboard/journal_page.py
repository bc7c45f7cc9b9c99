"""One journal for a page: its file, its writer and its live boot, or the card that says why it cannot be read.

A page opens the journal once: its view loads one snapshot, and everything shown comes from that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render

from agents.catalog import discovery
from agents.models import JournalFile
from dashboard.ui.render import find_shown_version
from journal import clock
from journal.errors import JournalUnreadable
from journal.models import Boot, Writer
from journal.reader import Reader, process
from journal.reader.open import BUDGET
from journal.reader.stat import look_at_files

_TICK = 3  # seconds after which a page on which something runs, or is counted down to, counts as changed


@dataclass(frozen=True, slots=True)
class Opened:
    """A journal that a page shows. `live` is the boot of the agent that holds the lock now, if one does.

    `signature` is the file's from before anything of it was read: a later write gives another one. Boots and live boot
    are those of the snapshot, see `with_boots`.
    """

    file: JournalFile
    reader: Reader
    writer: Writer | None
    now: datetime
    signature: tuple[object, ...] = ()
    boots: tuple[Boot, ...] = ()
    live: int | None = None

    @property
    def name(self) -> str:
        return self.file.agent or self.file.path.rsplit("/", 1)[-1]

    def with_boots(self, boots: tuple[Boot, ...]) -> Opened:
        """The journal with the boots of its snapshot."""
        return replace(self, boots=boots, live=find_live_boot(boots, self.writer))


def open_journal(file: JournalFile) -> Opened:
    """Find who writes the journal; nothing of it is read yet. Raises JournalUnreadable where it may not be opened."""
    reader = discovery.reader_for(file)
    signature, writer = process.run(file.path, BUDGET, look_at_files, file.path)
    return Opened(file, reader, writer, clock.wall(), signature)


def digest_journal(opened: Opened, *told: object) -> str:
    """The files' signature, who writes them, and whatever else a page tells: known without opening the journal."""
    said = repr((opened.signature, opened.writer, told))
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def name_version(opened: Opened, digest: str, *, moves: bool) -> str:
    """The version of a page, by its digest; of a page that `moves`, time is a part of it."""
    return f"{digest}.{_count_ticks(opened)}" if moves else digest


def find_lasting_version(request: HttpRequest, opened: Opened, digest: str) -> str:
    """The version that a poll's part shows, where it still holds; else empty. The journal is not opened for it."""
    shown = find_shown_version(request) or ""
    return shown if shown in (digest, f"{digest}.{_count_ticks(opened)}") else ""


def _count_ticks(opened: Opened) -> int:
    return int(opened.now.timestamp()) // _TICK


def find_live_boot(boots: Sequence[Boot], writer: Writer | None) -> int | None:
    """The boot that runs now: the newest one, while its own process holds the lock and its row is open."""
    if writer is None or not boots:
        return None
    newest = max(boots, key=lambda boot: boot.boot)
    return newest.boot if newest.ended is None and newest.pid == writer.pid else None


P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class UnreadablePage:
    """The card of a journal that cannot be read now, or of one payload in it."""

    title: str
    path: str
    kind: str
    sentence: str
    hint: str


def with_journal(
    view: Callable[Concatenate[HttpRequest, Opened, P], HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """Give the view a journal instead of its row id; a journal that cannot be read is a card, never a 500."""

    @wraps(view)
    def opened_view(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        journal = kwargs.pop("journal")
        file = get_object_or_404(JournalFile, pk=journal)
        try:
            return view(request, open_journal(file), *args, **kwargs)
        except JournalUnreadable as error:
            if request.headers.get("HX-Request") == "true":
                return HttpResponse(status=204)  # what the page shows stays; the next poll tries again
            # A card is a good answer in place of a page, but not in place of stored bytes or a posted form.
            is_page = request.method != "POST" and "name" not in kwargs
            is_long = error.kind == "too_big" and "name" in kwargs
            title = "This is too long to hand out here" if is_long else "This journal cannot be read now"
            card = UnreadablePage(title, file.path, error.kind, error.message, error.hint)
            return render(request, "journals/unreadable.html", {"page": card}, status=200 if is_page else 503)

    return opened_view
