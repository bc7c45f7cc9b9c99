"""A task of more steps than a page: nothing falls between two pages, and no page claims to be the whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest
from django.urls import reverse

from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.conftest import Fleet
from tests.dashboard.ladder import cells, signed_in, text

pytestmark = pytest.mark.django_db
REVISION = rows.BOOT * 2 + 1
HELD = {"status": "pending", "output_json": None, "committed_boot": None, "duration": None}


def a_task(small_fleet: Fleet, steps: int, *, last: Mapping[str, Any] | None = None, **task: object) -> str:
    """A task of so many steps, `last` the cells of the last one; returns its address."""
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        connection.execute("BEGIN")
        rows.a_task(connection, "long", revision=REVISION, **{"boot": 2, **task})
        for index in range(steps - 1):
            rows.a_step(connection, "long", index, revision=REVISION + index)
        rows.a_step(connection, "long", steps - 1, revision=REVISION + steps, **(last or {}))
        connection.execute("COMMIT")
    return small_fleet.task("long")


def links(page: str) -> dict[str, str]:
    """The buttons between a task's pages, by their words."""
    return {word: href for href, word in re.findall(r'<a class="button" href="([^"]*)">([^<]+ steps?)</a>', page)}


def indexes(page: str) -> list[int]:
    """The steps on a page."""
    return [int(found) for found in re.findall(r'data-label="step">(\d+)<', page)]


@pytest.mark.parametrize("status", ["running", "waiting", "queued"])
def test_an_unfinished_task_opens_at_its_newest_steps_and_leads_to_its_first(small_fleet, status):
    url = a_task(small_fleet, 450, status=status)
    fleet.reread(small_fleet.triage)
    newest = text(signed_in().get(url))
    assert (indexes(newest)[0], indexes(newest)[-1]) == (250, 449)
    assert links(newest) == {"First steps": f"{url}?after=first"}
    first = text(signed_in().get(f"{url}?after=first"))
    assert (indexes(first)[0], indexes(first)[-1]) == (0, 199)
    assert links(first) == {"Next steps": f"{url}?after=199", "Last steps": f"{url}?after=last"}
    assert indexes(text(signed_in().get(f"{url}?after=last"))) == indexes(newest)


def test_an_ended_task_opens_at_its_first_steps_and_leads_to_its_last(small_fleet):
    url = a_task(small_fleet, 450, status="completed")
    fleet.reread(small_fleet.triage)
    page = text(signed_in().get(url))
    assert indexes(page)[0] == 0
    assert links(page)["Last steps"] == f"{url}?after=last"
    assert indexes(text(signed_in().get(f"{url}?after=last")))[-1] == 449


def test_a_poll_of_a_page_asks_for_that_page_again(small_fleet):
    url = a_task(small_fleet, 450)
    for place in ("first", "last", "199"):
        assert f'hx-get="{url}?after={place}&amp;version=' in text(signed_in().get(f"{url}?after={place}"))
    assert f'hx-get="{url}?version=' in text(signed_in().get(f"{url}?after=nonsense"))


@pytest.mark.parametrize(("status", "never"), [("completed", "ended before its first step"), ("running", "No step")])
def test_a_task_of_exactly_one_page_has_no_second_one(small_fleet, status, never):
    url = a_task(small_fleet, 200, status=status)
    first = text(signed_in().get(url))
    assert first.count('class="step"') == 200
    assert "Next steps" not in first
    past = text(signed_in().get(f"{url}?after=199"))
    assert never not in past.replace("No step past this one.", "")
    assert "No step past this one." in past
    assert "First steps" in past


def test_a_running_task_says_how_far_it_came_on_each_of_its_pages(small_fleet):
    url = a_task(small_fleet, 203)
    with fleet.held(small_fleet.folder / "triage.db") as pid:
        with fleet.writing(small_fleet.folder / "triage.db") as connection:
            connection.execute("UPDATE agent_boot SET pid = ? WHERE boot = 2", (pid,))
        for page in (url, f"{url}?after=199"):
            assert "Running: 203 steps so far." in text(signed_in().get(page))


def test_a_restart_between_two_pages_stands_on_the_later_one(small_fleet):
    later = dict.fromkeys(("created_at", "updated_at"), "2026-11-01T10:00:08.000000Z")
    url = a_task(small_fleet, 201, last=later, status="completed")
    flag = "SIGKILL · restarted"
    assert flag not in text(signed_in().get(url))
    assert flag in text(signed_in().get(f"{url}?after=199"))


def test_an_approval_that_expired_on_a_later_page_is_told_on_the_first(small_fleet):
    url = a_task(small_fleet, 203, last=HELD, status="queued")
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.an_attempt(connection, "long", 202, verdict="unknown", kind="other", revision=REVISION + 300)
        approval = {
            "message_id": "m", "task_id": "long", "step_index": 202, "kind": "replay", "actor": "ada", "reason": "seen",
            "created_at": rows.WHEN, "expires_at": rows.WHEN, "applied_at": rows.WHEN, "outcome": "applied",
            "revision": REVISION + 301,
        }  # fmt: skip
        rows.insert(connection, "agent_decision", **approval)
    fleet.reread(small_fleet.triage)
    page = text(signed_in().get(f"{url}?after=first"))
    assert "Queued: the agent has not taken it yet." not in page
    assert "Waiting: held at step 202" in page
    assert links(page)["Current step"] == f"{url}?after=201"


def test_a_branch_of_more_steps_than_a_page_says_how_many_are_not_shown(small_fleet):
    a_task(small_fleet, 203, last={**HELD, "hold_reason": "outcome_unknown"}, parent_id="report/42?")
    page = text(signed_in().get(small_fleet.task()))
    assert re.search(rf'3 more steps: <a href="{re.escape(small_fleet.task("long"))}">open the branch</a>', page)


def test_a_damaged_index_takes_no_attempt_and_no_cost_from_the_other_steps(small_fleet):
    url = a_task(small_fleet, 2, last={"effect": "model"}, status="completed")
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        fleet.a_model_call(connection, "long", 1, revision=REVISION + 10)
        rows.a_step(connection, "long", "six", revision=REVISION + 11)  # type: ignore[arg-type]
    page = text(signed_in().get(url))
    assert cells(page, "cost") == ["", "$0.005350", ""]
    assert "unreadable: step_index" in page


def test_rows_of_another_maker_that_share_an_index_are_not_torn_apart(tmp_path, settings, still_clock):
    fleet.watched(tmp_path, settings)
    with closing(rows.writer(tmp_path / "foreign.db")) as connection:
        rows.hash_only_table(connection)
        # As a copy it has no key of its own.
        connection.execute("CREATE TABLE keyless AS SELECT * FROM agent_step_journal")
        connection.execute("DROP TABLE agent_step_journal")
        connection.execute("ALTER TABLE keyless RENAME TO agent_step_journal")
        connection.execute("BEGIN")
        for place, index in enumerate([*range(200), 199, 200]):
            rows.insert(
                connection, "agent_step_journal", task_id="t", step_index=index, tool_name=f"tool-{place}",
                args_hash="a", status="committed", output='""', created_at=rows.WHEN,
            )  # fmt: skip
        connection.execute("COMMIT")
    fleet.swept()
    url = reverse("task", args=[fleet.journal_file(tmp_path / "foreign.db").pk, "t"])
    first = text(signed_in().get(url))
    following = re.search(r'href="([^"]+\?after=\d+)"', first)
    assert following
    rest = text(signed_in().get(following[1]))
    found = re.findall(r"<bdi[^>]*>tool-(\d+)<", first + rest)
    assert [int(place) for place in found] == list(range(202))
