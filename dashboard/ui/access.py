"""The pages' access rules. The roles are in agents/access/roles.py; a job checks them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from agents.access import audit
from agents.access.roles import ROLES, Role, can_decide, can_see_payloads, can_view, has_role, is_admin, role_of
from agents.models import JournalFile

__all__ = [
    "ROLES",
    "Role",
    "can_decide",
    "can_see_payloads",
    "can_view",
    "has_role",
    "is_admin",
    "refuse",
    "require_role",
    "role_of",
]

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def require_role(least: Role) -> Callable[[View[P]], View[P]]:
    """Lets people with `least` or a higher role into a view; others get the 403 page and a line in the audit."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not has_role(request.user, least):
                _audit_refusal(request, least, kwargs)
                return refuse(request, least)
            return view(request, *args, **kwargs)

        return guarded

    return decorate


def _audit_refusal(request: HttpRequest, least: Role, target: Mapping[str, object]) -> None:
    """The audit line of a refusal: the person, the page, and the journal, task and step of its address."""
    index, journal = target.get("step_index"), target.get("journal")
    audit.record_once(
        "open",
        actor=request.user,
        allowed=False,
        detail=f"{request.path} needs {least}; this person has {role_of(request.user) or 'no role'}.",
        journal=JournalFile.objects.filter(pk=journal).first() if isinstance(journal, int) else None,
        task_id=str(target.get("task_id", "")),
        step_index=index if isinstance(index, int) and index < 2**31 else None,
    )


def refuse(request: HttpRequest, least: Role) -> HttpResponseBase:
    """The 403 page: which role is needed, which one the person has, and who can change that."""
    context = {"needed": least.replace("_", " "), "role": (role_of(request.user) or "no role").replace("_", " ")}
    return render(request, "403.html", context, status=403)
