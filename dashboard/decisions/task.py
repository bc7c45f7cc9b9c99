"""Decisions about a whole task, to cancel or to retry it: GET shows what they do, POST asks the worker."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from agents.access import audit
from agents.decisions.allowed import ENDED
from agents.decisions.check import CANCEL_TASK, RETRY_TASK, BadDecision, StepBinding
from agents.jobs import queue
from agents.models import Job
from agents.models.job import DECISION
from dashboard.decisions.binding import EXPIRED, Binding, BindingError, make_binding, seal_binding, unseal_binding
from dashboard.journal_page import Opened, with_journal
from dashboard.ui.access import can_decide, refuse, require_role
from dashboard.ui.forms import ReasonForm
from journal import clock
from journal.models import DecisionKind, TaskRow

_NO_STEP = -1


@dataclass(frozen=True, slots=True)
class TaskVerb:
    """The words of one decision about a task."""

    kind: DecisionKind
    title: str
    nothing: str
    worker: str
    does: str
    wrong: str
    button: str


_VERBS = {
    CANCEL_TASK: TaskVerb(
        CANCEL_TASK,
        "Cancel the task",
        "Nothing was cancelled",
        "the worker cancels the task",
        "The task and its branches end as cancelled. Nothing more of them is started or sent. A step that is under way"
        " finishes, and what was done stays done. A pending step stays pending: say on its page what became of it.",
        "A cancelled task never runs again, and its id is not used again. Submit a new task then.",
        "Cancel the task: sends nothing",
    ),
    RETRY_TASK: TaskVerb(
        RETRY_TASK,
        "Retry the task",
        "Nothing was retried",
        "the task runs when its agent starts",
        "The task runs again with the same steps and keys. The journal serves every committed step. The task's last"
        " step runs anew if it failed, under its first key. Failed branches are treated alike.",
        "If the cause of the failure is not mended, the task fails again.",
        "Retry the task: sends its failed step again",
    ),
}


@dataclass(frozen=True, slots=True)
class TaskDecisionPage:
    """What a person is told before a decision about a task. `refusal` says why it cannot be made; then no form."""

    verb: TaskVerb
    journal_id: int
    agent: str
    task: TaskRow
    agent_runs: bool
    refusal: str = ""
    form: ReasonForm | None = None


@require_http_methods(["GET", "HEAD", "POST"])
@require_role("viewer")
@with_journal
def show_task_decision(
    request: HttpRequest, opened: Opened, task_id: str, *, kind: DecisionKind = CANCEL_TASK
) -> HttpResponseBase:
    """The confirmation page, and its POST."""
    task = opened.reader.task(task_id, cap=None)
    if task is None:
        raise Http404("No such task in this journal.")
    user = request.user
    if not isinstance(user, User) or not can_decide(user):
        _record_refusal(request, opened, task, kind, "Only operators may do this.")
        return refuse(request, "operator")
    if request.method == "POST":
        return _decide(request, user, opened, task, kind)
    if why := _explain_refusal(opened, task, kind):
        return _show(request, opened, task, kind, refusal=why)
    bound = make_binding(
        journal_id=opened.file.pk,
        task_id=task_id,
        step_index=_NO_STEP,
        kind=kind,
        key="",
        payload_sha256="",
        dispatches=0,
        user_id=user.pk,
    )
    return _show(request, opened, task, kind, form=ReasonForm(initial={"binding": seal_binding(bound)}))


def _explain_refusal(opened: Opened, task: TaskRow, kind: DecisionKind) -> str:
    if opened.file.undecidable:
        return opened.file.undecidable
    if opened.file.dialect != "stepkeeper":
        return "The journal was made by others: nothing that writes it takes decisions."
    if kind == RETRY_TASK:
        if task.parent_id is not None:
            return "The task is a branch: retry the task it is a branch of."
        return "" if task.status == "failed" else f"Only a failed task is retried: it is {task.status}."
    return f"The task has ended: it is {task.status}." if task.status in ENDED else ""


def _decide(request: HttpRequest, user: User, opened: Opened, task: TaskRow, kind: DecisionKind) -> HttpResponseBase:
    form = ReasonForm(request.POST)
    try:
        bound = unseal_binding(str(request.POST.get("binding", "")))
    except BindingError as error:
        return _refuse(request, opened, task, kind, str(error))
    place = (bound.journal_id, bound.task_id, bound.step_index, bound.kind, bound.user_id)
    if place != (opened.file.pk, task.task_id, _NO_STEP, kind, user.pk):
        return _refuse(request, opened, task, kind, "The form was made for another task or person.")
    done = Job.objects.filter(message_id=bound.nonce).first()
    if done is not None:
        return redirect("job", done.uuid)  # the same form again: back button, double click, repeated POST
    if why := EXPIRED if clock.wall() >= bound.expires_at else _explain_refusal(opened, task, kind):
        return _refuse(request, opened, task, kind, why)
    if not form.is_valid():
        return _show(request, opened, task, kind, form=form, status=422)
    return _request_job(request, user, opened, task, kind, form, bound)


def _request_job(
    request: HttpRequest,
    user: User,
    opened: Opened,
    task: TaskRow,
    kind: DecisionKind,
    form: ReasonForm,
    bound: Binding,
) -> HttpResponseBase:
    try:
        job = queue.request_job(
            DECISION,
            actor=user,
            journal=opened.file,
            task_id=task.task_id,
            step_index=None,
            binding=StepBinding("", "", 0),
            decision=kind,
            reason=form.cleaned_data["reason"],
            message_id=bound.nonce,
            expires_at=bound.expires_at,
        )
    except BadDecision as error:
        form.add_error(error.field if error.field in form.fields else None, str(error))
        return _show(request, opened, task, kind, form=form, status=422)
    except PermissionDenied:
        return refuse(request, "operator")
    return redirect("job", job.uuid)


def _refuse(request: HttpRequest, opened: Opened, task: TaskRow, kind: DecisionKind, why: str) -> HttpResponse:
    _record_refusal(request, opened, task, kind, why)
    return _show(request, opened, task, kind, refusal=why)


def _record_refusal(request: HttpRequest, opened: Opened, task: TaskRow, kind: DecisionKind, detail: str) -> None:
    audit.record_event(
        f"request {kind}",
        actor=request.user,
        allowed=False,
        detail=detail,
        journal=opened.file,
        task_id=task.task_id,
    )


def _show(
    request: HttpRequest,
    opened: Opened,
    task: TaskRow,
    kind: DecisionKind,
    *,
    refusal: str = "",
    form: ReasonForm | None = None,
    status: int = 200,
) -> HttpResponse:
    runs = opened.writer is not None and opened.writer.role == "agent"
    page = TaskDecisionPage(_VERBS[kind], opened.file.pk, opened.name, task, runs, refusal, form)
    return render(request, "decisions/task.html", {"page": page}, status=409 if refusal else status)
