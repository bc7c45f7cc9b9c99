"""The views of decisions and status checks. GET shows a form and changes nothing; POST gives the worker a job."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from agents.access import audit
from agents.decisions.allowed import offer_for_step
from agents.decisions.check import BadDecision, OtherDecision, StepBinding
from agents.index.intents import count_dispatches
from agents.jobs import queue
from agents.models import Job
from agents.models.job import DECISION, QUERY_STATUS
from dashboard.choices import VERBS, explain_no_decision, explain_no_query
from dashboard.decisions.binding import (
    EXPIRED,
    EXPIRED_QUESTION,
    Binding,
    BindingError,
    find_changes,
    seal_binding,
    unseal_binding,
)
from dashboard.decisions.confirmation import bind_decision, build_confirmation_page
from dashboard.journal_page import Opened, with_journal
from dashboard.steps.payload import audit_shown_payloads
from dashboard.steps.step import load_step_or_404
from dashboard.ui.access import can_decide, refuse, require_role
from dashboard.ui.forms import ReasonForm, choose_form
from journal.models import Step
from journal.reader.snapshot import StepSnapshot

_OTHER = "The form was made for another step, {0} or person. Open the {0} from the step's own page."
_CHANGED = "this step has changed since you looked"
_NOT_THIS = "the form was made for something else"
_NOT_OURS = "the form cannot be used"
_TAKEN = "it was decided already"
_NOT_NOW = "the step does not allow it"
_NOBODY = "nobody can be asked about the step"
_NOT_READ = "its journal is not read now"


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """Nothing was decided or asked, and why; `cause` stands in the heading."""

    journal_id: int
    task_id: str
    step_index: int
    changes: tuple[str, ...]
    cause: str
    is_question: bool


@require_http_methods(["GET", "HEAD", "POST"])
@require_role("viewer")
@with_journal
def show_decision(request: HttpRequest, opened: Opened, task_id: str, step_index: int, kind: str) -> HttpResponseBase:
    """The confirmation page of one kind of decision, and its POST."""
    if kind not in VERBS:
        raise Http404("No such decision.")
    return _show_page(request, opened, task_id, step_index, kind)


@require_http_methods(["GET", "HEAD", "POST"])
@require_role("viewer")
@with_journal
def show_question(request: HttpRequest, opened: Opened, task_id: str, step_index: int) -> HttpResponseBase:
    """What would be asked about a pending step's status, and the POST that asks it."""
    return _show_page(request, opened, task_id, step_index, QUERY_STATUS)


def _show_page(request: HttpRequest, opened: Opened, task_id: str, step_index: int, kind: str) -> HttpResponseBase:
    opened, found, step = load_step_or_404(opened, task_id, step_index)
    if not can_decide(request.user):
        return _refuse_viewer(request, opened, step, f"request {kind}")
    assert isinstance(request.user, User)
    if request.method == "POST":
        return _decide(request, request.user, opened, found, step, kind)
    if why_not := _explain_refusal(opened, found, step, kind):
        return _show_changed(request, opened, step, kind, (why_not,), cause=_find_cause(opened, step, kind))
    bound = bind_decision(opened, found, step, kind, user_id=request.user.pk)
    form = choose_form(kind)(initial={"binding": seal_binding(bound)})
    page = build_confirmation_page(opened, found, step, kind, form=form, bound=bound)
    audit_shown_payloads(request.user, opened, step, page.arguments, page.request)
    return render(request, "decisions/confirm.html", {"page": page})


def _explain_refusal(opened: Opened, found: StepSnapshot, step: Step, kind: str) -> str:
    offer = offer_for_step(step, found)
    if kind == QUERY_STATUS:
        return opened.file.undecidable or explain_no_query(step, opened.file.dialect, offer)
    return opened.file.undecidable or explain_no_decision(step, opened.file.dialect, offer, kind)


def _decide(
    request: HttpRequest, user: User, opened: Opened, found: StepSnapshot, step: Step, kind: str
) -> HttpResponseBase:
    form = choose_form(kind)(request.POST)
    try:
        bound = unseal_binding(str(request.POST.get("binding", "")))
    except BindingError as error:
        return _refuse_stale(request, opened, step, kind, (str(error),), cause=_NOT_OURS)
    same = (bound.journal_id, bound.task_id, bound.step_index, bound.kind, bound.user_id) == (
        opened.file.pk,
        step.task_id,
        step.step_index,
        kind,
        user.pk,
    )
    if not same:
        return _refuse_stale(request, opened, step, kind, (_OTHER.format(_name_form(kind)),), cause=_NOT_THIS)
    done = Job.objects.filter(message_id=bound.nonce).first()
    if done is not None:
        return redirect("job", done.uuid)  # the same form again: back button, double click, repeated POST
    changes = find_changes(
        bound,
        key=step.idempotency_key or "",
        payload_sha256=step.payload_sha256 or "",
        dispatches=count_dispatches(found.attempts),
        status=str(step.status),
    )
    if changes:
        return _refuse_stale(request, opened, step, kind, changes)
    if why_not := _explain_refusal(opened, found, step, kind):
        return _refuse_stale(request, opened, step, kind, (why_not,), cause=_find_cause(opened, step, kind))
    if not form.is_valid():
        return _show_again(request, opened, found, step, kind, form, bound)
    return _request_job(request, user, opened, found, step, kind, form, bound)


def _request_job(
    request: HttpRequest,
    user: User,
    opened: Opened,
    found: StepSnapshot,
    step: Step,
    kind: str,
    form: ReasonForm,
    bound: Binding,
) -> HttpResponseBase:
    values = form.cleaned_data
    try:
        job = queue.request_job(
            DECISION if kind in VERBS else kind,
            actor=user,
            journal=opened.file,
            task_id=step.task_id,
            step_index=step.step_index,
            binding=StepBinding(bound.key, bound.payload_sha256, bound.dispatches),
            decision=VERBS[kind].kind if kind in VERBS else None,
            reason=values["reason"],
            output_json=values.get("output", ""),
            reference=values.get("reference", ""),
            message_id=bound.nonce,
            expires_at=bound.expires_at,
        )
    except OtherDecision as error:
        return _refuse_stale(request, opened, step, kind, (error.message,), cause=_TAKEN)
    except BadDecision as error:
        form.add_error(error.field if error.field in form.fields else None, str(error))
        return _show_again(request, opened, found, step, kind, form, bound)
    except PermissionDenied:
        return refuse(request, "operator")
    return redirect("job", job.uuid)


def _show_again(
    request: HttpRequest,
    opened: Opened,
    found: StepSnapshot,
    step: Step,
    kind: str,
    form: ReasonForm,
    bound: Binding,
) -> HttpResponse:
    page = build_confirmation_page(opened, found, step, kind, form=form, bound=bound)
    audit_shown_payloads(request.user, opened, step, page.arguments, page.request)
    return render(request, "decisions/confirm.html", {"page": page}, status=422)


def _refuse_viewer(request: HttpRequest, opened: Opened, step: Step, action: str) -> HttpResponseBase:
    _record_refusal(request, opened, step, action, "Only operators may do this.")
    return refuse(request, "operator")


def _refuse_stale(
    request: HttpRequest, opened: Opened, step: Step, kind: str, changes: tuple[str, ...], *, cause: str = ""
) -> HttpResponse:
    _record_refusal(request, opened, step, f"request {kind}", " ".join(changes))
    return _show_changed(request, opened, step, kind, changes, cause=cause or _name_cause(changes))


def _record_refusal(request: HttpRequest, opened: Opened, step: Step, action: str, detail: str) -> None:
    audit.record_event(
        action,
        actor=request.user,
        allowed=False,
        detail=detail,
        journal=opened.file,
        task_id=step.task_id,
        step_index=step.step_index,
    )


def _show_changed(
    request: HttpRequest, opened: Opened, step: Step, kind: str, changes: tuple[str, ...], *, cause: str
) -> HttpResponse:
    place = (opened.file.pk, step.task_id, step.step_index)
    page = ChangedPage(*place, changes, cause, is_question=kind == QUERY_STATUS)
    return render(request, "decisions/changed.html", {"page": page}, status=409)


def _name_cause(changes: tuple[str, ...]) -> str:
    is_old = changes in ((EXPIRED,), (EXPIRED_QUESTION,))
    return "the page has expired" if is_old else _CHANGED


def _name_form(kind: str) -> str:
    return "question" if kind == QUERY_STATUS else "decision"


def _find_cause(opened: Opened, step: Step, kind: str) -> str:
    if opened.file.undecidable:
        return _NOT_READ
    if step.status != "pending":
        return _CHANGED
    return _NOBODY if kind == QUERY_STATUS else _NOT_NOW
