"""`manage.py up` with real processes: one instance, one clean stop, nothing left behind however it is ended."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.running_dashboard import Up, a_data_folder, free_port, get, port_is_free, soon

pytestmark = pytest.mark.slow


@pytest.fixture
def beginning(tmp_path: Path) -> Iterator[Up]:
    """One that starts for the first time."""
    yield from _ended(Up(tmp_path / "data", free_port()))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Up]:
    """One that a test may end as it likes."""
    yield from _ended(Up(a_data_folder(tmp_path / "data"), free_port()))


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One that every test leaves alive and whole."""
    yield from _ended(Up(a_data_folder(tmp_path_factory.mktemp("lasting") / "data"), free_port()))


def _ended(up: Up) -> Iterator[Up]:
    try:
        yield up
    finally:
        up.end_hard()


def nothing_is_left(up: Up) -> bool:
    return not up.processes() and port_is_free(up.port)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_everything_within_8_seconds(running, number):
    link = running.link()
    soon(lambda: running.named("qcluster"), within=45)
    status, page = get(running.port, link.removeprefix(f"http://127.0.0.1:{running.port}"))
    assert status == 200
    assert b"Sign in as admin" in page
    running.process.send_signal(number)
    assert running.process.wait(timeout=8) == 0
    assert nothing_is_left(running)
    assert "Traceback" not in running.output()


def test_a_stop_signal_during_the_first_start_is_not_lost(beginning):
    soon(lambda: len(beginning.processes()) >= 2, within=45)
    beginning.process.send_signal(signal.SIGTERM)
    assert beginning.process.wait(timeout=8) == 0
    assert nothing_is_left(beginning)


def test_kill_9_of_the_parent_leaves_no_process_and_no_port_and_the_next_start_works(running):
    running.link()
    soon(lambda: len(running.named("qcluster")) >= 4, within=45)
    running.process.kill()
    running.process.wait()
    successor = Up(running.folder, running.port)
    try:
        successor.link()
        own = {process.pid for process in psutil.Process(successor.process.pid).children(recursive=True)}
        strays = [process for process in running.processes() if process.pid not in own | {successor.process.pid}]
        assert strays == []
        successor.process.terminate()
        assert successor.process.wait(timeout=8) == 0
        assert nothing_is_left(successor)
    finally:
        successor.end_hard()


def test_kill_9_of_the_supervisor_ends_the_rest(running):
    running.link()
    soon(lambda: len(running.named("qcluster")) >= 4, within=45)
    (supervisor,) = psutil.Process(running.process.pid).children()
    supervisor.kill()
    assert running.process.wait(timeout=8) == signal.SIGKILL
    assert nothing_is_left(running)


def test_kill_9_of_both_at_once_ends_the_parts_too(running):
    running.link()
    soon(lambda: len(running.named("qcluster")) >= 4, within=45)
    (supervisor,) = psutil.Process(running.process.pid).children()
    supervisor.suspend()  # so that it cannot act on the front's death first
    running.process.kill()
    supervisor.kill()
    running.process.wait()
    soon(lambda: nothing_is_left(running), within=8)
    assert nothing_is_left(running)


def test_the_end_of_make_ends_everything(tmp_path):
    # A shell that stays, as make does, between the tester and the command.
    up = Up(
        a_data_folder(tmp_path / "data"),
        free_port(),
        "--end-with-parent",
        argv=("/bin/sh", "-c", '"$@"; exit $?', "sh"),
    )
    try:
        up.link()
        up.process.kill()
        up.process.wait()
        soon(lambda: nothing_is_left(up), within=8)
        assert nothing_is_left(up)
    finally:
        up.end_hard()


@pytest.mark.xdist_group("up")
def test_a_second_one_on_the_same_folder_is_refused_with_the_first_ones_pid(lasting):
    lasting.link()
    second = Up(lasting.folder, free_port())
    assert second.process.wait(timeout=30) == 1
    assert f"runs as pid {lasting.process.pid}" in second.output()
    assert "Traceback" not in second.output()
    assert lasting.process.poll() is None


def test_a_port_in_use_is_one_line_and_an_exit_code(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        up = Up(tmp_path / "data", other.getsockname()[1])
        assert up.process.wait(timeout=30) == 1
    assert up.output().startswith(f"CommandError: Port {up.port} is in use. Choose another")
    assert up.output().count("\n") == 1


@pytest.mark.xdist_group("up")
def test_a_killed_part_is_started_again_and_its_orphans_are_ended(lasting):
    lasting.link()
    soon(lambda: len(lasting.named("qcluster")) >= 4, within=45)
    before = {process.pid for process in lasting.named("qcluster")}
    (supervisor,) = psutil.Process(lasting.process.pid).children()
    worker = next(child for child in supervisor.children() if "qcluster" in child.cmdline())
    worker.kill()
    soon(lambda: len({process.pid for process in lasting.named("qcluster")} - before) >= 4, within=45)
    assert before.isdisjoint({process.pid for process in lasting.named("qcluster")})
    assert "worker ended (SIGKILL); it starts again in 1 s." in lasting.output()


@pytest.mark.xdist_group("up")
def test_a_killed_web_worker_comes_back(lasting):
    lasting.link()
    (supervisor,) = psutil.Process(lasting.process.pid).children()
    web = next(child for child in supervisor.children() if "granian" in child.cmdline())
    serving = next(child for child in web.children() if "dashboard.asgi:application" in child.cmdline())
    serving.kill()
    soon(lambda: not port_is_free(lasting.port) and serving.pid not in [p.pid for p in lasting.processes()], within=45)

    def answers() -> bool:
        with contextlib.suppress(OSError):
            return get(lasting.port, "/healthz")[0] in {200, 503}
        return False

    soon(answers, within=45)
    assert get(lasting.port, "/sign-in/")[0] == 200


@pytest.mark.xdist_group("up")
def test_healthz_answers_200_once_watch_has_beaten_and_a_canary_came_home_from_the_worker(lasting):
    lasting.link()
    soon(lambda: get(lasting.port, "/healthz")[0] == 200, within=90)
    told = get(lasting.port, "/healthz")[1]
    assert b"ok watch" in told
    assert b"ok worker" in told


@pytest.mark.xdist_group("up")
def test_the_real_static_files_are_served_under_hashed_names_and_refuse_a_foreign_host(lasting):
    lasting.link()
    _, page = get(lasting.port, "/sign-in/")
    addresses = re.findall(rb'(?:href|src)="(/static/[^"]+)"', page)
    assert addresses
    for address in addresses:
        path = address.decode()
        assert get(lasting.port, path)[0] == 200
        request = urllib.request.Request(f"http://127.0.0.1:{lasting.port}{path}", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10)
        refused.value.close()
        assert refused.value.code == 400


def test_forgetting_deletes_what_is_the_dashboards_and_nothing_else(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    (folder / "dashboard.db").touch()
    (folder / "demo").mkdir()
    (folder / "demo" / "forge.db").touch()
    up = Up(folder, free_port(), "--forget")
    assert up.process.wait(timeout=30) == 0, up.output()
    assert sorted(path.name for path in folder.iterdir()) == ["mine.txt", "up.lock"]
