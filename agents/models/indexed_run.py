"""One run of a task by a process, in the fleet index."""

from __future__ import annotations

from django.db import models

from agents.models.journal_file import JournalFile


class IndexedRun(models.Model):
    """A run. Steps up to `served_through` came from the journal: what their model calls once cost was saved."""

    journal = models.ForeignKey(JournalFile, on_delete=models.CASCADE, related_name="runs")
    task_id = models.TextField()
    run = models.IntegerField()
    boot = models.BigIntegerField()
    served_through = models.IntegerField(default=-1)
    started_at = models.DateTimeField(null=True, blank=True)
    hour = models.DateTimeField(null=True, blank=True)  # UTC hour of `started_at`: where the saving is booked

    class Meta:
        constraints = (models.UniqueConstraint(fields=("journal", "task_id", "run"), name="run_once_per_task"),)
        indexes = (models.Index(fields=("journal", "hour"), name="run_by_hour"),)

    def __str__(self) -> str:
        return f"{self.task_id} run {self.run}"
