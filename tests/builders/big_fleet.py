"""A fleet as large as a busy team's: 63 journals, 4,000 tasks, one of 3,000 steps, every state and odd names.

One agent runs each kind of task for real, and is killed in two of them. What it wrote is then copied into 63 journals:
each gets rounds of the same tasks with ids, keys, times and boots of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from journal import Journal, Reply, Request, clock, http_tool, tool
from journal.errors import Diverged, StepFailed, StepHeld, StepWaiting
from journal.http.frozen_request import digest_request
from journal.ids import step_key
from tests.journal.operator import decide
from tests.journal.raw_server import RawServer, json_answer, serving

JOURNALS, TASKS, LONG_STEPS = 63, 4000, 3000
ROUNDS = 5  # each begins where an agent was started anew
LONG = "archive-2026-q4"
ODD_TASKS = (
    '<img src=x onerror="alert(1)">/{{ 7*7 }}',
    "תיק-לקוח-4711/\u202eabc\u202c",
    "customer/" + "4711-a-very-long-id-without-any-place-to-break-it-" * 4,
    "  leading, trailing and  two  blanks ",
    "line one\nline two",
    "📦 parcel · größe XL",
)
AGENTS = ("triage", "billing-eu-1", "billing-us-1", "onboarding", "refunds", "crm-sync", "invoice-reader")
ODD_AGENTS = ("<b>bold</b> agent", "סוכן-תמיכה", "an-agent-whose-name-was-made-by-a-deployment-tool-" + "7f3a9c" * 12)
MODELS = ("gpt-5", "claude-sonnet-4-5", "gpt-5-mini", "gemini-2.5-pro", "a-model-nobody-priced")
# The kinds whose task needs a person, and those that are there only in some rounds of some journals.
RARE = ("held", "overdue", "raised", "failed", "retrying", "killed", "running", "fan", "replayed", "asked", "diverged")
_PROVIDERS = {
    "payments": {
        "duplicate_cost": "money",
        "key": {"placement": "header", "name": "Idempotency-Key"},
        "retention": {"for": "24h", "kind": "at_least"},
    }
}
_TABLES = (
    *("agent_step_journal", "agent_task", "agent_task_run", "agent_request", "agent_step_attempt", "agent_evidence"),
    *("agent_model_call", "agent_decision"),
)
_SPAN = timedelta(hours=37)  # from one round of a journal to the next


@dataclass(frozen=True, slots=True)
class BigFleet:
    """Where the journals lie, which of them an agent writes now, and the tasks that tests look at."""

    folder: Path
    living: tuple[Path, ...]

    @contextlib.contextmanager
    def alive(self) -> Iterator[None]:
        """Real processes hold the journals of the agents that live."""
        from tests.builders.fleet import held  # needs Django, which the agent's own process has not

        with ExitStack() as stack:
            for path in self.living:
                stack.enter_context(held(path))
            yield


def a_big_fleet(
    folder: Path, *, journals: int = JOURNALS, tasks: int = TASKS, long_steps: int = LONG_STEPS
) -> BigFleet:
    """Make the fleet's journals in this folder, which is empty; some twenty seconds for the whole fleet."""
    seed = folder / "seed"
    seed.mkdir(parents=True)
    _run_every_kind(seed / "kinds.db")
    _run_long(folder / "archivist.db", long_steps)
    dice = random.Random(7)
    names = [*AGENTS, *ODD_AGENTS, *(f"worker-{number:02d}" for number in range(journals))][: journals - 1]
    rows = _Rows.of(seed / "kinds.db")
    living = []
    for number, agent in enumerate(names):
        path = folder / f"{number:02d}.db"
        lives = number % 4 == 1
        living += [path] if lives else []
        more = -(-tasks // (journals * ROUNDS))
        _copy(rows, path, agent=agent, number=number, lives=lives, more=more, dice=dice)
    shutil.rmtree(seed)
    return BigFleet(folder, tuple(living))


# --- each kind of task, run for real ---


@tool(effect="read_only")
def read_issue(number: int) -> dict[str, Any]:
    return {"number": number, "title": "The export stops at row 65,536", "labels": ["bug", "export"]}


def choose_reply(title: str) -> Reply:
    usage = {
        "prompt_tokens": 1840, "completion_tokens": 220,
        "prompt_tokens_details": {"cached_tokens": 1024}, "completion_tokens_details": {"reasoning_tokens": 128},
    }  # fmt: skip
    return Reply({"text": f"About {title}"}, usage=usage, model="gpt-5", response_id=str(uuid.uuid4()))


@tool(effect="mutating")
def write_file(path: str, text: str) -> dict[str, Any]:
    return {"path": path, "bytes": len(text)}


@tool(effect="read_only")
def count_stock(article: str) -> int:
    raise LookupError(f"No article is called {article}.")


@tool(effect="mutating")
def transfer_stock(article: str, pieces: int) -> dict[str, Any]:
    raise ValueError(f"Only 3 of {pieces} pieces of {article} are in the warehouse.")


@tool(effect="mutating")
def book_courier(text: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _asked(call: Any) -> dict[str, Any]:
    return {"message": 7}


@tool(effect="mutating", status=_asked)
def send_mail(to: str) -> dict[str, Any]:
    raise TimeoutError("The mail server did not answer within 30 s.")


def _make_tools(url: str) -> list[Any]:
    @http_tool(effect="mutating")
    def post_message(channel: str, text: str) -> Request:
        return Request("POST", f"{url}/lost", json={"channel": channel, "text": text})

    @http_tool(effect="mutating", provider="payments")
    def pay_invoice(invoice: str, cents: int) -> Request:
        return Request("POST", f"{url}/busy", json={"invoice": invoice, "cents": cents})

    @http_tool(effect="mutating")
    def open_pull_request(title: str, branch: str) -> Request:
        return Request("POST", f"{url}/pulls", json={"title": title, "head": branch})

    @http_tool(effect="mutating")
    def call_hook(text: str) -> Request:
        return Request("POST", f"{url}/once", json={"text": text})

    plain = [read_issue, write_file, count_stock, transfer_stock, book_courier, send_mail]
    return [*plain, post_message, pay_invoice, open_pull_request, call_hook]


def _provider() -> contextlib.AbstractContextManager[RawServer]:
    """`/pulls` answers, `/busy` asks for patience, `/lost` takes and says nothing, `/once` does so once a text."""
    seen: set[bytes] = set()

    def script(connection: socket.socket, request: bytes) -> None:
        target, body = request.split(b" ", 2)[1], request.rpartition(b"\r\n\r\n")[2]
        if target == b"/busy":
            json_answer(429, b'{"error": "too many requests"}', Retry_After="840")(connection, request)
        elif target == b"/pulls" or body in seen:
            json_answer(201, b'{"number": 417, "state": "open"}')(connection, request)
        seen.add(body)

    return serving(script)


def _run_every_kind(path: Path) -> None:
    """Run one task of each kind; the agent's process is killed twice and started anew."""
    with _provider() as server:
        command = [sys.executable, "-m", "tests.builders.big_fleet", str(path), server.url]
        for kind in ("killed", "running"):
            assert subprocess.run([*command, kind], check=False).returncode == -signal.SIGKILL
        tools = {one.name: one for one in _make_tools(server.url)}
        with _opened(path, tools.values()) as journal:
            _run_kinds(journal, tools)
        decide(path, "replay", "replayed", step_index=2, **_binding(path, "replayed", 2))
        with _opened(path, tools.values()) as journal:
            journal.recover()
            with journal.task("replayed") as task:
                task.run(tools["call_hook"], text=_begin(task))
            with contextlib.suppress(Diverged), journal.task("diverged") as task:
                task.run(read_issue, number=18)


def _opened(path: Path, tools: Iterable[Any]) -> Journal:
    handlers = {"triage": lambda task, number: number}
    return Journal(path, agent="seed", tools=tools, handlers=handlers, providers=_PROVIDERS, max_wait=0)


def _begin(task: Any) -> str:
    issue = task.run(read_issue, number=17)
    return str(task.ask(choose_reply, issue["title"]).content["text"])


def _run_kinds(journal: Journal, tools: dict[str, Any]) -> None:
    waits = contextlib.suppress(StepHeld, StepWaiting)
    with journal.task("done") as task:
        text = _begin(task)
        task.run(tools["open_pull_request"], title=text, branch="fix-export")
        task.run(read_issue, number=17)
    with journal.task("filed") as task:
        task.run(tools["write_file"], path="notes/17.md", text="# 17\n" + "A line of it.\n" * 40)
    with waits, journal.task("held") as task:
        task.run(tools["post_message"], channel="#releases", text=_begin(task))
    with waits, journal.task("overdue") as task:
        task.run(tools["post_message"], channel="#billing", text="Invoice 2026-4711 is overdue.")
    with contextlib.suppress(StepFailed), journal.task("failed") as task:
        _begin(task)
        task.run(count_stock, article="A-17")
    with waits, journal.task("raised") as task:
        _begin(task)
        task.run(transfer_stock, article="A-17", pieces=12)
    with waits, journal.task("retrying") as task:
        task.run(tools["pay_invoice"], invoice="2026-4711", cents=129_900)
    with waits, journal.task("fan") as task:
        _begin(task)
        for name in ("berlin", "lisbon", "oslo", "porto", "turin"):
            with waits, task.branch(name) as branch:
                branch.run(read_issue, number=len(name))
                branch.run(tools["post_message" if name == "oslo" else "open_pull_request"],
                           **({"channel": "#oslo", "text": "Ready?"} if name == "oslo" else
                              {"title": f"Open {name}", "branch": name}))  # fmt: skip
    with waits, journal.task("replayed") as task:
        task.run(tools["call_hook"], text=_begin(task))
    with waits, contextlib.suppress(StepFailed), journal.task("asked") as task:
        _begin(task)
        task.run(send_mail, to="team@example.org")
    with contextlib.suppress(KeyboardInterrupt), journal.task("diverged") as task:
        task.run(read_issue, number=17)
        raise KeyboardInterrupt
    journal.submit("triage", task_id="queued", number=17)


def _run_long(path: Path, steps: int) -> None:
    """One task of many steps, broken off in the middle and run again, its last step unfinished."""
    tools = [read_issue, write_file]
    with _opened(path, tools) as journal, contextlib.suppress(KeyboardInterrupt), journal.task(LONG) as task:
        for number in range(steps // 2):
            task.run(read_issue, number=number)
        raise KeyboardInterrupt
    with _opened(path, tools) as journal, contextlib.suppress(KeyboardInterrupt), journal.task(LONG) as task:
        for number in range(steps - 1):
            if number % 50 == 49 and number >= steps // 2:
                task.run(write_file, path=f"archive/{number}.json", text="{}")
            else:
                task.run(read_issue, number=number)
        raise KeyboardInterrupt
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE journal_meta SET value = 'archivist' WHERE key = 'agent'")
        connection.execute("UPDATE agent_task SET agent = 'archivist'")


def _binding(path: Path, task_id: str, index: int) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT idempotency_key, payload_sha256 FROM agent_step_journal WHERE task_id = ? AND step_index = ?",
            (task_id, index),
        ).fetchone()
    return {"key": found[0], "payload_sha256": found[1]}


# --- the copies ---


@dataclass(frozen=True, slots=True)
class _Rows:
    """Everything one journal holds, by table."""

    by_table: dict[str, list[dict[str, Any]]]
    boots: list[dict[str, Any]]
    born: datetime

    @classmethod
    def of(cls, path: Path) -> _Rows:
        with closing(sqlite3.connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            tables = {table: [dict(row) for row in connection.execute(f"SELECT * FROM {table}")] for table in _TABLES}
            boots = [dict(row) for row in connection.execute("SELECT * FROM agent_boot ORDER BY boot")]
        return cls(tables, boots, clock.parse(boots[0]["started_at"]))


def _copy(rows: _Rows, path: Path, *, agent: str, number: int, lives: bool, more: int, dice: random.Random) -> None:
    """One journal: rounds of the seed's tasks, the rare kinds in a few of them, plain ones as often as needed."""
    with Journal(path, agent=agent):
        pass  # the tables, an id of its own
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("DELETE FROM agent_boot")
        writing = _Writing(connection, rows, agent, MODELS[number % len(MODELS)])
        for turn in range(ROUNDS):
            newest = turn == ROUNDS - 1
            start = (
                clock.wall()
                - _SPAN * (ROUNDS - 1 - turn)
                - timedelta(minutes=dice.uniform(2, 9) if newest and lives else dice.uniform(4, 700))
            )
            writing.boots(turn, start, last_lives=newest and lives)
            kinds = ["done", "filed"] + [kind for kind in RARE if _is_there(kind, number, newest=newest, lives=lives)]
            for kind in [*kinds, *(["queued"] if newest and lives else [])]:
                writing.task(kind, f"{_WORDS[kind]}-{number:02d}{turn}", turn, start)
            for count in range(max(1, more - len(kinds))):
                later = start + timedelta(seconds=dice.uniform(5, 3600)) if newest else start + _SPAN * dice.random()
                task_id = f"issue-{number:02d}{turn}{count:02d}"
                if count == 0 and newest and number < len(ODD_TASKS):
                    task_id = ODD_TASKS[number]
                writing.task(dice.choice(("done", "done", "filed")), task_id, turn, min(later, clock.wall()))
        connection.execute("COMMIT")


_WORDS = {
    "done": "issue",
    "filed": "note",
    "held": "release-news",
    "overdue": "dunning",
    "raised": "stock-transfer",
    "failed": "stock-count",
    "retrying": "payment",
    "killed": "killed-while-sending",
    "running": "import",
    "fan": "all-branches",
    "replayed": "hook-approved",
    "asked": "mail",
    "diverged": "changed-code",
    "queued": "next-issue",
}


def _is_there(kind: str, number: int, *, newest: bool, lives: bool) -> bool:
    if kind == "running":
        return newest and lives and number % 8 == 1
    if kind in ("killed", "held", "overdue", "raised", "retrying", "fan", "diverged"):
        return newest and number % len(RARE) == RARE.index(kind)
    return number % 3 == RARE.index(kind) % 3


class _Writing:
    """Copies of the seed's rows, each with the ids, keys, boots, revisions and times of where it goes."""

    def __init__(self, connection: sqlite3.Connection, rows: _Rows, agent: str, model: str) -> None:
        self._connection, self._rows, self._agent, self._model = connection, rows, agent, model
        self._revisions = 0

    def boots(self, turn: int, start: datetime, *, last_lives: bool) -> None:
        for row in self._rows.boots:
            cells = self._cells(row, turn, start, {})
            if last_lives and row is self._rows.boots[-1]:
                cells |= {"ended_at": None, "ended": None}
            self._insert("agent_boot", cells)

    def task(self, kind: str, task_id: str, turn: int, start: datetime) -> None:
        """One task with its branches. A running one belongs to the boot that lives."""
        names = {row["task_id"]: task_id + row["task_id"][len(kind) :] for row in self._rows.by_table["agent_task"]
                 if row["task_id"] == kind or row["task_id"].startswith(f"{kind}/")}  # fmt: skip
        keys, hashes = self._keys(names)
        for table, rows in self._rows.by_table.items():
            for row in rows:
                if row["task_id"] not in names:
                    continue
                cells = self._cells(row, turn, start, names)
                if kind == "running" and "boot" in cells:
                    cells["boot"] = (turn + 1) * len(self._rows.boots)
                    cells |= {"hold_reason": None} if "hold_reason" in cells else {}
                if table == "agent_request":
                    cells |= self._request(row, keys)
                for name, texts in (("idempotency_key", keys), ("key", keys), ("payload_sha256", hashes)):
                    if name in cells:
                        cells[name] = texts.get(cells[name], cells[name])
                self._insert(table, cells)

    def _cells(self, row: dict[str, Any], turn: int, start: datetime, names: dict[str, str]) -> dict[str, Any]:
        cells = dict(row)
        cells.pop("id", None)
        for name in ("boot", "committed_boot"):
            if cells.get(name) is not None:
                cells[name] += turn * len(self._rows.boots)
        for name in ("task_id", "parent_id", "wait_step_task"):
            if cells.get(name) is not None:
                cells[name] = names[cells[name]]
        for name in ("message_id", "decision_id"):
            if cells.get(name) is not None:
                cells[name] = f"{cells[name]}-{self._agent}-{turn}-{names.get(row['task_id'], '')}"
        for name in cells:
            if name.endswith("_at") and cells[name] is not None:
                cells[name] = clock.text(clock.parse(cells[name]) - self._rows.born + start)
        if "agent" in cells:
            cells["agent"] = self._agent
        if cells.get("model") is not None:
            cells["model"] = cells["request_model"] = self._model
        if "revision" in cells:
            self._revisions += 1
            cells["revision"] = ((cells.get("boot") or (turn + 1) * len(self._rows.boots)) << 32) + self._revisions
        return cells

    def _keys(self, names: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """The old keys and hashes of frozen requests, each with the one that stands for it."""
        keys = {row["idempotency_key"]: step_key(names[row["task_id"]], row["step_index"], row["arguments_json"])
                for row in self._rows.by_table["agent_step_journal"] if row["task_id"] in names}  # fmt: skip
        requests = [row for row in self._rows.by_table["agent_request"] if row["task_id"] in names]
        return keys, {row["sha256"]: self._request(row, keys)["sha256"] for row in requests}

    def _request(self, row: dict[str, Any], keys: dict[str, str]) -> dict[str, Any]:
        headers = [(name, keys.get(text, text)) for name, text in json.loads(row["headers_json"])]
        refs = tuple(tuple(ref) for ref in json.loads(row["refs_json"]))
        digest = digest_request(row["method"], row["url"], headers, row["body"], refs)
        return {"headers_json": json.dumps(headers), "sha256": digest}

    def _insert(self, table: str, cells: dict[str, Any]) -> None:
        signs = ", ".join("?" for _ in cells)
        self._connection.execute(f"INSERT INTO {table} ({', '.join(cells)}) VALUES ({signs})", tuple(cells.values()))


if __name__ == "__main__":
    _, journal_path, provider_url, what = sys.argv
    with _opened(Path(journal_path), _make_tools(provider_url)) as opened, opened.task(what) as opened_task:
        _begin(opened_task)
        opened_task.run(book_courier, text="sent, and no answer recorded")
