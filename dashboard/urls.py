"""Every address of the dashboard."""

from __future__ import annotations

from django.conf import settings
from django.urls import include, path, register_converter

from agents.decisions.check import CANCEL_TASK, RETRY_TASK
from dashboard.agent_list import show_agents
from dashboard.alerts import show_alerts
from dashboard.audit import show_audit
from dashboard.decisions.task import show_task_decision
from dashboard.decisions.views import show_decision, show_question
from dashboard.disk import show_disk
from dashboard.jobs import show_job
from dashboard.journals import acknowledge_rewind, show_journals
from dashboard.overview import show_overview
from dashboard.pending import show_pending
from dashboard.sign_in import sign_in, sign_in_by_link, sign_out
from dashboard.spend import show_spend
from dashboard.steps.step import download_payload, show_step
from dashboard.styleguide.page import show_style_guide
from dashboard.system import show_health, show_pulse
from dashboard.tasks.list import show_tasks
from dashboard.tasks.task import show_task
from dashboard.ui.url_converters import StepIndexConverter, TaskIdConverter

handler500 = "dashboard.system.show_fault"

register_converter(TaskIdConverter, "task")
register_converter(StepIndexConverter, "step")

_TASK = "<int:journal>/<task:task_id>"
_STEP = f"{_TASK}/<step:step_index>"

urlpatterns = [
    path("", show_overview, name="overview"),
    path("agents/", show_agents, name="agents"),
    path("tasks/", show_tasks, name="tasks"),
    path(f"tasks/{_TASK}/", show_task, name="task"),
    path(f"tasks/{_TASK}/cancel/", show_task_decision, {"kind": CANCEL_TASK}, name="cancel_task"),
    path(f"tasks/{_TASK}/retry/", show_task_decision, {"kind": RETRY_TASK}, name="retry_task"),
    path(f"steps/{_STEP}/", show_step, name="step"),
    path(f"steps/{_STEP}/bytes/<str:name>/", download_payload, name="download"),
    path(f"steps/{_STEP}/query/", show_question, name="query"),
    path(f"steps/{_STEP}/decide/<str:kind>/", show_decision, name="decide"),
    path("pending/", show_pending, name="pending"),
    path("jobs/<uuid:job_id>/", show_job, name="job"),
    path("spend/", show_spend, name="spend"),
    path("disk/", show_disk, name="disk"),
    path("alerts/", show_alerts, name="alerts"),
    path("audit/", show_audit, name="audit"),
    path("journals/", show_journals, name="journals"),
    path("journals/<int:journal>/acknowledge/", acknowledge_rewind, name="acknowledge"),
    path("demo/", include("agents.demo.urls")),
    path("pulse/", show_pulse, name="pulse"),
    path("healthz", show_health, name="healthz"),
    path("sign-in/", sign_in, name="sign_in"),
    path("sign-in/link/<str:token>/", sign_in_by_link, name="sign_in_link"),
    path("sign-out/", sign_out, name="sign_out"),
]

if settings.DEBUG:
    urlpatterns.append(path("styleguide/", show_style_guide, name="styleguide"))
