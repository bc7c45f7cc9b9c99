"""`manage.py up` as a user would run it: real processes on a free port, for tests of any room."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

T = TypeVar("T")

CHECKOUT = Path(__file__).resolve().parents[1]
MARK = "STEPKEEPER_DATA"


class Up:
    """One `manage.py up`, its output, and every process that carries its data folder in its environment."""

    def __init__(
        self, folder: Path, port: int, *arguments: str, argv: tuple[str, ...] = (), env: dict[str, str] | None = None
    ) -> None:
        self.folder, self.port = folder, port
        self.log = folder.with_suffix(f".{time.monotonic_ns()}.log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*argv, sys.executable, str(CHECKOUT / "manage.py"), "up", *arguments],
                env=clean_environment() | {MARK: str(folder), "PORT": str(port)} | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(self.folder):
                    found.append(process)
        return found

    def named(self, word: str) -> list[psutil.Process]:
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if word in process.cmdline():
                    found.append(process)
        return found

    def link(self) -> str:
        def printed() -> str | None:
            assert self.process.poll() is None, self.output()
            match = re.search(r"Stepkeeper is ready: (\S+)", self.output())
            return match and match[1]

        return soon(printed, within=90)

    def stop(self) -> None:
        """Asks it to stop, as Ctrl-C does, and sees to it that nothing is left in any case."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        self.end_hard()

    def end_hard(self) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.wait(timeout=10)


def clean_environment() -> dict[str, str]:
    """This process's environment without settings of ours, and not measured: what the dashboard's processes run is
    covered by the tests of its rooms, at their speed."""
    ours = ("STEPKEEPER_", "DJANGO_", "COVERAGE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def a_data_folder(path: Path) -> Path:
    """Make `path` what a first start leaves behind: a database with its tables, static files, a secret key."""
    return shutil.copytree(_first_start(), path)


@functools.cache
def _first_start() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="stepkeeper-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for command in ("migrate", "collectstatic"):
        manage = [sys.executable, str(CHECKOUT / "manage.py"), command, "--noinput", "--verbosity=0"]
        subprocess.run(manage, env=clean_environment() | {MARK: str(folder)}, check=True, stdin=subprocess.DEVNULL)
    return folder


def soon(look: Callable[[], T | None], within: float) -> T:
    """What `look` answers once that is true-ish."""
    deadline = time.monotonic() + within
    while not (answer := look()):
        assert time.monotonic() < deadline, f"not within {within} s"
        time.sleep(0.05)
    return answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def get(port: int, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
