"""Disk: sizes, slopes, levels and the alerts they open once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psutil
import pytest

from agents import alerts
from agents.disk import samples, volumes
from agents.disk.samples import take_samples, thin_samples
from agents.disk.volumes import full_at, list_volumes, slope_per_day, used_percent
from agents.models import Alert, Beat, DiskSample, JournalFile, PendingIntent, Volume
from journal import clock
from tests.builders.fleet import journal_file, rows, swept, watched, writing

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("percent", "current", "level"),
    [
        (79.9, "ok", "ok"),
        (80.0, "ok", "warning"),
        (78.5, "warning", "warning"),
        (77.9, "warning", "ok"),
        (90.0, "warning", "critical"),
        (88.5, "critical", "critical"),
        (87.9, "critical", "warning"),
        (70.0, "critical", "ok"),
    ],
)
def test_a_level_is_left_only_well_below_its_threshold(percent, current, level):
    assert volumes.disk_level(percent, warn=80, critical=90, current=current) == level


def test_growth_is_the_slope_of_the_readings():
    points = [(NOW + timedelta(minutes=5 * step), 1000 + 10 * step) for step in range(13)]
    assert slope_per_day(points) == 10 * 12 * 24
    assert slope_per_day(points[:2]) is None
    assert slope_per_day(points[:1] * 5) is None


def test_a_volume_that_grows_has_a_day_it_is_full():
    assert full_at(NOW, 100, 50) == NOW + timedelta(days=2)
    assert full_at(NOW, 100, 0) is None
    assert full_at(NOW, 100, -5) is None
    assert full_at(NOW, 10**12, 1) is None


def test_readings_fall_into_ever_coarser_series():
    assert samples.grain(NOW, {}) == 3600
    last = {3600: NOW, 300: NOW}
    assert samples.grain(NOW + timedelta(seconds=30), last) == 30
    assert samples.grain(NOW + timedelta(seconds=300), last) == 300
    assert samples.grain(NOW + timedelta(seconds=3600), last) == 3600


@pytest.fixture
def path(tmp_path, settings):
    watched(tmp_path, settings)
    with writing(tmp_path / "a.db") as connection:
        rows.a_boot(connection)
        rows.a_task(connection)
    swept()
    return tmp_path / "a.db"


@pytest.mark.django_db
def test_a_sample_measures_file_log_and_inbox(path):
    path.with_name("a.db-wal").write_bytes(b"x" * 100)
    inbox = path.with_name("a.db.inbox")
    inbox.mkdir()
    (inbox / "m.json").write_bytes(b"y" * 10)
    take_samples()
    row = journal_file(path)
    assert (row.file_bytes, row.wal_bytes, row.inbox_bytes) == (path.stat().st_size, 100, 10)
    line = list_volumes()[0]
    assert line.journals[0].total_bytes >= row.file_bytes + 110
    assert 0 < line.used_percent < 100
    assert DiskSample.objects.count() == 2


@pytest.mark.django_db
def test_a_volume_is_as_full_as_df_says(path):
    swept()
    take_samples()
    volume = Volume.objects.get()
    usage = psutil.disk_usage(volume.mount)
    percent = used_percent(volume.free_bytes, volume.total_bytes)
    assert percent == pytest.approx(usage.percent, abs=1.0)


@pytest.mark.django_db
def test_old_readings_are_thinned_and_stay_bounded(path):
    row = journal_file(path)
    now = clock.wall()
    DiskSample.objects.bulk_create(
        DiskSample(journal=row, taken_at=now - timedelta(seconds=30 * step), grain=grain, file_bytes=1)
        for grain in (30, 300, 3600)
        for step in range(3000)
    )
    thin_samples()
    kept = DiskSample.objects.filter(journal=row)
    assert kept.filter(grain=30).count() <= 121
    assert kept.filter(grain=300, taken_at__lt=now - timedelta(hours=24, minutes=1)).count() == 0


@pytest.mark.django_db
class TestAlerts:
    @pytest.fixture(autouse=True)
    def _worker_is_alive(self):
        Beat.objects.create(name="worker", beaten_at=clock.wall())

    @pytest.fixture
    def volume(self):
        now = clock.wall()
        JournalFile.objects.create(path="/a.db", volume="/", found_at=now, seen_at=now)
        return Volume.objects.create(mount="/", free_bytes=50, total_bytes=100, sampled_at=now)

    def fill(self, volume, percent):
        volume.free_bytes, volume.total_bytes = int(1000 - percent * 10), 1000
        volume.save()
        alerts.evaluate_alerts(watching_since=clock.wall())

    def late(self, journal, index, since, state="held"):
        return PendingIntent(
            journal=journal,
            task_id="t",
            step_index=index,
            tool_name="send",
            state=state,
            since=since,
            decided_at=since,
        )

    def test_a_volume_that_wavers_around_its_threshold_opens_one_alert(self, volume):
        for percent in (79, 81, 79, 81, 78.5, 80):
            self.fill(volume, percent)
        assert Alert.objects.count() == 1
        assert Alert.objects.get().closed_at is None
        self.fill(volume, 77)
        assert Alert.objects.get().closed_at is not None
        self.fill(volume, 81)
        assert Alert.objects.count() == 2

    def test_a_rising_volume_raises_the_level_of_its_one_alert(self, volume):
        self.fill(volume, 85)
        self.fill(volume, 95)
        assert Alert.objects.get().level == "critical"

    def test_a_big_log_opens_an_alert_and_a_small_one_closes_it(self, volume):
        row = JournalFile.objects.get()
        for size, is_open in ((65, True), (63.9, True), (10, False)):
            row.wal_bytes = int(size * 2**20)
            row.save()
            alerts.evaluate_alerts(watching_since=clock.wall())
            assert Alert.objects.filter(kind="wal", closed_at=None).exists() is is_open

    def test_a_bad_journal_opens_an_alert_that_names_it(self, volume):
        JournalFile.objects.update(kind="truncated", sentence="It is cut off.")
        alerts.evaluate_alerts(watching_since=clock.wall())
        alerts.evaluate_alerts(watching_since=clock.wall())
        line = alerts.list_alerts().items[0]
        assert (line.kind, line.sentence) == ("journal", "Journal /a.db: It is cut off.")
        JournalFile.objects.update(sentence="Journal /a.db: it is no database. (SQLITE_NOTADB)")
        alerts.evaluate_alerts(watching_since=clock.wall())
        assert alerts.list_alerts().items[0].sentence == "Journal /a.db: it is no database. (SQLITE_NOTADB)"
        assert Alert.objects.count() == 1

    @pytest.mark.parametrize(("limit", "words"), [(600, "10 min: 2 held"), (5, "5 s: 3 held")])
    def test_late_intents_of_one_agent_are_one_alert(self, volume, settings, limit, words):
        settings.STEPKEEPER_INTENT_ALERT = limit
        now = clock.wall()
        JournalFile.objects.update(agent="triage")
        for index, minutes in enumerate((5, 20, 30)):
            self.late(JournalFile.objects.get(), index, now - timedelta(minutes=minutes)).save()
        alerts.evaluate_alerts(watching_since=now)
        assert alerts.list_alerts().items[0].sentence == f"Agent triage: intents unsettled for over {words}."

    def test_a_thousand_late_intents_of_one_agent_hide_no_other_agents(self, volume):
        now = clock.wall()
        full = JournalFile.objects.create(path="/full.db", agent="full", found_at=now, seen_at=now)
        other = JournalFile.objects.create(path="/other.db", agent="other", found_at=now, seen_at=now)
        hours = [now - timedelta(hours=2), now - timedelta(hours=1)]
        PendingIntent.objects.bulk_create(self.late(full, n, hours[0], "unresolved") for n in range(1000))
        PendingIntent.objects.bulk_create([self.late(other, 0, hours[1]), self.late(other, 1, hours[1], "unresolved")])
        alerts.evaluate_alerts(watching_since=now)
        assert {line.sentence for line in alerts.list_alerts().items} == {
            "Agent full: intents unsettled for over 10 min: 1,000 pending, 0 of them held.",
            "Agent other: intents unsettled for over 10 min: 2 pending, 1 of them held.",
        }

    def test_a_worker_that_does_not_answer_is_critical_once_it_had_time_to(self, volume):
        Beat.objects.update(beaten_at=clock.wall() - timedelta(minutes=5))
        alerts.evaluate_alerts(watching_since=clock.wall())
        assert not Alert.objects.exists(), "watch itself has only just begun"
        alerts.evaluate_alerts(watching_since=clock.wall() - timedelta(minutes=5))
        assert alerts.list_alerts().items[0].level == "critical"
        Beat.objects.update(beaten_at=clock.wall())
        alerts.evaluate_alerts(watching_since=clock.wall() - timedelta(minutes=5))
        assert alerts.list_alerts().items[0].closed_at is not None
