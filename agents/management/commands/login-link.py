"""manage.py login-link: prints a one-time sign-in link."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.urls import reverse

from agents.access import login_link
from agents.access.roles import ROLES
from agents.models import LoginLink


class Command(BaseCommand):
    help = "Print a one-time sign-in link. Opening it uses nothing up; the button on its page signs in, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", default="admin", help="who signs in; made when missing (default: admin)")
        parser.add_argument(
            "--role", choices=ROLES, help="the role they get (default: unchanged; admin for someone without one)"
        )

    def handle(self, *, user: str, role: str | None, **_: object) -> None:
        if not user or len(user) > 150:
            raise CommandError("--user takes 1 to 150 characters.")
        data = f"STEPKEEPER_DATA '{settings.STEPKEEPER_DATA}'"
        try:
            if LoginLink._meta.db_table not in connection.introspection.table_names():
                raise CommandError(
                    f"{data}: no dashboard has run on it. Start it with 'make up', or name the folder of the one that "
                    "runs: it printed the whole command when it started ('Another link: …')."
                )
            person = login_link.user_for(user, role=next((known for known in ROLES if known == role), None))
            token = login_link.make_link(person, valid_for=timedelta(seconds=settings.STEPKEEPER_SIGN_IN_TTL))
        except DatabaseError as error:
            raise CommandError(f"{data}: its database fails: {error}. Try again.") from None
        path = reverse("sign_in_link", kwargs={"token": token})
        self.stdout.write(f"http://127.0.0.1:{settings.STEPKEEPER_PORT}{path}")
