"""The index: what the journals say, read once, counted once."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from decimal import Decimal

import pytest

from agents.fleet import spend
from agents.fleet.queries import list_pending, list_tasks
from agents.index.tail import read_slices
from agents.models import IndexedModelCall, IndexedTask, PendingIntent, SpendHour
from agents.models.pending_intent import HELD, IN_FLIGHT, UNRESOLVED
from agents.money import Money
from journal import clock
from journal.providers.parse import python_profile
from tests.builders.fleet import a_model_call, a_run, held, journal_file, reread, rows, swept, watched, writing

pytestmark = pytest.mark.django_db
BOOT = rows.BOOT


@pytest.fixture
def path(tmp_path, settings):
    watched(tmp_path, settings)
    with writing(tmp_path / "a.db") as connection:
        rows.a_boot(connection)
        rows.a_task(connection)
        rows.a_step(connection, index=0, effect="model", tool_name="call_model")
        a_model_call(connection)
        a_run(connection)
    swept()
    return tmp_path / "a.db"


def totals():
    return list(SpendHour.objects.order_by("pk").values_list("calls", "cost_pico", "saved_tokens", "saved_pico"))


def test_a_task_is_summed_from_its_rows(path):
    line = list_tasks().items[0]
    assert (line.task_id, line.agent, line.steps) == ("t", "triage", 1)
    assert (line.tokens_in, line.tokens_out) == (1000, 500)
    assert line.cost == Money(Decimal("0.00535"))
    assert IndexedModelCall.objects.get().tool == "call_model"


def test_a_batch_applied_twice_counts_once(path):
    before = totals()
    row = journal_file(path)
    row.indexed_revision = 0
    row.save()
    deque(read_slices(row), maxlen=0)
    assert totals() == before
    assert IndexedModelCall.objects.count() == 1


def test_a_call_that_ends_later_replaces_its_open_row(path, monkeypatch):
    monkeypatch.setattr(clock, "wall", lambda: clock.parse(rows.WHEN))
    with writing(path) as connection:
        rows.a_step(connection, index=1, effect="model", revision=BOOT + 10)
        a_model_call(connection, index=1, state="open", in_uncached=None, out_visible=None, revision=BOOT + 11)
    reread(journal_file(path))
    assert spend.spend_table("model", "30d").total.cost.unpriced_calls == 1
    with writing(path) as connection:
        connection.execute(
            "UPDATE agent_model_call SET state = 'exact', in_uncached = 200, out_visible = 200, revision = ? WHERE"
            " step_index = 1",
            (BOOT + 12,),
        )
    reread(journal_file(path))
    task = IndexedTask.objects.get()
    assert (task.unpriced_calls, task.cost_pico) == (0, 2 * 5_350_000_000)


def test_what_a_later_run_is_served_counts_as_saved_once_a_run(path):
    with writing(path) as connection:
        a_run(connection, run=1, served_through=0, revision=BOOT + 20)
        a_run(connection, run=2, served_through=5, revision=BOOT + 21)
    row = journal_file(path)
    for _ in range(2):
        row.indexed_revision = 0
        row.save()
        row = reread(row)
    task = IndexedTask.objects.get()
    assert (task.saved_tokens, task.saved_pico) == (2 * 1500, 2 * 5_350_000_000)
    assert task.tokens_in == 1000, "what was served adds nothing to what was spent"
    assert totals() == [(1, 5_350_000_000, 3000, 10_700_000_000)]


def test_a_run_served_nothing_saves_nothing(path):
    assert IndexedTask.objects.get().saved_tokens == 0


def test_a_new_boot_reads_anew_what_a_power_cut_took(path):
    with writing(path) as connection:
        rows.a_task(connection, "lost", revision=BOOT + 30)
        a_model_call(connection, index=3, revision=BOOT + 31)
    reread(journal_file(path))
    assert IndexedModelCall.objects.count() == 2
    with writing(path) as connection:
        connection.execute("DELETE FROM agent_task WHERE task_id = 'lost'")
        connection.execute("DELETE FROM agent_model_call WHERE step_index = 3")
        rows.a_boot(connection, 2)
    row = reread(journal_file(path))
    assert row.indexed_boot == 2
    assert list(IndexedTask.objects.values_list("task_id", flat=True)) == ["t"]
    assert IndexedTask.objects.get().tokens_in == 1000
    assert totals() == [(1, 5_350_000_000, 0, None)]


def test_many_rows_come_in_several_slices(path, monkeypatch):
    monkeypatch.setattr("agents.index.pace.FIRST", 7)
    with writing(path) as connection:
        connection.execute("BEGIN")
        for number in range(40):
            rows.a_task(connection, f"many-{number}", revision=BOOT + 100 + number)
        connection.execute("COMMIT")
    row = journal_file(path)
    reread(row)
    assert IndexedTask.objects.count() == 41


def test_a_running_task_without_an_agent_has_crashed(path):
    assert list_tasks(status="crashed").items[0].state == "crashed"
    assert not list_tasks(status="running").items


def test_a_running_task_of_a_living_agent_runs_and_hangs_when_nothing_moves(path):
    with held(path) as pid:
        row = reread(journal_file(path))
        assert (row.writer_pid, row.writer_role) == (pid, "agent")
        assert IndexedTask.objects.get().state == "hung", "its last change is weeks ago"
        with writing(path) as connection:
            rows.a_step(connection, index=1, updated_at=clock.now_text(), revision=BOOT + 40)
        reread(row)
        assert IndexedTask.objects.get().state == "running", "a step is life too"
    reread(row)
    assert IndexedTask.objects.get().state == "crashed"


def test_a_task_of_an_earlier_boot_has_crashed_though_an_agent_lives(path):
    with held(path):
        with writing(path) as connection:
            rows.a_boot(connection, 2)
        reread(journal_file(path))
        assert IndexedTask.objects.get().state == "crashed"


def a_pending_step(path, **cells):
    with writing(path) as connection:
        rows.a_step(
            connection,
            index=1,
            status="pending",
            output_json=None,
            revision=BOOT + 50,
            created_at="2026-11-28T10:00:00.000000Z",
            **cells,
        )
        rows.an_attempt(connection, index=1, verdict=None, kind=None, ended_at=None, revision=BOOT + 50)


def test_an_intent_whose_outcome_is_unknown_and_which_nothing_can_tell_is_held(path):
    a_pending_step(path)
    reread(journal_file(path))
    line = list_pending().items[0]
    assert (line.step_index, line.state, line.dispatches) == (1, HELD, 1)
    assert line.hold_reason
    assert line.next_action == "hold"


def test_a_held_step_says_its_stored_reason(path):
    a_pending_step(path, hold_reason="quarantined")
    reread(journal_file(path))
    line = list_pending().items[0]
    assert line.hold_reason == "quarantined"


def test_a_step_its_agent_is_at_is_in_flight(path):
    with held(path):
        a_pending_step(path)
        reread(journal_file(path))
        assert list_pending().items[0].state == IN_FLIGHT


def test_an_idempotent_python_tool_is_replayed_next_and_its_window_is_told(path, monkeypatch):
    monkeypatch.setattr(clock, "wall", lambda: clock.parse(rows.WHEN))
    profile = python_profile(timedelta(days=400), False, None)
    a_pending_step(path, profile_json=profile.canonical)
    reread(journal_file(path))
    line = list_pending().items[0]
    assert (line.state, line.next_action) == (UNRESOLVED, "send")
    assert line.window_left_until is not None


def test_a_settled_intent_leaves_the_list(path):
    a_pending_step(path)
    reread(journal_file(path))
    assert PendingIntent.objects.count() == 1
    with writing(path) as connection:
        connection.execute(
            "UPDATE agent_step_journal SET status = 'committed', revision = ? WHERE step_index = 1", (BOOT + 60,)
        )
    reread(journal_file(path))
    assert not PendingIntent.objects.exists()


def test_tasks_page_by_keyset_and_lose_nothing_where_times_are_equal(path):
    with writing(path) as connection:
        for number in range(9):
            rows.a_task(connection, f"n-{number}", revision=BOOT + 70 + number)
    reread(journal_file(path))
    seen, after = [], ""
    while True:
        page = list_tasks(limit=3, after=after)
        seen += [line.task_id for line in page.items]
        if page.next_cursor is None:
            break
        after = page.next_cursor
    assert len(seen) == len(set(seen)) == 10


def test_tasks_are_filtered_by_agent_status_and_text(path):
    with writing(path) as connection:
        rows.a_task(connection, "Invoice-7", status="completed", handler="bill", revision=BOOT + 80)
    reread(journal_file(path))
    assert [line.task_id for line in list_tasks(text="invoice").items] == ["Invoice-7"]
    assert [line.task_id for line in list_tasks(text="BILL").items] == ["Invoice-7"]
    assert [line.task_id for line in list_tasks(status="completed").items] == ["Invoice-7"]
    assert not list_tasks(agent="nobody").items


@pytest.mark.parametrize("cursor", ["x", "!!!", "W10", "WzEsMl0", "bnVsbA"])
def test_a_cursor_that_is_none_is_refused(path, cursor):
    with pytest.raises(ValueError, match="Not a cursor"):
        list_tasks(after=cursor)
