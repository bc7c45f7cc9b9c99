"""A task's summary in the fleet index."""

from __future__ import annotations

from django.db import models

from agents.models.journal_file import JournalFile
from journal.models import WaitReason

CRASHED = "crashed"
HUNG = "hung"
SLOW = "slow"
UNRESOLVED = "unresolved"  # of another maker's journal: a step is pending, and whether anybody is at it stands nowhere


class IndexedTask(models.Model):
    """One task of one journal. `derived` is a state that no journal says of itself, such as crashed or hung."""

    journal = models.ForeignKey(JournalFile, on_delete=models.CASCADE, related_name="tasks")
    task_id = models.TextField()
    parent_id = models.TextField(null=True, blank=True)  # NULL: the task has no parent
    agent = models.CharField(max_length=200, blank=True, default="")
    handler = models.CharField(max_length=200, blank=True, default="")
    status = models.CharField(max_length=16)
    derived = models.CharField(max_length=16, blank=True, default="")
    wait_kind = models.CharField(max_length=16, null=True, blank=True)  # NULL: it does not wait
    wait_step_task = models.TextField(null=True, blank=True)
    wait_step_index = models.BigIntegerField(null=True, blank=True)
    wait_hold = models.CharField(max_length=64, null=True, blank=True)
    wait_detail = models.TextField(null=True, blank=True)
    error_type = models.CharField(max_length=200, blank=True, default="")  # of a failed task
    error_message = models.TextField(blank=True, default="")  # may quote a payload: for who may see those
    steps = models.IntegerField(default=0)
    pending = models.IntegerField(default=0)

    tokens_in = models.BigIntegerField(null=True, blank=True)  # NULL: no call reported any
    tokens_out = models.BigIntegerField(null=True, blank=True)
    cost_pico = models.BigIntegerField(null=True, blank=True)  # picodollars, exact; NULL: nothing could be priced
    unpriced_calls = models.IntegerField(default=0)  # more than 0: cost and tokens are "at least"
    saved_tokens = models.BigIntegerField(default=0)
    saved_pico = models.BigIntegerField(null=True, blank=True)
    saved_unpriced_calls = models.IntegerField(default=0)

    started_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField()  # the newest change of the task or one of its steps
    dated = models.BooleanField(default=True)  # False: no row says when; `updated_at` is when it was first read
    ended_at = models.DateTimeField(null=True, blank=True)
    last_boot = models.BigIntegerField(null=True, blank=True)
    revision = models.BigIntegerField(default=0)
    doubtful = models.BooleanField(default=False)  # a power cut may have taken what was read: it is read again

    class Meta:
        constraints = (models.UniqueConstraint(fields=("journal", "task_id"), name="task_once_per_journal"),)
        indexes = (
            models.Index(fields=("-updated_at", "-id"), name="task_newest"),
            models.Index(fields=("status", "-updated_at", "-id"), name="task_status_newest"),
            models.Index(fields=("agent", "-updated_at", "-id"), name="task_agent_newest"),
            models.Index(fields=("journal", "parent_id"), name="task_branches"),
        )

    def __str__(self) -> str:
        return self.task_id

    @property
    def state(self) -> str:
        """What a person is told: the derived state where there is one, else the stored status."""
        return self.derived or self.status

    @property
    def wait(self) -> WaitReason | None:
        """What the task waits for; None where it does not wait."""
        if self.wait_kind is None:
            return None
        place = (self.wait_step_task, self.wait_step_index)
        return WaitReason(self.wait_kind, *place, self.wait_hold, self.wait_detail)
