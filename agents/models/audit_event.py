"""One action, or one refusal, with the person and the time."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from agents.models.journal_file import JournalFile


class AuditEvent(models.Model):
    """One line of the audit. Names are copied, so that a line outlives its user and its journal."""

    at = models.DateTimeField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    actor_name = models.CharField(max_length=150, blank=True, default="")
    action = models.CharField(max_length=64)
    allowed = models.BooleanField(default=True)
    detail = models.TextField(blank=True, default="")
    journal = models.ForeignKey(JournalFile, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    journal_path = models.CharField(max_length=4096, blank=True, default="")
    task_id = models.TextField(blank=True, default="")
    step_index = models.IntegerField(null=True, blank=True)
    job = models.ForeignKey("agents.Job", null=True, blank=True, on_delete=models.SET_NULL, related_name="events")

    class Meta:
        indexes = (
            models.Index(fields=("-at", "-id"), name="audit_newest"),
            models.Index(fields=("journal", "task_id", "step_index"), name="audit_of_step"),
        )

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action}"
