"""Journal files: each one's state, or the card that says what is wrong."""

from __future__ import annotations

import os

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from agents.access import audit
from agents.catalog import discovery
from agents.models import JournalFile
from agents.models.journal_file import REWOUND
from dashboard.access import can_decide, refuse, require_role
from dashboard.forms import AcknowledgeForm
from dashboard.pages import lists, rewound
from dashboard.render import page_or_part

ACKNOWLEDGE = "acknowledge rewound"


@require_safe
@require_role("viewer")
def journals(request: HttpRequest) -> HttpResponse:
    """Every file the patterns give."""
    page = lists.journals_page(
        globs=tuple(settings.STEPKEEPER_JOURNALS), as_root=os.geteuid() == 0, decides=can_decide(request.user)
    )
    parts = {"journals-table": "journals/_table.html"}
    return page_or_part(request, "journals/page.html", page, parts=parts, version=page.version)


@require_http_methods(["GET", "HEAD", "POST"])
def acknowledge(request: HttpRequest, journal: int) -> HttpResponseBase:
    """Accept a rewound journal as it is now: GET shows what that means, POST does it."""
    file = get_object_or_404(JournalFile, pk=journal)
    if not can_decide(request.user):
        audit.record_event(
            ACKNOWLEDGE, actor=request.user, allowed=False, detail="Only operators may do this.", journal=file
        )
        return refuse(request, "operator")
    if file.kind != REWOUND:
        return _gone(request)
    if request.method != "POST":
        form = AcknowledgeForm(initial={"fell_from": file.highest_revision})
        return render(request, "journals/rewound.html", {"page": rewound.build(file, form)})
    form = AcknowledgeForm(request.POST)
    if not form.is_valid():
        return render(request, "journals/rewound.html", {"page": rewound.build(file, form)}, status=422)
    file.highest_revision = form.cleaned_data["fell_from"]
    with transaction.atomic():
        if not discovery.acknowledge_rewind(file):
            return _gone(request)
        audit.record_event(ACKNOWLEDGE, actor=request.user, detail=form.cleaned_data["reason"], journal=file)
    messages.success(request, "Acknowledged: the index reads this journal anew, within seconds.")
    return redirect("journals")


def _gone(request: HttpRequest) -> HttpResponseBase:
    """A double click, a second person, or the file was put right: there is nothing left to acknowledge."""
    messages.info(request, "Nothing was acknowledged: this journal is not rewound, or not in the way you were shown.")
    return redirect("journals")
