"""The first move of every view of one journal: find its file, open it, or show the card that says why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render

from agents.models import JournalFile
from dashboard.pages.opening import Opened, open_journal
from journal.errors import JournalUnreadable

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class UnreadablePage:
    """The card of a journal that cannot be read now, or of one payload in it."""

    title: str
    path: str
    kind: str
    sentence: str
    hint: str


def reads_journal(
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
