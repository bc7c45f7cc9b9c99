"""The list of tasks and one task's timeline."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from django.urls import reverse

from dashboard.ui.url_converters import decode_task_id, encode_task_id
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.conftest import HOSTILE
from tests.dashboard.ladder import assert_closed, assert_page, assert_unchanged_is_204, cells, part_of, signed_in, text

pytestmark = pytest.mark.django_db


def test_the_list_is_a_page_and_a_part(small_fleet):
    page = assert_page("/tasks/", part="tasks-table")
    assert "report/42?" in page
    assert "held at step 0: outcome unknown" in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("agent=triage", True),
        ("agent=nobody", False),
        ("status=completed", True),
        ("status=failed", False),
        ("text=42%3F", True),
        ("text=43", False),
        ("status=nonsense", True),
    ],
)
def test_filters_stand_in_the_url(small_fleet, query, found):
    page = text(signed_in().get(f"/tasks/?{query}"))
    assert (">report/42?<" in page) is found
    if not found:
        assert "No task matches this filter" in page


def test_the_text_is_looked_for_where_its_label_says(small_fleet):
    page = text(signed_in().get("/tasks/?text=42"))
    assert "Task id or handler contains" in page


def test_an_agent_that_nobody_knows_is_named_and_stays_chosen(small_fleet):
    page = text(signed_in().get("/tasks/?agent=nobody"))
    assert "No agent with a task is called <bdi>nobody</bdi>." in page
    assert re.search(r'<option value="nobody" selected>nobody \(unknown\)</option>', page)
    assert "(unknown)" not in text(signed_in().get("/tasks/?agent=triage"))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (f"text={'x' * 201}", "Task id or handler: At most 200 characters are searched for; this has 201."),
        (f"text={'x' * 20_000}", "Task id or handler: At most 200 characters are searched for; this has 20000."),
        (f"agent={'x' * 201}", "Agent: At most 200 characters are searched for; this has 201."),
        ("text=%00", "Task id or handler: Null characters are not allowed."),
    ],
)
def test_what_cannot_be_searched_for_is_refused_in_words_and_shows_no_task(small_fleet, query, said):
    response = signed_in().get(f"/tasks/?{query}")
    assert response.status_code == 422
    assert said in text(response)
    assert ">report/42?<" not in text(response)


def test_an_empty_fleet_says_what_would_appear_and_how(db, settings):
    settings.STEPKEEPER_JOURNALS = ()
    assert "python -m journal submit" in text(signed_in().get("/tasks/"))


def test_a_cursor_that_is_none_is_a_404(small_fleet):
    assert signed_in().get("/tasks/?after=nonsense").status_code == 404


def test_older_tasks_follow_by_cursor_and_none_is_lost(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        for number in range(60):
            rows.a_task(connection, f"bulk-{number}", revision=rows.BOOT * 2 + 1 + number, status="completed")
    fleet.reread(small_fleet.triage)
    first = text(signed_in().get("/tasks/"))
    older = re.search(r'href="(/tasks/\?after=[^"]+)"', first)
    assert older
    second = text(signed_in().get(older[1]))
    names = re.findall(r">(bulk-\d+)<", first + second)
    assert len(names) == len(set(names)) == 60


def test_new_tasks_raise_a_pill_and_move_no_row(small_fleet):
    client = signed_in()
    page = text(client.get("/tasks/"))
    poll = re.search(r'id="tasks-new"[^>]*hx-get="([^"]+)"', page)
    assert poll
    url = poll[1].replace("&amp;", "&")
    headers = {"HX-Request": "true", "HX-Target": "tasks-new"}
    assert client.get(url, headers=headers).status_code == 204
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_task(connection, "later", revision=rows.BOOT * 2 + 9, created_at="2026-11-01T10:20:30.000000Z")
    fleet.reread(small_fleet.triage)
    pill = text(client.get(url, headers=headers))
    assert "1 new" in pill
    assert "<table" not in pill


def test_the_timeline_is_a_page_and_a_part(small_fleet):
    page = assert_page(small_fleet.task(), part="task-timeline")
    assert "SIGKILL · restarted" in page
    assert "reused · paid 10:00:03" in page
    assert page.count("done before the restart, not repeated") == 1
    assert 'fill="url(#hatch)"' in page
    assert "2 served from the journal" in page


def test_each_step_says_its_effect_attempts_duration_tokens_and_cost(small_fleet):
    page = text(signed_in().get(small_fleet.task()))
    glyphs = re.findall(r'class="lead">.*?aria-label="([^"]+)">.*?href="#effect-(\w+)".*?<bdi [^>]*>([^<]+)<', page)
    assert glyphs == [
        ("read only", "read_only", "read_report"),
        ("model", "model", "call_model"),
        ("mutating", "mutating", "open_issue"),
    ]
    assert cells(page, "att.") == ["1", "1", "2"]
    assert cells(page, "took") == ["250 ms", "250 ms", "2.0 s"]  # a second each of the last
    assert cells(page, "tokens") == ["", "1,500", ""]
    assert cells(page, "cost") == ["", "$0.005350", ""]


def test_a_finished_task_does_not_poll_and_an_unfinished_one_does(small_fleet):
    assert "hx-trigger" not in part_of(small_fleet.task(), "task-timeline")
    url = small_fleet.task(HOSTILE)
    assert_unchanged_is_204(url, part="task-timeline", page=text(signed_in().get(url)))


@pytest.mark.parametrize("task_id", ["a/b", "what?", "x#y", "..", " ", "", "é", "\u202e", "a" * 300, "-", "%2F"])
def test_any_task_id_has_one_address(task_id):
    assert decode_task_id(encode_task_id(task_id)) == task_id


@pytest.mark.parametrize("part", ["zzz=", "!!", "a", "YQ==", "/w", "Zm9", quote("ä"), "A" * 5000])
def test_an_address_that_is_none_is_a_404(small_fleet, part):
    assert signed_in().get(f"/tasks/{small_fleet.triage.pk}/{part}/").status_code == 404


@pytest.mark.parametrize("journal", ["0", "99999", "9223372036854775807", "9" * 40])
def test_an_unknown_journal_is_a_404(small_fleet, journal):
    assert signed_in().get(f"/tasks/{journal}/YQ/").status_code == 404


def test_an_unknown_task_is_a_404(small_fleet):
    assert signed_in().get(small_fleet.task("nobody knows it")).status_code == 404
    assert_closed(small_fleet.task(), method="get")


def test_hostile_names_arrive_escaped_and_visible(small_fleet):
    for url in ("/tasks/", "/", "/pending/", small_fleet.task(HOSTILE), small_fleet.step(0, HOSTILE)):
        page = text(signed_in("operator").get(url))
        assert 'hx-post="/approve/1"' not in page
        assert "\u202e" not in page
        assert "U+202E" in page
        assert "{{ 7*7 }}" in page


def test_a_journal_that_cannot_be_read_is_a_card(small_fleet):
    path = small_fleet.folder / "triage.db"
    path.write_bytes(b"not a database, and long enough to be looked at " * 50)
    for name in ("triage.db-wal", "triage.db-shm"):
        (small_fleet.folder / name).unlink(missing_ok=True)
    response = signed_in().get(small_fleet.task())
    assert response.status_code == 200
    assert "cannot be read now" in text(response)
    operator = signed_in("operator")
    assert operator.get(small_fleet.step(2, name="step")).status_code == 200
    bytes_url = reverse("download", args=[small_fleet.triage.pk, "report/42?", 2, "arguments"])
    decide_url = reverse("decide", args=[small_fleet.triage.pk, "report/42?", 2, "replay"])
    assert operator.get(bytes_url).status_code == 503, "a card must not be saved as if it were the bytes"
    assert operator.post(decide_url).status_code == 503
    poll = signed_in().get(small_fleet.task(), headers={"HX-Request": "true"})
    assert poll.status_code == 204


def test_a_branch_stands_under_its_parent_with_own_and_childrens_cost(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_task(
            connection, "report/42?/left", parent_id="report/42?", status="completed", revision=rows.BOOT * 2 + 1
        )
        rows.a_step(connection, "report/42?/left", 0, tool_name="left_tool", revision=rows.BOOT * 2 + 2)
    page = text(signed_in().get(small_fleet.task()))
    assert "left_tool" in page
    assert 'class="depth-1"' in page
    assert "cost, own / children" in page


def test_two_hundred_steps_are_a_page_and_the_next_ones_keep_their_attempts(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        connection.execute("BEGIN")
        rows.a_task(connection, "long", revision=rows.BOOT * 2 + 1)
        for index in range(203):
            rows.a_step(connection, "long", index, revision=rows.BOOT * 2 + 2 + index)
            rows.an_attempt(connection, "long", index, kind="other", revision=rows.BOOT * 2 + 2 + index)
        connection.execute("COMMIT")
    client = signed_in()
    first = text(client.get(small_fleet.task("long")))
    assert first.count('class="step"') == 200
    assert f'href="{small_fleet.task("long")}?after=199"' in first
    rest = text(client.get(small_fleet.task("long") + "?after=199"))
    assert rest.count('class="step"') == 3
    assert rest.count('class="segment segment-applied"') == 3


@pytest.mark.parametrize("after", ["abc", "-5", "9" * 40, "1e9", ""])
def test_a_step_to_start_after_that_is_none_starts_at_the_beginning_or_the_end(small_fleet, after):
    assert signed_in().get(f"{small_fleet.task()}?after={after}").status_code == 200


@pytest.mark.parametrize(
    ("query", "new"), [("", 3), ("status=failed", 1), ("status=queued", 2), ("text=later-1", 1), ("agent=nobody", 0)]
)
def test_the_pill_counts_what_its_list_would_show(small_fleet, query, new):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        for number, status in enumerate(("queued", "queued", "failed")):
            created = "2026-11-01T10:20:30.000000Z"
            rows.a_task(
                connection, f"later-{number}", status=status, revision=rows.BOOT * 2 + 9 + number, created_at=created
            )
    fleet.reread(small_fleet.triage)
    url = f"/tasks/?since=2026-11-01T10:20:00Z&version=old&{query}"
    pill = text(signed_in().get(url, headers={"HX-Request": "true", "HX-Target": "tasks-new"}))
    assert (f"{new} new" in pill) if new else ("new" not in pill.split(">", 1)[1])


def test_a_held_tasks_page_leads_to_the_decision_and_gives_the_reason_once(small_fleet):
    page = text(signed_in("operator").get(small_fleet.task(HOSTILE))).split("<main")[1]
    assert f'<a class="button primary" href="{small_fleet.step(0, HOSTILE)}">Look and decide</a>' in page
    assert "Step 0 needs your decision." in page
    assert len(re.findall(r"held: \w", page)) == 1
    assert "Look and decide" not in text(signed_in("operator").get(small_fleet.task()))


def test_the_list_and_the_page_of_a_task_say_the_same_time_of_its_last_change(small_fleet):
    moved = "2026-11-01T10:15:00.000000Z"
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_task(connection, "moving", revision=rows.BOOT * 3 + 1)
        rows.a_step(connection, "moving", 0, updated_at=moved, revision=rows.BOOT * 3 + 2)
    fleet.reread(small_fleet.triage)
    listed = cells(text(signed_in().get("/tasks/?text=moving")), "changed")
    page = text(signed_in().get(small_fleet.task("moving")))
    told = re.search(r"<dt>last change</dt>\s*<dd><time datetime=\"([^\"]+)\"[^>]*>([^<]+)</time>", page)
    assert told
    assert told[1] == moved
    assert listed == [told[2]]


def test_each_status_query_is_drawn_where_it_was_asked_with_its_answer(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.insert(
            connection, "agent_evidence", task_id="report/42?", step_index=2, attempt=1, answer="exists",
            asked_at="2026-11-01T10:00:07.000000Z", asked_boottime=1.0, os_boot_id="os", source="worker",
            revision=rows.BOOT * 2 + 9,
        )  # fmt: skip
    page = part_of(small_fleet.task(), "task-timeline")
    assert len(re.findall('class="asked signal-exists"', page)) == 1
    assert "<title>status query after attempt 1: exists</title>" in page


def test_branches_are_folded_into_their_task_until_they_are_looked_for(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        for number, name in enumerate(("left", "right")):
            branch = {"parent_id": "report/42?", "status": "completed"}
            rows.a_task(connection, f"report/42?/{name}", revision=rows.BOOT * 3 + number, **branch)
    fleet.reread(small_fleet.triage)
    folded, found = text(signed_in().get("/tasks/")), text(signed_in().get("/tasks/?text=left"))
    assert '<span class="under">2 branches</span>' in folded
    assert small_fleet.task("report/42?/left") not in folded
    assert f'<a href="{small_fleet.task("report/42?/left")}"><bdi>left</bdi></a>' in found
    assert '<span class="under">branch of <bdi>report/42?</bdi></span>' in found
