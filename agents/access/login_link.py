"""One-time sign-in links. The shell makes a link; opening it changes nothing; the button on its page uses it up."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import sys
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import transaction

from agents.access.roles import Role, give_role, role_of
from agents.models import LoginLink
from journal import clock


def make_link(user: User, *, valid_for: timedelta) -> str:
    """A new token for `user`. Only its hash is stored, so this is the one moment it can be shown."""
    token = secrets.token_urlsafe(32)
    now = clock.wall()
    LoginLink.objects.filter(expires_at__lt=now - timedelta(days=30)).delete()
    LoginLink.objects.create(token_sha256=_hash(token), user=user, created_at=now, expires_at=now + valid_for)
    return token


def find_link(token: str) -> LoginLink | None:
    """The link while it may still be used; changes nothing."""
    links = LoginLink.objects.select_related("user").filter(used_at=None, expires_at__gt=clock.wall())
    return links.filter(token_sha256=_hash(token), user__is_active=True).first()


def use_link(token: str) -> User | None:
    """Uses the link up and returns its user; None when it was used, has expired or never was.

    One conditional UPDATE: of two presses at the same moment exactly one gets in.
    """
    now = clock.wall()
    with transaction.atomic():
        open_links = LoginLink.objects.filter(token_sha256=_hash(token), used_at=None, expires_at__gt=now)
        if open_links.filter(user__is_active=True).update(used_at=now) != 1:
            return None
        return User.objects.get(login_links__token_sha256=_hash(token))


def link_owner(token: str) -> User | None:
    """The person a link was made for, also if it is used up; for the audit."""
    link = LoginLink.objects.select_related("user").filter(token_sha256=_hash(token)).first()
    return link.user if link else None


def user_for(name: str, *, role: Role | None) -> User:
    """The user called `name`, made when missing. `role` replaces the roles they have; a new user's default is admin."""
    user, _ = User.objects.get_or_create(username=name, defaults={"password": make_password(None)})
    if role is None and role_of(user) is None:
        role = "admin"
    if role is not None:
        give_role(user, role)
    return user


def link_command() -> str:
    """The command that makes another link, for this process's data folder and port."""
    given = [f"{name}={shlex.quote(os.environ[name])} " for name in ("STEPKEEPER_DATA", "PORT") if os.environ.get(name)]
    program = (sys.executable, str(settings.BASE_DIR / "manage.py"))
    return f"{''.join(given)}{' '.join(map(shlex.quote, map(_short, program)))} login-link"


def _short(path: str) -> str:
    """A path below the current folder as it is typed there."""
    try:
        return os.path.relpath(path) if path.startswith(f"{Path.cwd()}{os.sep}") else path
    except OSError:
        return path  # the folder this process was started in is gone


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
