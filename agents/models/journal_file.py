"""A journal file in the fleet index: its state, its writer, and how far it has been read."""

from __future__ import annotations

from django.db import models

# Kinds the fleet adds to those of `journal.reader.inspect`.
COPY = "copy"
REWOUND = "rewound"
VANISHED = "vanished"
OUTSIDE = "outside"
HUNG = "hung"


class JournalFile(models.Model):
    """One file found by the globs. Pages address it by its row id, never by its path."""

    path = models.CharField(max_length=4096, unique=True)
    uuid = models.CharField(max_length=64, blank=True, default="", db_index=True)
    agent = models.CharField(max_length=200, blank=True, default="")
    kind = models.CharField(max_length=32, default="ok")  # "ok", or in one word what is wrong
    sentence = models.TextField(blank=True, default="")
    hint = models.TextField(blank=True, default="")
    warnings = models.JSONField(default=list, blank=True)
    dialect = models.CharField(max_length=32, blank=True, default="")
    user_version = models.IntegerField(null=True, blank=True)
    journal_mode = models.CharField(max_length=16, blank=True, default="")

    highest_revision = models.BigIntegerField(default=0)
    highest_boot = models.BigIntegerField(default=0)
    indexed_revision = models.BigIntegerField(default=0)  # the index holds everything up to here
    indexed_boot = models.BigIntegerField(default=0)
    unsummed_hours = models.JSONField(default=list, blank=True)  # UTC hours whose spend is to be summed again
    signature = models.CharField(max_length=400, blank=True, default="")

    copy_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="copies")
    rewound_from = models.BigIntegerField(
        null=True, blank=True
    )  # the higher revision that was read before; set until a person acknowledges

    doubt = models.CharField(max_length=16, blank=True, default="")  # restored or copied, and nobody accepted it yet
    doubt_boot = models.BigIntegerField(default=0)  # the boot that noticed it

    writer_pid = models.BigIntegerField(null=True, blank=True)
    writer_role = models.CharField(max_length=16, blank=True, default="")

    volume = models.CharField(max_length=1024, blank=True, default="")
    file_bytes = models.BigIntegerField(default=0)
    wal_bytes = models.BigIntegerField(default=0)
    shm_bytes = models.BigIntegerField(default=0)
    inbox_bytes = models.BigIntegerField(default=0)
    inbox_messages = models.IntegerField(default=0)
    growth_per_day = models.BigIntegerField(null=True, blank=True)

    found_at = models.DateTimeField()
    seen_at = models.DateTimeField()  # the last time the patterns matched it
    read_at = models.DateTimeField(null=True, blank=True)  # the last time the index held all its rows; NULL: never
    swept_at = models.DateTimeField(null=True, blank=True)  # the last time watch took slices of it
    vanished_at = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)  # a file that hung is not opened before this time

    class Meta:
        ordering = ("path",)

    def __str__(self) -> str:
        return self.path

    @property
    def is_indexed(self) -> bool:
        """Whether its rows stand in the index: a copy or a rewound file is a card, not merged."""
        return self.kind == "ok"

    @property
    def is_foreign(self) -> bool:
        """Whether another program made it. Such a journal has steps, but no tasks, effects, attempts or spend."""
        return self.dialect not in ("", "stepkeeper")

    @property
    def agent_is_alive(self) -> bool:
        return self.writer_pid is not None and self.writer_role == "agent"

    @property
    def is_present(self) -> bool:
        """Whether the file exists and is no copy of another."""
        return self.vanished_at is None and self.kind != COPY

    @property
    def undecidable(self) -> str:
        """Why nothing about its steps can be decided or asked now; empty where something can."""
        if self.kind == "new":
            return "Its journal was only just found at this place: look again in a few seconds, when it has been read."
        return "" if self.kind == "ok" else f"Its journal is not read now. {self.sentence}".strip()


__all__ = ["COPY", "HUNG", "OUTSIDE", "REWOUND", "VANISHED", "JournalFile"]
