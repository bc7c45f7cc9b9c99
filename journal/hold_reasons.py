"""Why a step is held, what a task waits for and what became of a decision, in words for a person."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from journal.models import Decision, JournalDoubt, WaitReason


@dataclass(frozen=True, slots=True)
class HoldReason:
    """A hold reason for people: a short label, its meaning, and advice."""

    label: str
    sentence: str
    advice: str


# The proof of all attempts of an intent together.
Sent = Literal["none", "not_sent", "no_effect", "unknown", "in_progress", "applied"]

_SENT: Final[dict[Sent, str]] = {
    "none": "Nothing was sent.",
    "not_sent": "Nothing was sent: each attempt ended before its first byte.",
    "no_effect": "It was sent and had no effect.",
    "unknown": "At least one attempt may have arrived.",
    "in_progress": "It was sent, and the provider has not finished it.",
    "applied": "It was sent, and an attempt took effect.",
}

_LOOK: Final = "Look at the provider: if the effect is there, mark it committed; if it is surely not there, "

HOLD_REASONS: Final[dict[str, HoldReason]] = {
    "unknown_outcome": HoldReason(
        "Outcome unknown",
        "The tool was started, no outcome is on record, and no check can say whether it acted.",
        _LOOK + "approve a replay.",
    ),
    "no_key_no_status": HoldReason(
        "Outcome unknown",
        "This tool has no idempotency key and no status check, so no check can say whether it acted.",
        _LOOK + "approve a replay. A replay of a request that did arrive makes a second effect.",
    ),
    "key_window_closed": HoldReason(
        "Key window closed",
        "The provider may have forgotten the key: the same request would count as a new one.",
        _LOOK + "approve a replay.",
    ),
    "key_window_unknown": HoldReason(
        "Key window unknown",
        "The profile does not say how long the provider keeps the key, so no machine replays.",
        _LOOK + "approve a replay. State retention in the profile to have this decided next time.",
    ),
    "clock_suspect": HoldReason(
        "Clock went backwards",
        "The wall clock stands before the newest time in the journal, so no window can be measured.",
        "Correct this machine's clock; once the time has caught up, the step is decided anew by itself.",
    ),
    "key_seen_before": HoldReason(
        "Key seen before",
        "The provider already knew this key when it was first used: the effect there may be somebody else's.",
        "Compare the provider's record with this payload; if it is ours, mark it committed, else abandon.",
    ),
    "rejected_after_unknown": HoldReason(
        "Rejected after an unknown outcome",
        "The last attempt was refused, which says nothing of those before it.",
        _LOOK + "mark it not applied or abandon; correct the cause of the refusal first if you replay.",
    ),
    "other_outcome": HoldReason(
        "Unrecognised answer",
        "The provider answered in a way for which no safe rule is written.",
        "Read the attempt's detail. " + _LOOK + "approve a replay.",
    ),
    "absent_not_proven": HoldReason(
        "Absence not proven",
        "The status query finds nothing, but it cannot prove that nothing is there.",
        _LOOK + "approve a replay.",
    ),
    "status_gave_nothing": HoldReason(
        "Status query gave no answer",
        "The provider was asked repeatedly and did not say whether the effect exists.",
        "Query the status again when the provider is well, or look there yourself.",
    ),
    "attempts_used": HoldReason(
        "Attempts used up",
        "As many dispatches as the profile allows were made without a clear answer.",
        _LOOK + "approve a replay.",
    ),
    "too_old": HoldReason(
        "Too old",
        "The first dispatch is older than the profile lets a machine go on.",
        _LOOK + "approve a replay.",
    ),
    "quarantined": HoldReason(
        "Quarantined",
        "The process died three times while this step ran.",
        "Find out why before you approve a replay, or abandon the step.",
    ),
    "diverged": HoldReason(
        "Code diverged",
        "The handler asks for another step than the journal holds at this index.",
        "There is nothing to approve: bring the handler's code back to what the journal holds, then start the agent.",
    ),
    "not_applied": HoldReason(
        "Not applied",
        "It was found that the effect did not happen. It is not sent again without a person.",
        "Approve a replay to send the same bytes again, or abandon the step.",
    ),
    "tls": HoldReason(
        "No trusted connection",
        "The provider's TLS handshake or certificate failed.",
        "Have the certificate or the address corrected, then approve a replay.",
    ),
    "missing_reference": HoldReason(
        "Credential missing",
        "The process that looked last has no value that fits for a credential the request names.",
        "Set or correct the environment variable where the agent is started, then start the agent again.",
    ),
    "reference_changed": HoldReason(
        "Address or content changed",
        "A variable in the request's address or body has another value than when it was last sent.",
        "Give it the earlier value and start the agent again. " + _LOOK + "approve a replay with the new one.",
    ),
    "tool_missing": HoldReason(
        "Tool missing",
        "The agent's code no longer has the tool of this step, or has it as another kind, without its key or with"
        " other parameters.",
        "Start the agent with code that has it, or abandon the step.",
    ),
    "restored_copy": HoldReason(
        "Restored or copied journal",
        "This journal was restored or copied, so steps that were done later may be missing from it.",
        "Put the newer file back if there is one. Else compare with the provider, then accept the journal: one decision"
        " on the journals page, or `python -m journal accept FILE`, frees all its steps.",
    ),
    "profile_missing": HoldReason(
        "Profile missing",
        "The provider profile stored with this step cannot be read.",
        _LOOK + "abandon the step and have the agent do it anew.",
    ),
}


def describe_hold(reason: str, *, sent: Sent | None = None, raised: str = "") -> HoldReason:
    """The words for a hold reason, true of what was sent; a reason of a newer version is shown as it is.

    `sent` sums up all attempts of the intent; None where the step changes nothing outside. `raised` is the type of what
    the tool raised last.
    """
    hold = HOLD_REASONS.get(reason) or HoldReason(
        reason.replace("_", " ").capitalize(), "This step waits for a person.", "Look at the provider, then decide."
    )
    if raised and reason == "unknown_outcome":
        hold = replace(hold, sentence=f"The tool raised {raised}, and it may have acted before.")
    return hold if sent is None else replace(hold, sentence=f"{hold.sentence} {_SENT[sent]}")


def describe_doubt(doubt: JournalDoubt | str) -> str:
    """Why the file at a journal's path is not the one its last writer left."""
    match doubt:
        case "older":
            return "It holds less than its last writer wrote: an older state was put back."
        case "copied":
            return "It is a copy of the file that its last writer wrote, or was moved from another file system."
        case "replaced":
            return "Another journal stood at this path before."
    return f"It is not the file that its last writer left ({doubt})."


def describe_wait(wait: WaitReason, *, of: str = "") -> str:
    """The reason a task waits; `of` names the branch whose step it is, as ` of t/b`."""
    step = f"step {wait.step_index}{of}"
    match wait.kind:
        case "held" | "diverged":
            label = describe_hold(wait.hold or wait.kind).label
            return f"held{'' if wait.step_index is None else f' at {step}'}: {label[:1].lower()}{label[1:]}"
        case "due":
            return f"{step} waits for its next attempt"
        case "unresolved":
            return f"{step} is pending"
        case "unset":
            return f"the environment has no fitting value for {wait.detail}"
        case "no_handler":
            return f"this agent has no handler {wait.detail!r}"
        case "broken_off":
            return f"{wait.detail} left the handler"
        case "interrupted":
            return "its process was stopped"
        case "unwritten":
            return "the journal could not be written"
    return wait.kind.replace("_", " ")


def describe_outcome(decision: Decision) -> str:
    """The outcome of an operator's decision, in words."""
    match decision.outcome:
        case "expired":
            return (
                "expired before the journal's writer took it in" if decision.came_late else "expired before it was sent"
            )
        case "superseded":
            return f"superseded by a later decision ({decision.outcome_detail})"
        case "refused":
            return f"refused: {decision.outcome_detail}"
    return decision.outcome
