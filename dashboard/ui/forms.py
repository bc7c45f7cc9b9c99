"""The forms: filters in the URL, and a decision's reason."""

from __future__ import annotations

from typing import Final, get_args

from django import forms

from agents.decisions.check import BadDecision, check_output
from agents.fleet.queries import STATES
from agents.models.job import QUERY_STATUS
from journal.reader.payloads import Name

PAYLOADS: Final[tuple[Name, ...]] = get_args(Name)
_HIGHEST = 2**63 - 1
FIRST, LAST = "first", "last"  # the ends of a task's steps, in an address


_TOO_LONG = {"max_length": "At most %(limit_value)d characters are searched for; this has %(show_value)d."}


class TaskFilter(forms.Form):
    """The tasks page's filter. Other parameters of the URL and unknown statuses are ignored."""

    agent = forms.CharField(required=False, max_length=200, error_messages=_TOO_LONG)
    status = forms.ChoiceField(required=False, choices=[("", "any status"), *((word, word) for word in STATES)])
    text = forms.CharField(required=False, max_length=200, error_messages=_TOO_LONG, strip=True)
    after = forms.CharField(required=False, max_length=200)

    def value(self, name: str) -> str:
        """The accepted value of one field, else empty."""
        self.is_valid()
        return str(self.cleaned_data.get(name) or "")

    def refusal(self) -> str:
        """Why nothing is searched for, in one sentence; empty where everything is."""
        labels = {"text": "Task id or handler", "agent": "Agent"}
        return " ".join(f"{label}: {error}" for name, label in labels.items() for error in self.errors.get(name, ()))


def _make_reason_field(help_text: str, missing: str) -> forms.CharField:
    return forms.CharField(
        max_length=2000,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=help_text,
        error_messages={"required": missing},
    )


_SAY_WHY = "Say why: the next person reads it when this step is looked at again."


class ReasonForm(forms.Form):
    """Why: every decision says it."""

    # A seal of the longest task id, of characters that JSON writes as twelve each, has nearly 9,000.
    binding = forms.CharField(widget=forms.HiddenInput, max_length=20_000)
    reason = _make_reason_field("Stands in the journal and in the audit, with your name.", _SAY_WHY)


class QuestionForm(ReasonForm):
    """Why a status is asked for: the journal keeps the answer alone."""

    reason = _make_reason_field("Stands in the audit, with your name.", _SAY_WHY)


class MarkCommittedForm(ReasonForm):
    """Also the output the handler gets back, and where the effect can be found."""

    output = forms.CharField(
        label="Output (JSON)",
        max_length=1_000_000,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 5, "class": "code", "spellcheck": "false"}),
        help_text="What the handler gets back from this step, as if the tool had returned it.",
    )
    reference = forms.CharField(
        max_length=500,
        strip=True,
        help_text="Where the effect can be found: a URL, an order number, a commit.",
    )

    def clean_output(self) -> str:
        """Checked here too, so that a refusal names every field at once."""
        text = str(self.cleaned_data["output"])
        try:
            check_output(text)
        except BadDecision as error:
            raise forms.ValidationError(str(error)) from error
        return text


class AcknowledgeForm(forms.Form):
    """Why a journal that holds less than before is accepted, and the state the person was shown."""

    fell_from = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=_HIGHEST)
    doubt_boot = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=_HIGHEST, required=False)
    reason = _make_reason_field(
        "Who restored it, and why. Stands in the audit, with your name.",
        "Say why: effects since then may be repeated, and somebody will ask.",
    )


def choose_form(kind: str) -> type[ReasonForm]:
    """The form that asks what this kind of decision, or the question, needs."""
    return {"mark_committed": MarkCommittedForm, QUERY_STATUS: QuestionForm}.get(kind, ReasonForm)


def parse_cursor_index(text: str | None) -> int | None:
    """The step index after which a page starts; None for the newest steps, -1 for an invalid cursor."""
    if text == LAST:
        return None
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 19:
        return -1
    return min(int(text), _HIGHEST)


def parse_payload_name(text: str | None) -> str:
    """The payload the page was asked to show whole; empty for anything else."""
    return text if text in PAYLOADS else ""
