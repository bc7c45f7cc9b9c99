"""What an operator may say about a pending step: the verbs, in words that name their effect."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from agents.lines import IntentLine
from journal.models import DecisionKind, Step


@dataclass(frozen=True, slots=True)
class Verb:
    """A decision's texts: the button, what it does, and what happens if the person is wrong."""

    kind: DecisionKind
    button: str
    does: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A verb offered for one step."""

    verb: Verb
    href: str


_AFTER_A_DISPATCH = ("replay", "mark_committed", "mark_not_applied", "abandon")

VERBS: dict[str, Verb] = {
    verb.kind: verb
    for verb in (
        Verb(
            "replay",
            "Approve replay",
            "Sends the stored bytes again, under the stored key. Where the provider can be asked, it is asked first: "
            "if the effect exists, it is adopted and nothing is sent.",
            "If the first dispatch did arrive and the provider does not recognise the key any more, "
            "the effect happens a second time.",
        ),
        Verb(
            "mark_committed",
            "Mark committed",
            "Ends the step as done with the output you give; nothing is sent. The handler gets that output.",
            "If the effect never happened, it never will: the task goes on as if it had.",
        ),
        Verb(
            "mark_not_applied",
            "Mark not applied",
            "Settles every unknown attempt as “no effect”; nothing is sent. The step stays pending until a replay is "
            "approved separately, under the same key.",
            "If one of the attempts did arrive, a later replay may make a second effect.",
        ),
        Verb(
            "abandon",
            "Abandon",
            "Ends the step without an output; nothing is sent. The handler sees StepAbandoned with your reason.",
            "If the effect did happen, the journal will not know of it.",
        ),
        Verb(
            "approve",
            "Approve",
            "Lets the agent send this for the first time, exactly as it is stored.",
            "The effect happens once, and nobody is asked again.",
        ),
        Verb(
            "reject",
            "Reject",
            "Ends the step before anything was sent. The handler sees StepAbandoned with your reason.",
            "The task goes on without this effect.",
        ),
    )
}


def choices(journal_id: int, step: Step, state: str) -> tuple[Choice, ...]:
    """The decisions a pending step offers now; none while an attempt of the running boot is in flight."""
    if step.effect != "mutating" or state == "running":
        return ()
    kinds = ("approve", "reject") if step.hold_reason == "approval_required" else _AFTER_A_DISPATCH
    return tuple(
        Choice(VERBS[kind], reverse("decide", args=[journal_id, step.task_id, step.step_index, kind]))
        for kind in kinds
        if step.replayable
    )


def nothing_to_decide(step: Step, dialect: str) -> str:
    """Why nobody can decide this step, as a sentence; empty where somebody can."""
    if dialect != "stepkeeper":
        return "The journal was made by others: nothing that writes it takes decisions."
    if step.status != "pending":
        return f"The step is not pending: it is {step.status}."
    if step.effect != "mutating":
        return f"A {step.effect} step changes nothing outside: there is nothing to decide."
    return ""


def choices_for(line: IntentLine) -> tuple[Choice, ...]:
    """The decisions the fleet index offers for one intent; the step's own page looks again."""
    if line.effect != "mutating":  # a foreign journal names no effect: nothing that writes it takes decisions
        return ()
    kinds = ("approve", "reject") if line.hold_reason == "approval_required" else _AFTER_A_DISPATCH
    place = [line.journal_id, line.task_id, line.step_index]
    return tuple(Choice(VERBS[kind], reverse("decide", args=[*place, kind])) for kind in kinds if line.key)
