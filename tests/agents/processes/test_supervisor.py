"""The supervisor's judgement of a part that is there but does nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents.models import Beat, Job
from agents.processes import launcher
from agents.processes.supervisor import Part, silent_parts
from tests.running_dashboard import a_data_folder, clean_environment, free_port, get, port_is_free, soon

CHECKOUT = Path(__file__).resolve().parents[3]

# A worker that starts a child, says both pids, and ignores SIGTERM, as a queue that lost its lock does.
WORKER = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("worker", os.getpid(), child.pid, flush=True)
time.sleep(60)
"""

SUPERVISOR = """
import os, signal, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from agents.processes import supervisor as parts
signal.pthread_sigmask(signal.SIG_BLOCK, parts.STOP_SIGNALS | {signal.SIGCHLD})
parts.SILENT, parts.LOOK_EVERY = 0.3, 0.05
alive = sys.argv[1] == "beating"
ticks = iter(range(10**9))
def beats():
    moving = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(ticks))
    return {"watch": moving, "worker": moving if alive else datetime(2026, 1, 1, tzinfo=UTC)}
part = parts.Part("worker", [sys.executable, "-c", sys.argv[2]], os.environ)
watch = parts.Part("watch", [sys.executable, "-c", "import time; time.sleep(60)"], os.environ)
say = lambda sentence: print("said", sentence, flush=True)
parts.Supervisor([part, watch], cwd=Path.cwd(), beats=beats, say=say, grace=0.5).run(each_turn=lambda: None)
print("stopped", flush=True)
"""


def supervise(kind: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, kind, WORKER], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
    )


def gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def silenced(*, watch: range, worker: range, web: range = range(0), seconds: int = 300) -> dict[str, int]:
    """When each part is first found silent, if watch and worker beat in every second but those given."""
    parts = [Part(name, [], {}, pid=1) for name in ("web", "worker", "watch")]
    beats: dict[str, datetime] = {}
    found: dict[str, int] = {}
    for second in range(seconds):
        at = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=second)
        if second not in web:
            beats["web"] = at
        if second % 4 == 0 and second not in watch:
            beats["watch"] = at
        # Its canary comes from watch, every 30 s.
        if second % 30 == 0 and second not in watch and second not in worker:
            beats["worker"] = at
        for part in silent_parts(parts, beats, float(second)):
            found.setdefault(part.name, second)
    return found


def test_a_frozen_watch_is_no_silence_of_the_worker():
    for begin in range(100, 130):
        assert silenced(watch=range(begin, begin + 60), worker=range(0)) == {}


def test_a_watch_frozen_for_long_is_found_silent_and_the_worker_is_not():
    assert silenced(watch=range(100, 300), worker=range(0)).keys() == {"watch"}


def test_a_silent_worker_is_found_while_watch_is_heard():
    assert silenced(watch=range(0), worker=range(100, 300)) == {"worker": 90 + 66}


def test_a_web_process_that_answers_no_more_is_found_whether_watch_is_heard_or_not():
    assert silenced(watch=range(0), worker=range(0), web=range(100, 300)) == {"web": 99 + 66}
    assert silenced(watch=range(100, 300), worker=range(0), web=range(100, 300))["web"] == 99 + 66


def test_a_gap_in_the_beat_of_watch_does_not_forgive_the_worker_its_silence():
    # Unheard from second 127 on, over 10 s after 116, until 132: these five do not count, those before them do.
    assert silenced(watch=range(117, 131), worker=range(100, 300)) == {"worker": 90 + 66 + 5}


@pytest.mark.slow
def test_a_worker_without_a_sign_of_life_is_replaced_with_all_it_started():
    supervisor = supervise("silent")
    assert supervisor.stdout is not None
    lines: list[str] = []
    while sum(line.startswith("worker") for line in lines) < 2:
        lines.append(supervisor.stdout.readline())
    first = [int(pid) for pid in lines[0].split()[1:]]
    assert all(gone(pid) for pid in first)
    assert any("gave no sign of life" in line for line in lines)
    supervisor.send_signal(signal.SIGTERM)
    rest, _ = supervisor.communicate(timeout=10)
    assert rest.endswith("stopped\n")
    second = [
        int(pid) for line in [*lines, *rest.splitlines()] if line.startswith("worker") for pid in line.split()[1:]
    ]
    assert all(gone(pid) for pid in second)


# A web process that answers /healthz, and a supervisor that asks it as `up` does.
WEB = """
import http.server, os, sys
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy)
print("web", os.getpid(), flush=True)
server.serve_forever()
"""
WEB_SUPERVISOR = """
import os, sys
import django; django.setup()
from pathlib import Path
from agents.processes import launcher, supervisor as parts
parts.SILENT, parts.LOOK_EVERY = 5.0, 0.05
web = parts.Part("web", [sys.executable, "-c", sys.argv[1], os.environ["PORT"]], os.environ)
say = lambda sentence: print("said", sentence, flush=True)
parts.Supervisor([web], cwd=Path.cwd(), beats=launcher._beats, say=say, grace=0.5).run(each_turn=lambda: None)
"""


@pytest.mark.slow
def test_a_stopped_web_process_is_ended_and_another_answers(tmp_path):
    port = free_port()
    env = clean_environment() | {
        "STEPKEEPER_DATA": str(a_data_folder(tmp_path / "data")),
        "PORT": str(port),
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    argv = [sys.executable, "-c", WEB_SUPERVISOR, WEB]
    with subprocess.Popen(argv, cwd=CHECKOUT, env=env, stdout=subprocess.PIPE, text=True) as supervisor:
        try:
            assert supervisor.stdout is not None
            first = int(supervisor.stdout.readline().split()[1])
            soon(lambda: not port_is_free(port), within=20)
            os.kill(first, signal.SIGSTOP)
            assert "web gave no sign of life" in supervisor.stdout.readline()
            lines = [supervisor.stdout.readline(), supervisor.stdout.readline()]
            assert "web ended (SIGKILL)" in lines[0]
            assert int(lines[1].split()[1]) != first
            assert gone(first)
            assert get(port, "/healthz")[0] == 200
        finally:
            supervisor.terminate()


@pytest.mark.slow
def test_a_worker_whose_sign_of_life_moves_is_left_alone():
    supervisor = supervise("beating")
    assert supervisor.stdout is not None
    pids = supervisor.stdout.readline().split()[1:]
    with pytest.raises(subprocess.TimeoutExpired):
        supervisor.wait(timeout=0.9)
    assert not [pid for pid in pids if gone(int(pid))]
    supervisor.send_signal(signal.SIGTERM)
    rest, _ = supervisor.communicate(timeout=10)
    assert rest == "stopped\n"


@pytest.mark.django_db
def test_a_job_that_was_taken_is_a_sign_of_life_of_the_worker():
    at = datetime(2026, 11, 1, 10, tzinfo=UTC)
    assert launcher._beats() == {}
    for name in ("watch", "worker"):
        Beat.objects.create(name=name, beaten_at=at)
    for number, claimed in enumerate((None, at + timedelta(seconds=50), at - timedelta(seconds=50))):
        Job.objects.create(kind="decision", message_id=str(number), created_at=at, enqueued_at=at, claimed_at=claimed)
    assert launcher._beats() == {"watch": at, "worker": at + timedelta(seconds=50)}
