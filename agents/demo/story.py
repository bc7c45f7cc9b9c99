"""The demo's story on the first page: one sentence per kill, read from journals and ledgers when the page is made.

No sentence is written in advance: its numbers were counted a moment ago.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from agents.demo import daemon, facts, repository
from agents.demo.facts import Kill
from agents.demo.ledger import Received, count_requests, read_effects, read_requests
from agents.demo.paths import AGENTS, Paths
from journal.errors import JournalUnreadable
from journal.models import Evidence, Step
from journal.reader import Reader


@dataclass(frozen=True, slots=True)
class Sentence:
    """One kill in words. `task_id` and `step_index` lead to the step, where there is one."""

    agent: str
    text: str
    journal_path: str
    task_id: str | None = None
    step_index: int | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One pull request at the forge, how often it was asked for under its key, and how many that key made."""

    number: int
    title: str
    key: str | None
    applied_at: datetime
    requests: int
    effects: int


def sentences(paths: Paths | None = None) -> list[Sentence]:
    """One sentence per kill, in the order of the demo; also for those that have not happened yet."""
    paths = paths or _paths()
    done = facts.read(paths.story)
    return [
        _told(paths, done[kind]) if kind in done else Sentence(agent, _COMING[kind], str(paths.journal(agent)))
        for kind, agent in facts.KINDS.items()
    ]


def ledger(paths: Paths | None = None, *, first: Collection[str] = (), limit: int = 50) -> list[LedgerLine]:
    """The forge's own book: the pull requests of the keys that come `first`, then the others; each the newest first."""
    paths = paths or _paths()
    came, effects = count_requests(paths.forge_ledger), read_effects(paths.forge_ledger)
    made = Counter(effect.key for effect in effects)
    effects.sort(key=lambda effect: (effect.key in first, effect.id), reverse=True)
    return [
        LedgerLine(
            number=effect.id,
            title=str(json.loads(effect.body).get("title", "")),
            key=effect.key,
            applied_at=effect.applied_at,
            requests=came.get(effect.key or "", 1),
            effects=made[effect.key] if effect.key else 1,
        )
        for effect in effects[:limit]
    ]


@dataclass(frozen=True, slots=True)
class Killed:
    """Whom the button killed, in the middle of what (None: it was idle), and whether more work comes by itself."""

    agent: str
    pid: int
    task_id: str | None
    more: bool

    @property
    def text(self) -> str:
        """What was killed and what will happen."""
        killed = f"Killed {self.agent} (pid {self.pid}) with SIGKILL"
        if self.task_id is not None:
            return (
                f"{killed} in the middle of {self.task_id}. Its supervisor starts it again, and it goes on from there."
            )
        comes = "its next report comes within a minute" if self.more else "make demo-reset gives it new work"
        return f"{killed} while it was idle, so nothing was in flight. Its supervisor starts it again; {comes}."


def note_visitor(paths: Paths | None = None) -> None:
    """Note that somebody sees the first page: the director waits for that."""
    with contextlib.suppress(OSError):  # before the director made its folder, and on a full disk
        (paths or _paths()).seen.touch()


def kill(agent: str, paths: Paths | None = None) -> Killed | None:
    """SIGKILL this agent's daemon; its supervisor starts it again. None where none runs.

    Raises KeyError for a name that is no agent of the demo.
    """
    paths = paths or _paths()
    pid = daemon.kill(paths.journal(agent))
    if pid is None:
        return None
    try:
        # Dead, so nothing moves any more; only a running task was interrupted.
        running = Reader(paths.journal(agent)).tasks(status="running").items
    except JournalUnreadable:
        running = ()
    return Killed(agent, pid, running[0].task_id if running else None, not paths.is_full())


def journal_path(agent: str) -> str:
    """Where this agent's journal lies. Raises KeyError for a name that is no agent of the demo."""
    return os.path.realpath(_paths().journal(agent))


def agents() -> tuple[str, ...]:
    """The names of the demo's agents."""
    return tuple(AGENTS)


def _paths() -> Paths:
    return Paths(settings.STEPKEEPER_DEMO_FOLDER)


_COMING = {
    facts.MID_REQUEST: "Not killed yet: soon, in mid-request, after the forge has applied it.",
    facts.AFTER_504: "Not killed yet: soon again, after the forge has applied a request and answered 504.",
    facts.UNRECORDED: "Not killed yet: soon, after a commit is made and before it is written down.",
    facts.UNANSWERABLE: "Not killed yet: soon, in a request to a webhook without idempotency keys and status check.",
}


def _told(paths: Paths, kill: Kill) -> Sentence:
    path = str(paths.journal(kill.agent))
    at = f"{timezone.localtime(kill.killed_at):%H:%M:%S}"
    waits = False
    try:
        reader = Reader(path)
        step = reader.step(kill.task_id, kill.step_index)
        if step is None:
            text = f"Killed {at}; the step is not in its journal."
        else:
            text = _TELLERS[kill.kind](paths, at, step, reader)
            waits = step.status == "pending" and step.hold_reason is not None
    except (JournalUnreadable, sqlite3.Error, OSError, subprocess.CalledProcessError) as error:
        text = f"Killed {at}; what came of it cannot be read now: {error}"
    return Sentence(kill.agent, text, path, kill.task_id, kill.step_index, waits)


def _mid_request(paths: Paths, at: str, step: Step, reader: Reader) -> str:
    came, has = _at_forge(paths, step)
    if step.status == "pending":
        return f"Killed {at} in mid-request; {_pending(step)}; the forge has {has}."
    return f"Killed {at} in mid-request; {_again(came)}; the forge has {has}."


def _after_504(paths: Paths, at: str, step: Step, reader: Reader) -> str:
    came, has = _at_forge(paths, step)
    gateway = any(attempt.http_status == 504 for attempt in reader.attempts(step.task_id, step.step_index))
    killed = f"Killed {at} after {'a 504' if gateway else 'a request'}"
    if step.status == "pending":
        return f"{killed}; {_pending(step)}; the forge has {has}."
    asked = _answered(reader.evidence(step.task_id, step.step_index), "the forge")
    sent = "nothing was sent again" if len(came) == 1 else _again(came)
    return f"{killed}; {asked}; {sent}; the forge has {has}."


def _unrecorded(paths: Paths, at: str, step: Step, reader: Reader) -> str:
    commits = repository.commits_of(paths.repository, step.idempotency_key or "")
    has = f"the repository has {_count(len(commits), 'commit')} with this key"
    if step.status == "pending":
        return f"Killed {at} between its commit and the note of it; {_pending(step)}; {has}."
    asked = _answered(reader.evidence(step.task_id, step.step_index), "git")
    return f"Killed {at} between its commit and the note of it; {asked}; {has}."


def _unanswerable(paths: Paths, at: str, step: Step, reader: Reader) -> str:
    body = _body(reader, step)
    delivered = [effect for effect in read_effects(paths.hook_ledger) if effect.body == body]
    has = f"the webhook has {_count(len(delivered), 'message')} of these bytes"
    if step.status == "pending" and step.hold_reason is not None:
        why = "the webhook cannot be asked, so nothing went out again: it waits for you"
        return f"Killed {at} in mid-request; {why}. Whoever looks finds that {has}."
    if step.status == "pending":
        return f"Killed {at} in mid-request; {_pending(step)}; {has}."
    applied = [item for item in reader.decisions(step.task_id, step.step_index) if item.outcome == "applied"]
    by = f"{applied[-1].actor} said “{applied[-1].kind.replace('_', ' ')}”" if applied else "nobody decided"
    return f"Killed {at} in mid-request; {by}; the step is {step.status}; {has}."


_TELLERS = {
    facts.MID_REQUEST: _mid_request,
    facts.AFTER_504: _after_504,
    facts.UNRECORDED: _unrecorded,
    facts.UNANSWERABLE: _unanswerable,
}


def _at_forge(paths: Paths, step: Step) -> tuple[list[Received], str]:
    key = step.idempotency_key or ""
    pulls = len(read_effects(paths.forge_ledger, key))
    return read_requests(paths.forge_ledger, key=key), _count(pulls, "pull request")


def _again(came: list[Received]) -> str:
    if len(came) < 2:
        return "nothing went out again"
    size = len(came[0].body)
    same = all(item.body == came[0].body for item in came)
    times = "" if len(came) == 2 else f" {len(came) - 1} times"
    what = f"the same {size:,} bytes" if same else "other bytes"
    return f"{what} went out again{times} under the same key"


def _answered(evidence: list[Evidence], whom: str) -> str:
    said = {
        "exists": "knew it",
        "absent": "did not know it",
        "in_progress": "was still at it",
        "unknown": "did not say",
    }
    if not evidence:
        return f"{whom} was not asked"
    return f"{whom} was asked with the original key and {said.get(evidence[-1].answer, 'did not say')}"


def _body(reader: Reader, step: Step) -> bytes:
    request = reader.request(step.task_id, step.step_index)
    return request.body if request is not None else b""


def _pending(step: Step) -> str:
    return "it is being recovered" if step.hold_reason is None else "the step is held for a person"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
