"""The dashboard as one command: web, worker and watch, with one clean stop.

Two processes supervise. The front is what the user started: it holds the data folder, passes signals on, and adopts
every process that loses its parent. The supervisor below it starts and watches the parts. Kill either with -9, and the
other ends everything. Kill both at once, and the kernel sends each part SIGTERM.
"""

from __future__ import annotations

import errno
import http.client
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections
from django.db.migrations.loader import MigrationLoader
from django.urls import reverse

from agents import health
from agents.access import login_link
from agents.models import Beat, Job
from agents.processes.lock import AlreadyRunning, hold_folder
from agents.processes.supervisor import STOP_SIGNALS, Part, Supervisor
from agents.processes.tree import adopt_orphans, die_with_parent, end_descendants, end_tree, reap_children
from journal import clock
from journal.supervise import exit_status

# The front's own limit: the supervisor's 5 s of grace and its kill have passed by then. The promise is 8 s.
STOP_WITHIN = 6.5
OWN_FILES = ("dashboard.db", "dashboard.db-wal", "dashboard.db-shm", "secret-key", "static", "cache", "demo")


def forget_data(folder: Path) -> None:
    """Deletes what a dashboard keeps in its data folder, and nothing else. Raises AlreadyRunning."""
    held = hold_folder(folder, "dashboard")
    for name in OWN_FILES:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    os.close(held)


def run_dashboard(*, demo: bool, end_with_parent: bool) -> int:
    """Runs until SIGINT, SIGTERM or SIGHUP; everything it started has ended when it returns. The exit code.

    Raises CommandError when the data folder or the port is in use.
    """
    os.umask(0o077)
    adopt_orphans()
    if end_with_parent:
        die_with_parent(os.getppid(), signal.SIGTERM)
    try:
        hold_folder(settings.STEPKEEPER_DATA, "dashboard")
    except AlreadyRunning as error:
        raise CommandError(str(error)) from None
    check_port(settings.STEPKEEPER_PORT)
    connections.close_all()
    sys.stdout.flush()
    sys.stderr.flush()
    # Blocked before the fork, so that no signal falls between the two processes; both read them with sigtimedwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS | {signal.SIGCHLD})
    front = os.getpid()
    supervisor = os.fork()
    if supervisor == 0:
        _supervise(front, demo=demo)
    return _wait(supervisor)


def check_port(port: int) -> None:
    """Raises CommandError with the reason when the dashboard could not listen on `port`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise CommandError(f"Port {port} is in use. Choose another: PORT={port % 65535 + 1} make up") from None
            raise CommandError(f"Port {port} cannot be used: {error.strerror}. Choose another with PORT=...") from None


def _wait(supervisor: int) -> int:
    """The front's part: hand a stop signal down, and see that nothing is left when the supervisor has ended."""
    deadline: float | None = None
    while True:
        ended = dict(reap_children())
        if supervisor in ended:
            break
        if deadline is not None and time.monotonic() > deadline:
            end_tree(supervisor)
        received = signal.sigtimedwait(STOP_SIGNALS | {signal.SIGCHLD}, 0.25)
        if received is not None and received.si_signo in STOP_SIGNALS:
            # A second Ctrl-C does not wait.
            deadline = time.monotonic() + (STOP_WITHIN if deadline is None else 0.0)
            os.kill(supervisor, signal.SIGTERM)
    code = ended[supervisor]
    if code < 0 and deadline is None:
        print(
            f"The supervisor ended ({exit_status.describe_exit(code)}); everything is stopped.",
            file=sys.stderr,
            flush=True,
        )
    end_descendants(grace=0.0 if deadline is not None else 1.0)
    return 0 if deadline is not None else abs(code)


def _supervise(front: int, *, demo: bool) -> None:
    """The supervisor's life, in the forked process; never returns."""
    code = 1
    try:
        os.setsid()  # a terminal's Ctrl-C reaches the front only, which hands it down once
        die_with_parent(front, signal.SIGTERM)
        prepare_data()
        Supervisor(dashboard_parts(demo=demo), cwd=Path.cwd(), beats=_beats, say=_say).run(each_turn=_announcer())
        code = 0
    except CommandError as error:
        _say(f"Cannot start: {error}")
    except DatabaseError as error:
        _say(f"Cannot start: the dashboard's database fails: {error}. Is '{settings.STEPKEEPER_DATA}' writable?")
    except BaseException:
        traceback.print_exc()  # no process above this one would print it
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def prepare_data() -> None:
    """Database and static files, and no sign of life of an earlier run.

    Raises CommandError when the database was made by newer code.
    """
    loader = MigrationLoader(connection)
    unknown = [key for key in loader.applied_migrations if key[0] == "agents" and key not in loader.disk_migrations]
    if unknown:
        raise CommandError(
            f"'{settings.STEPKEEPER_DATA}' was written by a newer Stepkeeper ({unknown[0][1]}). "
            "Update this checkout, or set STEPKEEPER_DATA to another folder."
        )
    call_command("migrate", interactive=False, verbosity=0)
    if not settings.DEBUG:
        call_command("collectstatic", interactive=False, verbosity=0)
    health.forget_beats()
    connections.close_all()


def dashboard_parts(*, demo: bool) -> list[Part]:
    """The programs to run. Each is an ordinary command that can also be started alone."""
    manage = str(settings.BASE_DIR / "manage.py")
    env = os.environ | {"PYTHONUNBUFFERED": "1", "STEPKEEPER_DEMO": "1" if demo or settings.STEPKEEPER_DEMO else "0"}
    web = [sys.executable, "-m", "granian", "--interface", "asginl", "--host", "127.0.0.1"]
    web += ["--port", str(settings.STEPKEEPER_PORT), "--workers", "1", "--http", "1"]
    web += ["--no-ws", "--respawn-failed-workers", "--workers-kill-timeout", "4", "--log-level", "error"]
    running = [
        Part("web", [*web, "dashboard.asgi:application"], env | {"PYTHONPATH": str(settings.BASE_DIR)}),
        Part("worker", [sys.executable, manage, "qcluster"], env),
        Part("watch", [sys.executable, manage, "watch"], env),
    ]
    if demo:
        running.append(Part("demo", [sys.executable, manage, "demo"], env))
    return running


def _announcer() -> Callable[[], None]:
    """A function that prints the address with a sign-in link, once, as soon as the web process answers."""
    announced = False

    def announce() -> None:
        nonlocal announced
        if not announced and _web_answers():
            announced = True
            valid_for = timedelta(seconds=settings.STEPKEEPER_SIGN_IN_TTL)
            token = login_link.make_link(login_link.user_for("admin", role=None), valid_for=valid_for)
            connections.close_all()
            path = reverse("sign_in_link", kwargs={"token": token})
            _say(f"Stepkeeper is ready: http://127.0.0.1:{settings.STEPKEEPER_PORT}{path}")
            _say(f"It signs in once, within {settings.STEPKEEPER_SIGN_IN_TTL // 60} minutes. Ctrl-C stops everything.")
            _say(f"Another link: {login_link.link_command()}")

    return announce


def _web_answers() -> bool:
    web = http.client.HTTPConnection("127.0.0.1", settings.STEPKEEPER_PORT, timeout=1.0)
    try:
        # Any answer shows that web works; whether the other parts work does not matter here.
        web.request("GET", reverse("healthz"), headers={"Host": settings.ALLOWED_HOSTS[0]})
        return web.getresponse().status in {200, 503}
    except (OSError, http.client.HTTPException):
        return False
    finally:
        web.close()


def _beats() -> Mapping[str, datetime]:
    """The newest sign of life of each watched part.

    Web's is that it answers now, watch's is its beat, and the worker's is its beat or a job that it took.
    """
    answers = {"web": clock.wall()} if _web_answers() else {}
    try:
        beats = dict(Beat.objects.filter(name__in=("watch", "worker")).values_list("name", "beaten_at"))
        newest = Job.objects.order_by("-created_at").values_list("claimed_at", flat=True)[:20]
        signs = [sign for sign in (beats.get("worker"), *newest) if sign is not None]
        return answers | beats | ({"worker": max(signs)} if signs else {})
    except DatabaseError:
        return answers  # a busy or full disk must not end the supervisor; the next look is in a few seconds
    finally:
        connections.close_all()


def _say(sentence: str) -> None:
    print(sentence, flush=True)
