"""An agent's state, in one word and one sentence. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from agents.fleet.summaries import AgentLine
from agents.models import JournalFile


def agent_line(journal: JournalFile, counts: Mapping[str, int], *, held: int) -> AgentLine:
    """An agent's line from its journal's row and its unfinished tasks by state."""
    running, crashed, hung = counts.get("running", 0), counts.get("crashed", 0), counts.get("hung", 0)
    waiting, queued = counts.get("waiting", 0) + counts.get("held", 0), counts.get("queued", 0)
    alive, pid = journal.agent_is_alive, journal.writer_pid
    if crashed and not alive:
        state, sentence = "crashed", f"Crashed in the middle of {_tasks(crashed)}; nothing has restarted it yet."
    elif hung:
        state, sentence = "hung", f"Runs as pid {pid}, but {_tasks(hung)} made no progress for over 10 minutes."
    elif held:
        state = "waiting"
        sentence = f"{'1 intent' if held == 1 else f'{held:,} intents'} held: a person has to decide."
    elif alive and (running or crashed):
        state, sentence = "working", f"Works on {_tasks(running + crashed)} as pid {pid}."
    elif alive:
        state, sentence = "idle", f"Runs as pid {pid}" + (f"; {_tasks(waiting)} due later." if waiting else ".")
    else:
        left = running + waiting + queued
        state, sentence = "stopped", f"Not running; {_tasks(left)} unfinished." if left else "Not running; all done."
    return AgentLine(
        journal_id=journal.pk,
        agent=journal.agent,
        state=state,
        sentence=sentence,
        pid=pid if alive else None,
        running=running,
        crashed=crashed,
        hung=hung,
        waiting=waiting,
        held=held,
        changed_at=journal.read_at,
    )


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count:,} tasks"
