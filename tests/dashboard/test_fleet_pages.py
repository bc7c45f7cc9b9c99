"""Spend, disk, alerts, audit and journals: each a page, a part, and an empty state."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from agents import alerts
from agents.access import audit
from agents.models import Alert, JournalFile, Volume
from journal import clock
from journal.reader import Reader
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.conftest import HOSTILE
from tests.dashboard.ladder import (
    assert_a_poll_brings_the_same_page,
    assert_page,
    assert_unchanged_is_204,
    cells,
    signed_in,
    text,
    words,
)

pytestmark = pytest.mark.django_db
PAGES = {
    "/spend/": ("spend-table", "No model call in this range"),
    "/disk/": ("disk-volumes", "No sample yet"),
    "/alerts/": ("alerts-list", "Nothing is wrong"),
    "/audit/": ("audit-table", "Nothing on record yet"),
    "/journals/": ("journals-table", "No journal found"),
}


@pytest.fixture
def paid_twice(small_fleet):
    """The small fleet, in which one model call was served from the journal, and a second one that was not."""
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_task(connection, "unserved", status="completed", revision=rows.BOOT * 2 + 1)
        rows.a_step(
            connection, "unserved", 0, tool_name="call_model", effect="model", boot=2, revision=rows.BOOT * 2 + 2
        )
        fleet.a_model_call(connection, "unserved", 0, boot=2, revision=rows.BOOT * 2 + 3)
    fleet.reread(small_fleet.triage)
    return small_fleet


@pytest.mark.parametrize("url", PAGES)
def test_an_empty_page_says_what_would_appear_and_the_command(db, settings, still_clock, url):
    settings.STEPKEEPER_JOURNALS = ()
    part, title = PAGES[url]
    page = assert_page(url, part=part)
    assert title in page
    assert "<pre>" in page.split(title)[1]


@pytest.mark.parametrize("url", PAGES)
def test_a_full_page_is_a_page_and_a_part(small_fleet, url):
    assert_page(url, part=PAGES[url][0])


@pytest.mark.parametrize("cut", ["day", "agent", "model", "tool", "nonsense", ""])
@pytest.mark.parametrize("over", ["24h", "7d", "30d", "nonsense"])
def test_spend_has_every_cut_over_every_range_and_saved_beside_spent(paid_twice, cut, over):
    page = text(signed_in().get(f"/spend/?by={cut}&over={over}"))
    row_and_total = {
        "calls": "2",
        "input": "400",
        "cache read": "1,600",
        "cache write": "—",
        "visible output": "400",
        "reasoning": "600",
        "spent": "$0.0107",
        "saved tokens": "1,500",
        "saved": "$0.005350",
    }
    assert {label: cells(page, label) for label in row_and_total} == {
        label: [said, said] for label, said in row_and_total.items()
    }
    assert re.findall(r'class="figure(?: saved)?">([^<]+)<', page) == ["$0.0107", "$0.005350"]
    assert "3,000 tokens in 2 calls" in words(page)
    assert "1,500 tokens served from the journal" in page
    assert "genai-prices" in page


def test_the_tiles_say_what_was_spent_and_saved_today_and_how_full_the_disk_is(paid_twice):
    JournalFile.objects.update(volume="/data")
    Volume.objects.create(mount="/data", free_bytes=5 * 2**30, total_bytes=100 * 2**30, sampled_at=clock.wall())
    tiles = re.findall(r'<a class="(tile[^"]*)" href="([^"]+)">(.*?)</a>', text(signed_in().get("/")), re.DOTALL)
    assert [(kind, href, words(said)) for kind, href, said in tiles[2:]] == [
        ("tile", "/spend/", "spent today $0.0107 saved by resume: $0.005350"),
        ("tile waits", "/disk/", "disk 95 % 5.0 GiB free on /data"),
    ]


def test_what_has_no_price_is_unpriced_and_never_free(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        connection.execute("UPDATE agent_model_call SET model = 'nobody-knows-it', revision = revision + 8589934592")
    fleet.reread(small_fleet.triage)
    page = text(signed_in().get("/spend/"))
    assert "1 call unpriced" in page
    assert "tokens not reported" not in page
    assert "$0<" not in page


def test_usage_that_was_not_reported_is_not_zero_tokens(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        unknown = (
            "in_uncached = NULL, in_cache_read = NULL, in_cache_write = NULL, out_visible = NULL, out_reasoning = NULL"
        )
        connection.execute(f"UPDATE agent_model_call SET {unknown}, revision = revision + 8589934592")
    fleet.reread(small_fleet.triage)
    assert "1 call unpriced, tokens not reported" in " ".join(text(signed_in().get("/spend/")).split())


def test_disk_draws_the_volume_with_its_thresholds(small_fleet):
    now = clock.wall()
    JournalFile.objects.update(volume="/data", file_bytes=10**9)
    Volume.objects.create(
        mount="/data", free_bytes=5 * 10**9, total_bytes=10**11, growth_per_day=10**9, full_at=None, sampled_at=now
    )
    page = text(signed_in().get("/disk/"))
    assert "95.0 % used" in page
    assert 'class="limit" x1="90.000%"' in page
    assert "critical" in page
    assert "4.7 GiB free of 93.1 GiB" in page


def test_disk_lists_what_each_journal_takes_and_how_it_grows(small_fleet):
    known = {"volume": "/data", "file_bytes": 3 * 2**20, "wal_bytes": 65 * 2**20}
    JournalFile.objects.update(**known, inbox_messages=2, growth_per_day=9 * 2**20)
    found = small_fleet.triage.found_at
    JournalFile.objects.create(path="/b.db", agent="b", file_bytes=9000, volume="/data", found_at=found, seen_at=found)
    Volume.objects.create(mount="/data", free_bytes=10**10, total_bytes=10**11, sampled_at=clock.wall())
    page = text(signed_in().get("/disk/"))
    assert re.findall(r'<span class="small"><bdi>([^<]+)<', page) == [small_fleet.triage.path, "/b.db"]
    assert cells(page, "file") == ["3.0 MiB", "9,000 bytes"]
    assert cells(page, "log (WAL)") == ["large 65.0 MiB", "0 bytes"]
    assert cells(page, "inbox") == ["2 messages", "0 messages"]
    assert cells(page, "growth a day") == ["9.0 MiB", "—"]


def test_disk_says_that_journals_grow_where_the_rest_of_the_volume_shrinks(small_fleet):
    now = clock.wall()
    JournalFile.objects.update(volume="/data", file_bytes=10**9, growth_per_day=9 * 2**20)
    Volume.objects.create(
        mount="/data", free_bytes=5 * 10**9, total_bytes=10**11, growth_per_day=-(10**6), full_at=None, sampled_at=now
    )
    page = text(signed_in().get("/disk/"))
    assert "its journals grow 9.0 MiB a day; the volume as a whole does not fill." in page
    assert "do not grow" not in page


def test_open_alerts_stand_first_and_closed_ones_below(small_fleet):
    now = clock.wall()
    for number, closed in ((1, None), (2, now)):
        Alert.objects.create(
            kind="disk",
            subject=str(number),
            level="critical",
            sentence=f"{HOSTILE} {number}",
            opened_at=now,
            changed_at=now,
            closed_at=closed,
        )
    page = text(signed_in().get("/alerts/"))
    assert page.index("&lt;/div&gt; 1") < page.index("<h2>Closed</h2>") < page.index("&lt;/div&gt; 2")
    assert_unchanged_is_204("/alerts/", part="alerts-list", page=page)


def test_open_alerts_go_on_on_the_next_page_which_does_not_say_that_nothing_is_wrong(db, still_clock, monkeypatch):
    now, page_of = still_clock, alerts.list_alerts
    monkeypatch.setattr(alerts, "list_alerts", lambda *, after="": page_of(after=after, limit=3))
    for number in range(7):  # 0 and 1 are over; 2, 3, 4, 5 wrong; 6 critical
        Alert.objects.create(
            kind="journal",
            subject=str(number),
            level="critical" if number == 6 else "warning",
            sentence=f"Thing {number}.",
            opened_at=now + timedelta(seconds=number // 2),
            changed_at=now,
            closed_at=now if number < 2 else None,
        )
    client, url, told = signed_in(), "/alerts/", []
    while url:
        page = text(client.get(url))
        told.append(re.findall(r"Thing (\d)", page))
        assert "Nothing is wrong" not in page
        assert_unchanged_is_204(url, part="alerts-list", page=page)
        assert_a_poll_brings_the_same_page(part="alerts-list", page=page)
        more = re.search(r'href="(/alerts/\?after=[^"]+)">More alerts<', page)
        url = more[1] if more else ""
    assert told == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    Alert.objects.update(closed_at=now)
    assert "Nothing is wrong now." in text(client.get("/alerts/"))


@pytest.mark.parametrize(("url", "part"), [("/disk/", "disk-volumes"), ("/journals/", "journals-table")])
def test_pages_with_ages_follow_by_themselves(small_fleet, url, part):
    assert_unchanged_is_204(url, part=part, page=text(signed_in().get(url)))


def test_the_audit_can_be_narrowed_to_a_person_and_to_refusals(small_fleet):
    audit.record_event("request replay", actor=fleet.a_person("ada"), detail=HOSTILE)
    audit.record_event("request abandon", actor=fleet.a_person("eve", "viewer"), allowed=False)
    client = signed_in()
    assert "request replay" in text(client.get("/audit/?actor=ada"))
    assert "request replay" not in text(client.get("/audit/?actor=eve"))
    refusals = text(client.get("/audit/?refused=1"))
    assert "request abandon" in refusals
    assert "request replay" not in refusals


@pytest.mark.parametrize("url", ["/audit/", "/alerts/"])
def test_a_cursor_that_is_none_is_a_404(db, url):
    assert signed_in().get(f"{url}?after=nonsense").status_code == 404


@pytest.mark.parametrize("url", ["/", "/tasks/", "/pending/", "/spend/", "/disk/", "/alerts/", "/audit/", "/journals/"])
def test_a_page_of_the_fleet_opens_no_journal(small_fleet, monkeypatch, url):
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a fleet page opened a journal")

    monkeypatch.setattr(Reader, "__init__", opened)
    monkeypatch.setattr("journal.reader.open.read_journal", opened)
    assert signed_in("operator").get(url).status_code == 200


def test_a_bad_journal_is_a_card_and_the_others_are_unaffected(small_fleet, settings):
    (small_fleet.folder / "broken.db").write_bytes(b"no database at all" * 40)
    (small_fleet.folder / "empty.db").touch()
    (small_fleet.folder / "folder.db").mkdir()
    fleet.swept()
    page = text(signed_in().get("/journals/"))
    assert page.count('class="note bad"') == 3
    assert 'href="/tasks/?agent=triage"' in page
    assert "report/42?" in text(signed_in().get("/tasks/"))


@pytest.mark.parametrize("kind", ["ok", "truncated"])
def test_that_a_file_was_seen_again_is_no_change_of_the_journals_page(small_fleet, kind):
    JournalFile.objects.update(kind=kind, sentence="It is cut off.")
    page = text(signed_in().get("/journals/"))
    JournalFile.objects.update(seen_at=clock.wall() + timedelta(seconds=10), wal_bytes=4096)
    assert_unchanged_is_204("/journals/", part="journals-table", page=page)
    assert "Seen <time" not in page
    JournalFile.objects.update(kind="vanished")
    assert "Seen <time" in text(signed_in().get("/journals/"))


def test_no_two_agents_of_the_spend_chart_share_a_colour_and_all_others_are_drawn_last(small_fleet):
    for number in range(9):
        path = small_fleet.folder / f"more{number}.db"
        with fleet.writing(path, agent=f"agent-{number}") as connection:
            rows.a_boot(connection, 1)
            rows.a_task(connection, "t")
            rows.a_step(connection, "t", 0, effect="model")
            fleet.a_model_call(connection, "t", 0)
    fleet.swept()
    page = text(signed_in().get("/spend/?by=agent&over=30d"))
    keys = re.findall(r'<rect class="hue-(\d)" width="10" height="10" /></svg><bdi>([^<]+)</bdi>', page)
    assert len(keys) == 7
    assert len({hue for hue, _ in keys}) == 7
    assert keys[-1] == ("6", "all others")


def test_each_alert_leads_to_what_it_is_about(small_fleet, settings):
    settings.STEPKEEPER_INTENT_ALERT = 60
    (small_fleet.folder / "torn.db").write_bytes(b"no database at all, and longer than a header has to be" * 20)
    fleet.swept()
    alerts.evaluate_alerts(watching_since=clock.wall() - timedelta(hours=1))
    page = text(signed_in().get("/alerts/"))
    torn = fleet.journal_file(small_fleet.folder / "torn.db")
    assert set(re.findall(r'<p><a href="([^"]+)">', page)) == {
        "/pending/?agent=triage", f"/journals/#journal-{torn.pk}", "/healthz",
    }  # fmt: skip
    assert f'id="journal-{torn.pk}"' in text(signed_in().get("/journals/"))


def test_the_queue_of_one_agent_holds_that_agents_intents_alone(small_fleet):
    page = assert_page("/pending/?agent=triage", part="pending-queue")
    assert "One intent needs your decision." in page
    assert "Of agent <bdi>triage</bdi> alone." in page
    assert_a_poll_brings_the_same_page(part="pending-queue", page=page)
    assert "Nothing is pending." in text(signed_in().get("/pending/?agent=other"))
