"""A decision checked and bound to the step it is about, before it becomes a message. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from journal import clock, codec
from journal.errors import InvalidArguments, StepkeeperError
from journal.models import DecisionKind

# The decisions that this version's writer applies to a step.
KINDS: Final[tuple[DecisionKind, ...]] = ("replay", "mark_committed", "mark_not_applied", "abandon")
CANCEL_TASK: Final[DecisionKind] = "cancel_task"
RETRY_TASK: Final[DecisionKind] = "retry_task"
# Decisions about a whole task.
TASK_KINDS: Final[tuple[DecisionKind, ...]] = (CANCEL_TASK, RETRY_TASK)
REASON_LENGTH = 2000
REFERENCE_LENGTH = 500
OUTPUT_LENGTH = 1_000_000


@dataclass(frozen=True, slots=True)
class StepBinding:
    """The facts that the person was shown. The writer refuses a decision about anything else."""

    key: str
    payload_sha256: str
    dispatches: int


class BadDecision(StepkeeperError):
    """A decision that cannot be asked for like this; `field` names the part of the form."""

    def __init__(self, message: str, *, field: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class OtherDecision(BadDecision):
    """Another decision about the same step is on its way, and the new one would contradict it."""


def parse_kind(text: str) -> DecisionKind:
    """A decision's kind from a URL. Raises BadDecision for any other word."""
    found = next((kind for kind in (*KINDS, *TASK_KINDS) if kind == text), None)
    if found is None:
        raise BadDecision(f"Decision {text!r}: not one of {', '.join(KINDS)}.", field="kind")
    return found


def check_reason(reason: str) -> None:
    """Refuse a decision or a question without a reason. Raises BadDecision."""
    if not reason.strip():
        raise BadDecision("A reason is needed.", field="reason", hint="Say why, for whoever reads the audit.")
    if len(reason) > REASON_LENGTH:
        raise BadDecision(f"The reason is over {REASON_LENGTH} characters.", field="reason")


def check_decision(kind: DecisionKind, *, reason: str, output_json: str, reference: str) -> str:
    """Check a person's input; returns the output in its stored form. Raises BadDecision naming the field."""
    if kind not in (*KINDS, *TASK_KINDS):
        raise BadDecision(f"Decision {kind!r}: not one of {', '.join((*KINDS, *TASK_KINDS))}.", field="kind")
    check_reason(reason)
    if kind != "mark_committed":
        return ""
    if not reference.strip():
        raise BadDecision(
            "Marking a step committed needs a reference.",
            field="reference",
            hint="Say where the effect can be seen: a number, an address.",
        )
    if len(reference) > REFERENCE_LENGTH:
        raise BadDecision(f"The reference is over {REFERENCE_LENGTH} characters.", field="reference")
    return check_output(output_json)


def decision_message(
    kind: DecisionKind,
    *,
    message_id: str,
    created_at: datetime,
    expires_at: datetime,
    task_id: str,
    step_index: int | None,
    binding: StepBinding,
    actor: str,
    reason: str,
    output_json: str,
    reference: str,
) -> dict[str, object]:
    """The inbox message of a decision. The same arguments give the same message, so posting twice is posting once."""
    return {
        "kind": "decision",
        "message_id": message_id,
        "created_at": clock.text(created_at),
        "expires_at": clock.text(expires_at),
        "decision": kind,
        "task_id": task_id,
        "step_index": step_index,
        "key": binding.key,
        "payload_sha256": binding.payload_sha256,
        "dispatches": binding.dispatches,
        "actor": actor,
        "reason": reason,
        "output": codec.loads(output_json) if kind == "mark_committed" else None,
        "reference": reference or None,
    }


def check_output(text: str) -> str:
    """The output a person typed, in its stored form. Raises BadDecision."""
    if len(text) > OUTPUT_LENGTH:
        raise BadDecision(f"The output is over {OUTPUT_LENGTH} characters.", field="output")
    try:
        return codec.dumps(codec.typed(text, what="output"), what="output")
    except InvalidArguments as error:
        raise BadDecision(error.message, field="output") from None
    except ValueError as error:
        raise BadDecision(
            f"This is not JSON: {error}.",
            field="output",
            hint='Give what the tool would have returned, for example {"number": 7} or "done"; null if nothing.',
        ) from None
