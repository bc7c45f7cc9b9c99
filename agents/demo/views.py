"""The demo's Kill button."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.roles import can_decide, role_of
from agents.catalog import liveness
from agents.models import JournalFile


@require_POST
def kill_agent(request: HttpRequest, agent: str) -> HttpResponseBase:
    """Send SIGKILL to one of the demo's own agents; nothing else can be named."""
    if not settings.STEPKEEPER_DEMO:
        raise Http404("The demo does not run here.")
    if not can_decide(request.user):
        audit.record_event("kill agent", actor=request.user, allowed=False, detail=agent)
        role = (role_of(request.user) or "no role").replace("_", " ")
        return render(request, "403.html", {"needed": "operator", "role": role}, status=403)
    from agents.demo import story

    try:
        with transaction.atomic():  # no kill that cannot be written down
            audit.record_event("kill agent", actor=request.user, detail=agent)
            killed = story.kill(agent)
            # The page that follows must not name the dead agent. The lock on our database is held here: nobody is
            # told that the database was busy and nothing changed once an agent is dead.
            for journal in JournalFile.objects.filter(path=story.journal_path(agent)):
                liveness.record_writer(journal)
    except LookupError as error:
        raise Http404("The demo has no such agent.") from error
    messages.success(request, killed.text if killed else f"{agent} is not running now; its supervisor starts it again.")
    return redirect("overview")
