"""An agent for tests: its journal, its tools, its ledger of effects, and child processes that are agents."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from journal import Journal, Reply, tool
from journal.models import WaitReason
from journal.runtime.serve import Server
from journal.store.transaction import Transaction

ROOT = Path(__file__).resolve().parents[2]
DAY = timedelta(hours=24)


@dataclass
class World:
    """What tools did: every call, in order; and what `status=` would find."""

    calls: list[tuple[str, Any]] = field(default_factory=list)
    by_key: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    fail: BaseException | None = None

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def tools(self) -> list[Any]:
        return [self.read, self.write, self.once, self.blind]

    def __post_init__(self) -> None:
        world = self

        @tool(effect="read_only")
        def read(number: int, note: str = "none") -> dict[str, Any]:
            world.calls.append(("read", number))
            return {"number": number, "note": note}

        @tool(effect="mutating", keyed=DAY)
        def write(call: Any, path: str, text: str = "") -> dict[str, Any]:
            world.calls.append(("write", path))
            if world.fail is not None:
                raise world.fail
            return {"path": path, "key": call.key, "attempt": call.attempt}

        def find(call: Any) -> Any:
            world.asked.append(call.key)
            return world.by_key.get(call.key)

        @tool(effect="mutating", status=find)
        def once(call: Any, name: str) -> dict[str, Any]:
            world.calls.append(("once", name))
            world.by_key[call.key] = {"name": name}
            if world.fail is not None:
                raise world.fail
            return {"name": name}

        @tool(effect="mutating")
        def blind(name: str) -> str:
            world.calls.append(("blind", name))
            if world.fail is not None:
                raise world.fail
            return name

        self.read, self.write, self.once, self.blind = read, write, once, blind

    def model(self, question: str) -> Reply:
        """A model that answers differently each time."""
        self.calls.append(("model", question))
        asked = self.names().count("model")
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        return Reply({"answer": f"{question} {asked}"}, usage=usage, model="m-1", response_id=f"r{asked}")


def opened(path: Path, world: World, **options: Any) -> Journal:
    """The agent's journal."""
    return Journal(path, agent="triage", tools=world.tools(), **options)


def resume(path: Path, world: World, tool_name: str = "blind") -> Any:
    """What the task's only step gives its handler when the agent starts again."""
    with opened(path, world) as journal:
        journal.recover()
        with journal.task("t") as task:
            return task.run(getattr(world, tool_name), "x")


def rows(path: Path, sql: str, *values: Any) -> list[dict[str, Any]]:
    """What a reader beside the writer sees."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql, values)]


def steps_of(path: Path, task_id: str) -> list[dict[str, Any]]:
    return rows(path, "SELECT * FROM agent_step_journal WHERE task_id = ? ORDER BY step_index", task_id)


def task_row(path: Path, task_id: str) -> dict[str, Any]:
    return rows(path, "SELECT * FROM agent_task WHERE task_id = ?", task_id)[0]


def wait_of(path: Path, task_id: str) -> WaitReason | None:
    """What the task waits for."""
    found = task_row(path, task_id)
    names = ("wait_kind", "wait_step_task", "wait_step_index", "wait_hold", "wait_detail")
    return None if found["wait_kind"] is None else WaitReason(*(found[name] for name in names))


def status(path: Path, task_id: str) -> str:
    found = rows(path, "SELECT status FROM agent_task WHERE task_id = ?", task_id)
    return str(found[0]["status"]) if found else "none"


def note(text: str) -> Callable[[Transaction], None]:
    """A change of the journal that is one row; `noted` finds it."""

    def change(tx: Transaction) -> None:
        tx.execute("INSERT INTO journal_meta (key, value) VALUES (?, 'x')", (text,))

    return change


def noted(path: Path) -> list[str]:
    return [row["key"] for row in rows(path, "SELECT key FROM journal_meta WHERE value = 'x'")]


def all_bytes(path: Path) -> bytes:
    """Everything on disk that belongs to the journal: file, log, lock, messages. Only for a closed journal's copy."""
    found = [file for file in path.parent.rglob("*") if file.is_file()]
    return b"\n".join(file.read_bytes() for file in found)


def python(code: str, *arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, unmeasured: what measures coverage imports modules of its own first."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        cwd=ROOT,
        env={**plain, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def start(code: str, *arguments: object, **environ: str) -> subprocess.Popen[str]:
    """Start code in a process of its own; its first line on standard output says that it is ready."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(journal: Journal, concurrency: int = 4) -> Iterator[Server]:
    """A server of the journal in a thread of this process, which ends with the block."""
    server = Server(journal.context, concurrency)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
        assert not thread.is_alive()


def soon(look: Callable[[], object]) -> None:
    """Wait until `look` is true; what it looks at changes by itself."""
    deadline = time.monotonic() + 20
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_fork(work: Callable[[], object], *, clean_exit: bool = False) -> str:
    """What `work` returned or raised in a forked child of this process, as text."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            text = f"{work()}"
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os.close(writer)
        if clean_exit:
            # As much of the interpreter's end as a child of pytest can have: the garbage is collected.
            import gc

            gc.collect()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text
