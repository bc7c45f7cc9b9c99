"""Access rules of the pages. The ladder itself is agents/roles.py: a job checks it again."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from agents import audit
from agents.roles import ROLES, Role, can_decide, can_see_payloads, can_view, has_role, is_admin, role_of

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
    """Lets people with `least` or a higher role into a view; everyone else gets the 403 page."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not has_role(request.user, least):
                if least != "viewer":
                    audit.record("open", actor=request.user, allowed=False, detail=f"{request.path} needs {least}.")
                return refuse(request, least)
            return view(request, *args, **kwargs)

        return guarded

    return decorate


def refuse(request: HttpRequest, least: Role) -> HttpResponseBase:
    """The 403 page: which role is needed, which one the person has, and who can change that."""
    context = {"needed": least.replace("_", " "), "role": (role_of(request.user) or "no role").replace("_", " ")}
    return render(request, "403.html", context, status=403)
