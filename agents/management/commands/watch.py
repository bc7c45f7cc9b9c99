"""manage.py watch: the loop that keeps the fleet index."""

from __future__ import annotations

import signal

from django.core.management.base import BaseCommand, CommandError

from agents.processes.lock import AlreadyRunning
from agents.watch import Watch


class Command(BaseCommand):
    help = "Find journals, keep the fleet index, sample disk, raise alerts. Runs until SIGTERM; one per data folder."

    def handle(self, **_: object) -> None:
        watch = Watch()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, watch.stop)
        # Whoever started us may have them blocked.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
        try:
            watch.run()
        except AlreadyRunning as error:
            raise CommandError(str(error)) from None
