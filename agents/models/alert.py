"""One problem that an operator should look at."""

from __future__ import annotations

from django.db import models

from agents.models.journal_file import JournalFile

WARNING = "warning"
CRITICAL = "critical"


class Alert(models.Model):
    """One stretch of time in which something was wrong; open while `closed_at` is NULL."""

    kind = models.CharField(max_length=32)  # disk, wal, journal, intent, worker
    subject = models.CharField(max_length=1024)  # the thing that is wrong; stable while the alert is open
    journal = models.ForeignKey(JournalFile, null=True, blank=True, on_delete=models.SET_NULL, related_name="alerts")
    level = models.CharField(max_length=16, choices=((WARNING, "warning"), (CRITICAL, "critical")))
    sentence = models.TextField()
    hint = models.TextField(blank=True, default="")
    opened_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("kind", "subject"), condition=models.Q(closed_at__isnull=True), name="one_open_alert"
            ),
        )
        indexes = (models.Index(fields=("-opened_at", "-id"), name="alert_newest"),)

    def __str__(self) -> str:
        return self.sentence
