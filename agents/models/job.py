"""One request of an operator to the worker, and its outcome."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from agents.models.journal_file import JournalFile

QUERY_STATUS = "query_status"
DECISION = "decision"
CANARY = "canary"

QUEUED = "queued"
RUNNING = "running"
WAITING_AGENT = "waiting_agent"
DONE = "done"
FAILED = "failed"
EXPIRED = "expired"
REFUSED = "refused"

OPEN_STATES = (QUEUED, RUNNING, WAITING_AGENT)
ENDED_STATES = (DONE, FAILED, EXPIRED, REFUSED)


class Job(models.Model):
    """The record of a job is this row, never the queue's: a job may be delivered twice, its row is claimed once.

    For steps at most one job of a kind is open per binding, so two clicks, two tabs and two people share one.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=16)
    decision = models.CharField(max_length=32, blank=True, default="")  # the kind of decision; empty for others
    journal = models.ForeignKey(JournalFile, null=True, blank=True, on_delete=models.PROTECT, related_name="jobs")
    task_id = models.TextField(blank=True, default="")
    step_index = models.IntegerField(null=True, blank=True)

    # The binding: what the person was shown. The journal's writer refuses anything else.
    key = models.CharField(max_length=200, blank=True, default="")
    payload_sha256 = models.CharField(max_length=64, blank=True, default="")
    dispatches = models.IntegerField(null=True, blank=True)
    output_json = models.TextField(blank=True, default="")
    reference = models.TextField(blank=True, default="")

    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    actor_name = models.CharField(max_length=150, blank=True, default="")
    reason = models.TextField(blank=True, default="")

    state = models.CharField(max_length=16, default=QUEUED)
    attempts = models.IntegerField(default=0)
    sentence = models.TextField(blank=True, default="")
    answer = models.TextField(blank=True, default="")  # what the provider said about the status, in our words
    result = models.TextField(blank=True, default="")  # what recovery did, a line each
    applied_at = models.DateTimeField(null=True, blank=True)  # when the journal's writer took the message in
    detail = models.TextField(blank=True, default="")  # a provider's own words: for who may see payloads
    message_id = models.CharField(max_length=64, unique=True)
    posted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    enqueued_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=models.Q(state__in=(*OPEN_STATES, *ENDED_STATES)), name="job_state"),
            models.UniqueConstraint(
                fields=("journal", "task_id", "step_index", "kind", "dispatches"),
                condition=models.Q(state__in=OPEN_STATES, journal__isnull=False),
                name="one_open_job_per_binding",
            ),
        )
        indexes = (
            models.Index(fields=("-created_at",), name="job_newest"),
            models.Index(fields=("state", "kind"), name="job_by_state"),
        )
        permissions = (
            ("decide", "May decide about steps and ask providers for their status"),
            ("see_payload", "May see payloads"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES
