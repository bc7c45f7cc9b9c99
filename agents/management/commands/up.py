"""manage.py up: the dashboard with everything it needs, in one command."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from agents.processes.launcher import forget_data, run_dashboard
from agents.processes.lock import AlreadyRunning


class Command(BaseCommand):
    help = "Run web, worker and watch until Ctrl-C or SIGTERM. --demo adds the demo's agents."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="start the demo's agents too")
        parser.add_argument(
            "--forget", action="store_true", help="delete the data folder's content instead of starting"
        )
        parser.add_argument("--end-with-parent", action="store_true", help="stop when the starting process ends")

    def handle(self, *, demo: bool, forget: bool, end_with_parent: bool, **_: object) -> None:
        if forget:
            _forget()
            self.stdout.write(f"Forgotten: '{settings.STEPKEEPER_DATA}' begins anew at the next start.")
            return
        sys.exit(run_dashboard(demo=demo, end_with_parent=end_with_parent))


def _forget() -> None:
    try:
        forget_data(settings.STEPKEEPER_DATA)
    except AlreadyRunning as error:
        raise CommandError(str(error)) from None
