"""manage.py demo: the demo's servers, agents and director, in the foreground. `make demo` starts it."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import BaseCommand

from agents.demo.director import Director, say


class Command(BaseCommand):
    help = "Run the demo's three agents and the world they act on, until Ctrl-C or SIGTERM."
    requires_system_checks = ()

    def handle(self, **_: object) -> None:
        Director(settings.STEPKEEPER_DEMO_FOLDER, say=say).run()
