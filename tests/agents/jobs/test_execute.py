"""A real django-q2 cluster: what was asked for is done once, though it is delivered again and again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time

import pytest

from journal.inbox import mailbox
from tests.builders.fleet import the_step
from tests.builders.held import TASK, a_held_step, hook

pytestmark = pytest.mark.slow

_ASK = """
import sys
from django.contrib.auth.models import User
from agents.catalog import discovery
from agents.jobs.queue import request_job
from agents.decisions.check import StepBinding
from agents.models import JournalFile
from agents.access.roles import give_role
from django_q.tasks import async_task

def ask():
    discovery.refresh_journals()
    row = JournalFile.objects.get()
    reader = discovery.reader_for(row)
    step = reader.step("hook-1", 0)
    user, _ = User.objects.get_or_create(username="ada")
    give_role(user, "operator")
    job = request_job("decision", actor=user, journal=row, task_id="hook-1", step_index=0,
        binding=StepBinding(step.idempotency_key, step.payload_sha256, 1), decision="replay", reason="checked")
    for _ in range(3):
        async_task("agents.jobs.queue.run_job", str(job.uuid))

ask()
"""


@pytest.fixture
def env(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("STEPKEEPER_")} | {
        "STEPKEEPER_DATA": str(tmp_path / "data"),
        "STEPKEEPER_JOURNALS": str(tmp_path / "*.db"),
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], env=env, check=True)
    return env


def test_a_job_delivered_four_times_to_a_real_worker_is_done_once(tmp_path, env):
    server = hook()
    path = tmp_path / "hook.db"
    try:
        a_held_step(path, server.url)
        subprocess.run([sys.executable, "manage.py", "shell", "-v", "0", "-c", _ASK], env=env, check=True)
        assert ask(tmp_path, "SELECT state, attempts FROM agents_job") == [("queued", 0)]
        assert ask(tmp_path, "SELECT count(*) FROM django_q_ormq") == [(4,)]
        with subprocess.Popen([sys.executable, "manage.py", "qcluster"], env=env, start_new_session=True) as cluster:
            try:
                soon(lambda: ask(tmp_path, "SELECT state FROM agents_job") == [("done",)])
                soon(lambda: ask(tmp_path, "SELECT count(*) FROM django_q_ormq") == [(0,)])
            finally:
                cluster.terminate()
                cluster.wait(timeout=30)
        assert len(server.received) == 2
        assert server.received[0] == server.received[1]
        assert the_step(path, TASK).status == "committed"
        assert not mailbox.list_messages(path)
    finally:
        server.close()


def ask(folder, query):
    with sqlite3.connect(folder / "data" / "dashboard.db", timeout=10) as connection:
        return connection.execute(query).fetchall()


def soon(is_so, *, within=60.0):
    deadline = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)
