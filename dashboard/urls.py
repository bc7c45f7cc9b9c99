"""Every address of the dashboard."""

from __future__ import annotations

from django.conf import settings
from django.urls import path, register_converter

from dashboard.addresses import StepIndexConverter, TaskIdConverter
from dashboard.views import (
    alerts,
    audit,
    decisions,
    demo,
    disk,
    health,
    jobs,
    journals,
    overview,
    pending,
    pulse,
    sign_in,
    spend,
    steps,
    styleguide,
    tasks,
)

handler500 = "dashboard.views.faults.fault"

register_converter(TaskIdConverter, "task")
register_converter(StepIndexConverter, "step")

_TASK = "<int:journal>/<task:task_id>"
_STEP = f"{_TASK}/<step:step_index>"

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("tasks/", tasks.tasks, name="tasks"),
    path(f"tasks/{_TASK}/", tasks.task, name="task"),
    path(f"steps/{_STEP}/", steps.step, name="step"),
    path(f"steps/{_STEP}/bytes/<str:name>/", steps.download, name="download"),
    path(f"steps/{_STEP}/query/", decisions.query, name="query"),
    path(f"steps/{_STEP}/decide/<str:kind>/", decisions.decide, name="decide"),
    path("pending/", pending.pending, name="pending"),
    path("jobs/<uuid:job_id>/", jobs.job, name="job"),
    path("spend/", spend.spend, name="spend"),
    path("disk/", disk.disk, name="disk"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("audit/", audit.audit, name="audit"),
    path("journals/", journals.journals, name="journals"),
    path("journals/<int:journal>/acknowledge/", journals.acknowledge, name="acknowledge"),
    path("demo/kill/<str:agent>/", demo.kill, name="kill"),
    path("pulse/", pulse.pulse, name="pulse"),
    path("healthz", health.healthz, name="healthz"),
    path("sign-in/", sign_in.sign_in, name="sign_in"),
    path("sign-in/link/<str:token>/", sign_in.sign_in_link, name="sign_in_link"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
]

if settings.DEBUG:
    urlpatterns.append(path("styleguide/", styleguide.styleguide, name="styleguide"))
