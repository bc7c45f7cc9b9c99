"""The list of tasks, and one task's timeline."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access import can_see_payloads, require_role
from dashboard.forms import TaskFilter, cursor_index
from dashboard.pages import task as task_page
from dashboard.pages import tasks as tasks_page
from dashboard.pages.opening import Opened
from dashboard.render import page_or_part
from dashboard.views.opening import reads_journal


@require_safe
@require_role("viewer")
def tasks(request: HttpRequest) -> HttpResponse:
    """Tasks of all agents, newest change first, filtered by what stands in the URL."""
    try:
        page = tasks_page.build(TaskFilter(request.GET), reveal=can_see_payloads(request.user))
    except ValueError as error:
        raise Http404(str(error)) from error
    parts = {"tasks-table": "tasks/_table.html", "tasks-new": "tasks/_new.html"}
    status = 422 if page.refused else 200
    return page_or_part(request, "tasks/list.html", page, parts=parts, version=page.version, status=status)


@require_safe
@require_role("viewer")
@reads_journal
def task(request: HttpRequest, opened: Opened, task_id: str) -> HttpResponse:
    """One task's timeline, live while it is unfinished."""
    found = opened.reader.task(task_id, cap=None)
    if found is None:
        raise Http404("No such task in this journal.")
    after, version = cursor_index(request.GET.get("after")), task_page.version(opened, found)
    return page_or_part(
        request,
        "tasks/task.html",
        lambda: task_page.build(opened, found, after=after, reveal=can_see_payloads(request.user), version=version),
        parts={"task-timeline": "tasks/_timeline.html"},
        version=version,
    )
