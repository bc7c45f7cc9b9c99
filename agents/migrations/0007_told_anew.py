import re

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

# What a query's answer began with: our own words. Whatever stood behind them was the provider's.
_OURS = re.compile(
    r"(?:The provider says the effect exists\."
    r"|The provider says there is no such effect\."
    r"|The provider says it is still at it\."
    r"|The provider gave no answer that decides anything\.)"
    r"(?: \(HTTP \d+\))?"
)
_IN_FLIGHT = " An attempt was in flight while it was asked, so this proves nothing."


def _apart(text: str) -> tuple[str, str] | None:
    """Our own words, and the provider's behind them; None where the text is no answer of a query."""
    found = _OURS.match(text)
    if found is None:
        return None
    ours, rest = found[0], text[found.end() :]
    if _IN_FLIGHT in rest:
        ours, rest = ours + _IN_FLIGHT, rest.replace(_IN_FLIGHT, "")
    return ours, rest.strip()


def keep_words_of_providers_apart(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Jobs and audit lines of before 0004 show a provider's words to everybody."""
    job_table, audit_table = apps.get_model("agents", "Job"), apps.get_model("agents", "AuditEvent")
    # A job with a detail was made after it.
    for job in job_table.objects.filter(kind="query_status", detail="").iterator():
        result, sentence = _apart(job.result), _apart(job.sentence)
        if (told := result or sentence) is not None:
            job.detail = told[1]
            job.result = result[0] if result else job.result
            job.sentence = sentence[0] if sentence else job.sentence
            job.save(update_fields=["detail", "result", "sentence"])
    for event in audit_table.objects.filter(action="outcome query_status").iterator():
        told = _apart(event.detail)
        if told is not None and told[0] != event.detail:
            event.detail = told[0]
            event.save(update_fields=["detail"])


def read_anew(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Rows indexed before 0005 and 0006 lack their columns; intents of before 0004 quote providers."""
    apps.get_model("agents", "PendingIntent").objects.all().delete()
    # Not the boot: what is read from the first revision on is put over the rows that are there, in batches.
    apps.get_model("agents", "JournalFile").objects.update(indexed_revision=0, signature="")


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0006_unknown_times"),
    ]

    operations = [
        migrations.RunPython(keep_words_of_providers_apart, migrations.RunPython.noop),
        migrations.RunPython(read_anew, migrations.RunPython.noop),
    ]
