"""The journals page: each file's state, or the card that says why it cannot be read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from agents.access import audit
from agents.catalog import discovery
from agents.fleet import queries
from agents.fleet.summaries import JournalLine
from agents.models import IndexedTask, JournalFile, PendingIntent
from agents.models.journal_file import REWOUND
from dashboard.ui.access import can_decide, refuse, require_role
from dashboard.ui.forms import AcknowledgeForm
from dashboard.ui.render import digest_shown, page_or_part
from journal import clock
from journal.hold_reasons import describe_doubt
from journal.inbox import mailbox


@dataclass(frozen=True, slots=True)
class JournalsPage:
    """Every file the globs gave: those that can be read, and the cards of those that cannot."""

    cards: tuple[JournalLine, ...]
    journals: tuple[JournalLine, ...]
    globs: tuple[str, ...]
    as_root: bool
    decides: bool
    version: str

    @property
    def is_empty(self) -> bool:
        return not self.cards and not self.journals


def build_journals_page(*, globs: tuple[str, ...], as_root: bool, decides: bool) -> JournalsPage:
    """Every journal file known."""
    lines = queries.list_journals()
    return JournalsPage(
        tuple(line for line in lines if not line.is_fine),
        tuple(line for line in lines if line.is_fine),
        globs,
        as_root,
        decides,
        digest_shown([_list_shown(line) for line in lines], decides),
    )


def _list_shown(line: JournalLine) -> tuple[object, ...]:
    """A journal's row of the table. The last-seen time is shown only if the file is gone."""
    told = (line.journal_id, line.path, line.kind, line.sentence, line.hint, line.agent, line.warnings, line.dialect)
    numbers = (
        line.tasks,
        line.pending,
        line.highest_boot,
        line.file_bytes,
        line.writer_pid,
        line.writer_role,
        line.doubt,
    )
    return *told, *numbers, line.read_at, line.seen_at if line.is_gone else None


ACKNOWLEDGE = "acknowledge rewound"


@require_safe
@require_role("viewer")
def show_journals(request: HttpRequest) -> HttpResponse:
    """Every file the patterns give."""
    page = build_journals_page(
        globs=tuple(settings.STEPKEEPER_JOURNALS), as_root=os.geteuid() == 0, decides=can_decide(request.user)
    )
    parts = {"journals-table": "journals/_table.html"}
    return page_or_part(request, "journals/page.html", page, parts=parts, version=page.version)


@require_http_methods(["GET", "HEAD", "POST"])
def acknowledge_rewind(request: HttpRequest, journal: int) -> HttpResponseBase:
    """Accept a rewound, restored or copied journal as it is now: GET shows what that means, POST does it."""
    file = get_object_or_404(JournalFile, pk=journal)
    if not can_decide(request.user):
        audit.record_event(
            ACKNOWLEDGE, actor=request.user, allowed=False, detail="Only operators may do this.", journal=file
        )
        return refuse(request, "operator")
    if file.kind != REWOUND and not file.doubt:
        return _redirect_gone(request)
    if request.method != "POST":
        form = AcknowledgeForm(initial={"fell_from": file.highest_revision, "doubt_boot": file.doubt_boot})
        return render(request, "journals/rewound.html", {"page": build_rewound_page(file, form)})
    form = AcknowledgeForm(request.POST)
    if not form.is_valid():
        return render(request, "journals/rewound.html", {"page": build_rewound_page(file, form)}, status=422)
    with transaction.atomic():
        if not _accept_file(request, file, form):
            return _redirect_gone(request)
        audit.record_event(ACKNOWLEDGE, actor=request.user, detail=form.cleaned_data["reason"], journal=file)
    return redirect("journals")


def _accept_file(request: HttpRequest, file: JournalFile, form: AcknowledgeForm) -> bool:
    """Have the index read the file anew, and its agent send from it again; False where neither was as shown."""
    if file.doubt_boot != (form.cleaned_data["doubt_boot"] or 0):
        return False
    if file.kind == REWOUND:
        file.highest_revision = form.cleaned_data["fell_from"]
        if not discovery.acknowledge_rewind(file):
            return False
        messages.success(request, "Acknowledged: the index reads this journal anew, within seconds.")
    if file.doubt:
        # On disk before the audit: a kill in between leaves a decision that its journal records with the person.
        mailbox.post_message(
            file.path,
            {
                "kind": "decision",
                "decision": "accept_journal",
                "uuid": file.uuid,
                "boot": file.doubt_boot,
                "actor": request.user.get_username(),
                "reason": form.cleaned_data["reason"],
                "expires_at": clock.text(clock.wall() + timedelta(seconds=settings.STEPKEEPER_DECISION_TTL)),
            },
        )
        messages.success(request, "Accepted: a running agent goes on within a second, another one at its next start.")
    return True


def _redirect_gone(request: HttpRequest) -> HttpResponseBase:
    """A double click, a second person, or the file was put right: there is nothing left to acknowledge."""
    messages.info(request, "Nothing was acknowledged: this journal is not in the state that you were shown.")
    return redirect("journals")


@dataclass(frozen=True, slots=True)
class RewoundPage:
    """One rewound, restored or copied file, and the form that accepts it. `doubt` says what its agent found."""

    journal_id: int
    path: str
    sentence: str
    hint: str
    tasks: int
    pending: int
    boot: int
    form: AcknowledgeForm
    is_rewound: bool
    doubt: str


def build_rewound_page(file: JournalFile, form: AcknowledgeForm) -> RewoundPage:
    """The confirmation page of one rewound, restored or copied file."""
    return RewoundPage(
        file.pk,
        file.path,
        file.sentence,
        file.hint,
        IndexedTask.objects.filter(journal=file).count(),
        PendingIntent.objects.filter(journal=file).count(),
        file.highest_boot,
        form,
        file.kind == REWOUND,
        describe_doubt(file.doubt) if file.doubt else "",
    )
