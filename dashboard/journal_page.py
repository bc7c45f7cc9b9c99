"""Opening one journal for a page, or the card that says why it cannot be read, with its writer and its live boot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render

from agents.catalog import discovery
from agents.models import JournalFile
from journal import clock, writer_lock
from journal.errors import JournalUnreadable
from journal.models import Boot, Writer
from journal.reader import Reader, file_signature


@dataclass(frozen=True, slots=True)
class Opened:
    """A journal under a reader. `live` is the boot of the agent that holds the lock now, if one does.

    `signature` is the file's from before anything of it was read: what is written later is another one's.
    """

    file: JournalFile
    reader: Reader
    boots: tuple[Boot, ...]
    writer: Writer | None
    live: int | None
    now: datetime
    signature: tuple[object, ...] = ()

    @property
    def name(self) -> str:
        return self.file.agent or self.file.path.rsplit("/", 1)[-1]


def open_journal(file: JournalFile) -> Opened:
    """Read who writes the journal. Raises JournalUnreadable for a file that is no readable journal."""
    before = file_signature(file.path)
    reader = discovery.reader_for(file)
    boots = tuple(reader.boots())
    writer = writer_lock.find_holder(Path(file.path))
    return Opened(file, reader, boots, writer, find_live_boot(boots, writer), clock.wall(), before)


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
    """Give the view an opened journal instead of its row id; a journal that cannot be read is a card, never a 500."""

    @wraps(view)
    def opened_view(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        journal = kwargs.pop("journal")
        file = get_object_or_404(JournalFile, pk=journal)
        try:
            return view(request, open_journal(file), *args, **kwargs)
        except JournalUnreadable as error:
            if request.headers.get("HX-Request") == "true":
                return HttpResponse(status=204)  # what the page shows stays; the next poll tries again
            # A card in place of a page is an answer; in place of stored bytes, or of what was asked for, it is none.
            is_page = request.method != "POST" and "name" not in kwargs
            is_long = error.kind == "too_big" and "name" in kwargs
            title = "This is too long to hand out here" if is_long else "This journal cannot be read now"
            card = UnreadablePage(title, file.path, error.kind, error.message, error.hint)
            return render(request, "journals/unreadable.html", {"page": card}, status=200 if is_page else 503)

    return opened_view
