"""The texts of empty pages: their content later, and the command that fills them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.access import login_link

_OWN_JOURNALS = "STEPKEEPER_JOURNALS='/path/to/*.db' make up"
_LOGIN_LINK = "login-link"  # stands for the whole command, which depends on where this process was started


@dataclass(frozen=True, slots=True)
class EmptyState:
    """A title, one or two sentences, and a command."""

    title: str
    text: str
    command: str


EMPTY_STATES: dict[str, EmptyState] = {
    "overview": EmptyState(
        "No agent yet",
        "Who works, who crashed and what waits for you appears here once a journal is found. "
        "Run a first agent, then name its journal:",
        f".venv/bin/python docs/tutorial/first_agent.py\n{_OWN_JOURNALS}",
    ),
    "tasks": EmptyState(
        "No task yet",
        "Every task of every agent appears here, newest change first. Give an agent its first one:",
        "python -m journal submit triage.db triage --task-id triage-1 --input '{\"number\": 1}'",
    ),
    "steps": EmptyState(
        "No step yet",
        "Each tool call and model call of this task appears here as its agent makes it. Start the agent:",
        "python -m journal supervise --journal FILE -- python AGENT.py",
    ),
    "pending": EmptyState(
        "The queue is empty",
        "A mutating step stands here from the moment its intent is on disk until its outcome is known; those no "
        "machine may decide wait for you. Look into one journal from the shell:",
        "python -m journal show FILE",
    ),
    "spend": EmptyState(
        "No model call in this range",
        "Tokens and money of every model call stand here, by day, agent, model and tool; beside them what a resume "
        "did not pay twice. They come with the first call of an agent whose journal is found:",
        _OWN_JOURNALS,
    ),
    "disk": EmptyState(
        "No sample yet",
        "Each volume that holds a journal appears here with what its journals take, how they grow and when it will "
        "be full. The watch process takes a sample every 30 seconds:",
        _OWN_JOURNALS,
    ),
    "alerts": EmptyState(
        "Nothing is wrong",
        "A volume that fills up, a log that grows, a journal that cannot be read, an intent that waits too long, a "
        "worker that does not work: each opens one alert here. The thresholds are settings:",
        "STEPKEEPER_DISK_WARN=80 STEPKEEPER_INTENT_ALERT=600 make up",
    ),
    "audit": EmptyState(
        "Nothing on record yet",
        "Every decision, every refusal and every downloaded payload is one line here, with the name of the person. "
        "Sign in with another role to see a refusal:",
        f"{_LOGIN_LINK} --user viewer --role viewer",
    ),
    "journals": EmptyState(
        "No journal found",
        "Every SQLite file that the patterns in STEPKEEPER_JOURNALS give appears here within 10 seconds, readable or "
        "not. Name the files and start:",
        _OWN_JOURNALS,
    ),
}


def find_empty_state(page: str) -> EmptyState:
    """The text of this page while it is empty."""
    state = EMPTY_STATES[page]
    if not state.command.startswith(_LOGIN_LINK):
        return state
    return replace(state, command=state.command.replace(_LOGIN_LINK, login_link.link_command(), 1))
