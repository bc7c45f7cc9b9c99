"""Numbers no agent would write: they break no row, no sum, and no other journal."""

from __future__ import annotations

import pytest

from agents.models import IndexedTask
from tests.builders.fleet import a_model_call, a_run, journal_file, reread, rows, swept, watched, writing

pytestmark = pytest.mark.django_db
BOOT = rows.BOOT


@pytest.fixture
def path(tmp_path, settings):
    watched(tmp_path, settings)
    with writing(tmp_path / "a.db") as connection:
        rows.a_boot(connection)
        rows.a_task(connection)
    swept()
    return tmp_path / "a.db"


@pytest.mark.parametrize("count", [2**63 - 1, 2**62, -(2**63), 10**9])
def test_impossible_token_counts_are_unpriced_and_break_no_sum(path, count):
    with writing(path) as connection:
        rows.a_task(connection, "odd", revision=BOOT + 9)
        for number in range(3):
            rows.a_step(connection, "odd", number, effect="model", revision=BOOT + 10 + number)
            a_model_call(connection, "odd", number, in_cache_read=count, revision=BOOT + 20 + number)
        a_run(connection, "odd", served_through=2, revision=BOOT + 30)
    reread(journal_file(path))
    task = IndexedTask.objects.get(task_id="odd")
    assert (task.cost_pico, task.unpriced_calls) == (None, 3)
    assert (task.tokens_in, task.tokens_out) == (600, 1500)


def test_an_impossible_step_index_breaks_no_row(path):
    with writing(path) as connection:
        rows.a_step(connection, "t", 2**63 - 1, revision=BOOT + 10)
    reread(journal_file(path))
    assert IndexedTask.objects.get().steps == 2**31 - 1
