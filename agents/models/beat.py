"""The last sign of life of one part of the dashboard."""

from __future__ import annotations

from django.db import models


class Beat(models.Model):
    """The last sign of life of one part. A part without a recent sign does not work, even if `ps` shows it."""

    name = models.CharField(max_length=40, primary_key=True)
    beaten_at = models.DateTimeField()
    detail = models.CharField(max_length=400, blank=True)

    def __str__(self) -> str:
        return f"{self.name} at {self.beaten_at:%Y-%m-%d %H:%M:%S} UTC"
