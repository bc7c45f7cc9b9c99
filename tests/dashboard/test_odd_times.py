"""Times at the ends of the calendar, as a broken clock or a hostile writer leaves them: marked, never a failed page."""

from __future__ import annotations

import pytest
from django.utils import timezone

from dashboard.timeline.axis import Axis
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.ladder import signed_in

pytestmark = pytest.mark.django_db
FIRST, LAST = "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"


@pytest.mark.parametrize("zone", ["America/New_York", "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("when", [FIRST, LAST])
def test_every_page_shows_what_happened_at_the_end_of_time(small_fleet, zone, when):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_task(connection, "odd", created_at=when, updated_at=when, revision=2 * rows.BOOT + 100)
        for index, status in enumerate(("committed", "pending")):
            rows.a_step(
                connection,
                "odd",
                index,
                status=status,
                created_at=when,
                updated_at=when,
                next_attempt_at=when,
                revision=2 * rows.BOOT + 101 + index,
            )
            rows.an_attempt(connection, "odd", index, started_at=when, ended_at=LAST, revision=2 * rows.BOOT + 110)
            fleet.a_model_call(
                connection, "odd", index, started_at=when, ended_at=when, revision=2 * rows.BOOT + 120 + index
            )
        fleet.a_run(connection, "odd", started_at=when, served_through=1, revision=2 * rows.BOOT + 130)
    with timezone.override(zone):
        fleet.reread(small_fleet.triage)
        client = signed_in("operator")
        urls = [small_fleet.task("odd"), *(small_fleet.step(index, "odd") for index in (0, 1))]
        for url in (*urls, "/", "/tasks/", "/pending/", "/spend/", "/audit/", "/journals/"):
            assert client.get(url).status_code == 200, url


def test_an_axis_over_all_of_time_has_a_handful_of_ticks():
    ticks = Axis.over([(-62135596800.0, 253402300799.0)]).ticks()
    assert 2 <= len(ticks) <= 9
