"""The states of agents, tasks and pending steps, and the sentences about them, made from facts.

Pure: each page, the index and the alerts derive a state here, so that all of them say the same. No sentence is chosen
by a reason code alone: who is alive, what was sent and whether a time is past decide too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

from journal.hold_reasons import HoldReason, Sent, describe_hold
from journal.models import Verdict

AgentState = Literal["crashed", "hung", "slow", "waiting", "working", "idle", "unread", "stopped"]
# Worst first: the order of lists of agents.
AGENT_STATES: tuple[AgentState, ...] = get_args(AgentState)
# A model call may take minutes. A task that moves nothing for longer than this wants a person's look.
STILL_AFTER = timedelta(minutes=10)


def derive_task_state(
    status: str, *, is_of_living_boot: bool, has_open_step: bool, changed_at: datetime | None, now: datetime
) -> str:
    """What a task is doing: its stored status, or what a running task's journal cannot say of itself.

    `crashed`: the process that ran the task is gone. `slow`: a step of it has run for over ten minutes. `hung`: its
    process lives, and for over ten minutes nothing moved though no step runs.
    """
    if status != "running":
        return status
    if not is_of_living_boot:
        return "crashed"
    if changed_at is None or now - changed_at <= STILL_AFTER:
        return "running"
    return "slow" if has_open_step else "hung"


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What is known of one agent. `pid` is that of its living process; `tasks` counts unfinished tasks by state.

    `held` counts the steps that wait for a person. `due_at` is the earliest time at which a step is tried again.
    """

    is_read: bool
    pid: int | None
    tasks: Mapping[str, int]
    held: int = 0
    due_at: datetime | None = None

    def count(self, *states: str) -> int:
        return sum(self.tasks.get(state, 0) for state in states)


def derive_agent_state(facts: AgentFacts) -> AgentState:
    """The one word for an agent. An agent whose journal was not read is never called idle or stopped."""
    if not facts.is_read:
        return "unread"
    if facts.pid is None and facts.count("running", "crashed", "hung", "slow"):
        return "crashed"
    if facts.count("hung"):
        return "hung"
    if facts.count("slow"):
        return "slow"
    if facts.held:
        return "waiting"
    if facts.pid is None:
        return "stopped"
    # A task of an earlier boot is taken up again by the living process.
    return "working" if facts.count("running", "crashed") else "idle"


def describe_agent(facts: AgentFacts, now: datetime) -> str:
    """What an agent is doing, in words: each sentence is one fact."""
    if not facts.is_read:
        return "Its journal is not read yet."
    said = [_describe_process(facts), _describe_due(facts.due_at, now, runs=facts.pid is not None)]
    if facts.held:
        said.append(f"{_count(facts.held, 'step')} {'needs' if facts.held == 1 else 'need'} your decision.")
    return " ".join(filter(None, said))


def _describe_process(facts: AgentFacts) -> str:
    if facts.pid is None:
        broken = facts.count("running", "crashed", "hung", "slow")
        if broken:
            return f"Crashed in the middle of {_count(broken, 'task')}; nothing has restarted it yet."
        left = facts.count("waiting", "held", "queued")
        return f"Not running; {_count(left, 'task')} unfinished." if left else "Not running; nothing is unfinished."
    hung, slow, running = facts.count("hung"), facts.count("slow"), facts.count("running", "crashed")
    said = [f"Works on {_count(running, 'task')} as pid {facts.pid}." if running else f"Runs as pid {facts.pid}."]
    if hung:
        said.append(f"{_count(hung, 'task')} made no progress for over 10 minutes, and no step of it runs.")
    if slow:
        said.append(f"{_count(slow, 'task')} {'has' if slow == 1 else 'have'} been in one call for over 10 minutes.")
    return " ".join(said)


def _describe_due(due_at: datetime | None, now: datetime, *, runs: bool) -> str:
    if due_at is None:
        return ""
    if due_at > now:
        later = f"A step is tried again in {describe_length(due_at - now)}"
        return f"{later}." if runs else f"{later} if the agent is started by then."
    past = describe_length(now - due_at)
    return "A step is due now." if runs else f"A step was due {past} ago: it waits for the agent to be started."


def sum_up_sent(verdicts: Iterable[Verdict | str | None]) -> Sent:
    """What all attempts of an intent prove together; a mark without outcome is an unknown outcome (law 1)."""
    found = {verdict or "unknown" for verdict in verdicts}
    order: tuple[Sent, ...] = ("applied", "unknown", "in_progress", "no_effect", "not_sent")
    return next((each for each in order if each in found), "unknown" if found else "none")


@dataclass(frozen=True, slots=True)
class PendingFacts:
    """What is known of one pending step. `raised` is the type of what its tool raised last.

    `agent_runs`: a process of the agent holds the journal. `is_in_flight`: an attempt of it has no outcome yet.
    `next_sentence` is what recovery does next.
    """

    agent: AgentState
    agent_runs: bool
    sent: Sent
    hold: str = ""
    due_at: datetime | None = None
    is_in_flight: bool = False
    is_approved: bool = False
    is_foreign: bool = False
    task_ended: str = ""  # the status of a task that is over
    changes: bool = True  # it may change something outside
    raised: str = ""  # "an exception" where the type is not at hand
    next_sentence: str = ""


def describe_pending_hold(facts: PendingFacts) -> HoldReason | None:
    """Why a step is held, true of what was sent; None for a step that is not held."""
    if not facts.hold:
        return None
    return describe_hold(facts.hold, sent=facts.sent if facts.changes else None, raised=facts.raised)


def describe_outlook(facts: PendingFacts, now: datetime) -> str:
    """What happens to a pending step if nobody does anything."""
    if facts.is_foreign:
        return "Nothing here settles it: only the agent that wrote this journal can."
    if facts.agent == "unread":
        return "Not known: its journal is not read yet."
    if facts.is_in_flight:
        return _IN_FLIGHT.get(facts.agent, "Its agent carries it out now.")
    if facts.task_ended:
        return f"Nothing: its task is {facts.task_ended}. Only a person can say what became of the step."
    if facts.hold and not facts.is_approved:
        return _describe_held_outlook(facts)
    if facts.due_at is not None:
        return _describe_due_outlook(facts, facts.due_at, now)
    then = facts.next_sentence or "Its agent looks at it again."
    if facts.agent_runs:
        return then
    return f"Nothing until its agent is started: it is not running. Then: {then[:1].lower()}{then[1:]}"


_IN_FLIGHT: Mapping[AgentState, str] = {
    "hung": "Its agent's process lives and has been in this step without an answer. Look at the process.",
    "slow": "Its agent has been in this call for over 10 minutes and waits for the answer.",
}


def _describe_held_outlook(facts: PendingFacts) -> str:
    if facts.hold == "clock_suspect":
        then = "once this machine's clock has caught up"
        return f"It is decided again {then}." if facts.agent_runs else f"It is decided again {then} and its agent runs."
    if facts.hold in ("missing_reference", "tool_missing"):
        return "Nothing until the agent is started with what is missing, or a person decides."
    if facts.hold == "diverged":
        return "Nothing until the agent is started with the code that the journal holds."
    return "Nothing: only a person can decide it."


def _describe_due_outlook(facts: PendingFacts, due_at: datetime, now: datetime) -> str:
    if due_at > now:
        later = f"It is tried again in {describe_length(due_at - now)}"
        return f"{later}." if facts.agent_runs else f"{later} if its agent runs by then; it is not running now."
    if facts.agent_runs:
        return "It is due now: its agent takes it next."
    return f"It was due {describe_length(now - due_at)} ago and waits for its agent, which is not running."


def describe_due(facts: PendingFacts, now: datetime) -> str:
    """When a step is tried again, in a few words."""
    if facts.due_at is None:
        return "waiting for its agent"
    if facts.due_at > now:
        return f"tried again in {describe_length(facts.due_at - now)}"
    return "due now" if facts.agent_runs else f"was due {describe_length(now - facts.due_at)} ago"


def describe_length(length: timedelta) -> str:
    """A length of time in words, without seconds past a minute."""
    seconds = max(int(length.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 2 * 86400:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds // 86400} days"


def _count(number: int, word: str) -> str:
    return f"1 {word}" if number == 1 else f"{number:,} {word}s"


def describe_fleet(
    agents: Mapping[AgentState, int], *, held: int, since: datetime | None, bad: int, known: int, now: datetime
) -> str:
    """What an operator has to know of all agents, counted by state: worst first, short when nothing is wrong."""
    if not known:
        return "No journal was found yet."
    waiting = f" (waiting {describe_length(now - since)})" if since else ""
    said = [
        _say(agents.get("crashed", 0), "agent", "crashed"),
        _say(agents.get("hung", 0), "agent", "is hung", "are hung"),
        _say(agents.get("slow", 0), "agent", "is slow in a call", "are slow in a call"),
        _say(held, "intent", f"needs your decision{waiting}", f"need your decision{waiting}"),
        _say(agents.get("working", 0), "agent", "is working", "are working"),
        _say(agents.get("idle", 0), "agent", "is idle", "are idle"),
        _say(agents.get("unread", 0), "journal", "is not read yet", "are not read yet"),
        _say(bad, "journal", "cannot be read"),
    ]
    return " ".join(filter(None, said)) or "No agent is running."


def _say(number: int, noun: str, one: str, many: str = "") -> str:
    return f"{_count(number, noun)} {one if number == 1 else many or one}." if number else ""
