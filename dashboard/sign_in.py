"""Signing in and out."""

from __future__ import annotations

import math
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from agents.access import audit, login_link
from agents.access.throttle import SIGN_IN, WRONG, find_wait

BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Name and password."""
    form = AuthenticationForm(request, data=request.POST or None)
    if request.method == "POST":
        # Only a name that exists is written down: people type passwords into the wrong field.
        claimed = User.objects.filter(username=form.data.get("username", "")[:150]).first()
        if (wait := find_wait(claimed)) is not None:
            return _refuse_for_now(request, claimed, wait)
        if form.is_valid():
            with transaction.atomic():  # all or nothing, where the database is busy
                login(request, form.get_user())
                audit.record_event(SIGN_IN, actor=request.user, detail="By name and password.")
            return redirect(_find_next(request))
        audit.record_event(SIGN_IN, actor=claimed, allowed=False, detail=WRONG)
    status = 422 if form.is_bound else 200
    return render(request, "sign_in/password.html", {"form": form, "next": _find_next(request)}, status=status)


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """The one-time link. GET shows a button and uses nothing up, because previews open links too."""
    if request.method == "POST":
        with transaction.atomic():  # a link is used up only by whom it let in
            user = login_link.use_link(token)
            if user is not None:
                login(request, user, backend=BACKEND)
                audit.record_event(SIGN_IN, actor=user, detail="By a one-time link, which is used up now.")
                return redirect(settings.LOGIN_REDIRECT_URL)
        detail = "By a one-time link that was used, has expired, or never was."
        audit.record_event(SIGN_IN, actor=login_link.link_owner(token), allowed=False, detail=detail)
        return render(request, "sign_in/spent.html", status=410)
    link = login_link.find_link(token)
    if link is None:
        return render(request, "sign_in/spent.html", status=410)
    return render(request, "sign_in/link.html", {"link": link})


@login_not_required
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends the session."""
    logout(request)
    return redirect("sign_in")


def _refuse_for_now(request: HttpRequest, claimed: User | None, wait: timedelta) -> HttpResponse:
    """The form again, without a look at the password: too many were wrong lately."""
    audit.record_once(SIGN_IN, actor=claimed, allowed=False, detail="Not checked: too many wrong passwords lately.")
    minutes = math.ceil(wait / timedelta(minutes=1))
    context = {"form": AuthenticationForm(request), "next": _find_next(request), "wait": minutes}
    response = render(request, "sign_in/password.html", context, status=429)
    response.headers["Retry-After"] = str(math.ceil(wait.total_seconds()))
    return response


def _find_next(request: HttpRequest) -> str:
    target = request.POST.get("next") or request.GET.get("next") or ""
    if url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        return target
    return settings.LOGIN_REDIRECT_URL
