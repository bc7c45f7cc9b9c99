"""Branches under a task: what is not shown is said, and what is a branch's is not called the parent's."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from journal import Journal, tool
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db
PARENT = "report/42?"
REVISION = rows.BOOT * 2 + 1


@pytest.mark.parametrize(("branches", "below", "left"), [(45, 0, 5), (30, 2, 18), (41, 0, 1)])
def test_branches_that_are_not_shown_are_counted_and_their_cost_makes_the_sum_a_least(
    small_fleet, branches, below, left
):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        connection.execute("BEGIN")
        for number in range(branches):
            name = f"{PARENT}/{number}"
            rows.a_task(connection, name, parent_id=PARENT, status="completed", revision=REVISION)
            rows.a_step(connection, name, 0, effect="model", revision=REVISION)
            fleet.a_model_call(connection, name, 0, revision=REVISION)
            for child in range(below):
                rows.a_task(connection, f"{name}/{child}", parent_id=name, status="completed", revision=REVISION)
        connection.execute("COMMIT")
    page = text(signed_in().get(small_fleet.task()))
    assert page.count('<tr class="branch">') == 40
    assert f"At least {left} more branch" in page
    assert " / ≥ $" in page


def test_a_branch_below_the_deepest_level_is_counted(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        for depth in range(1, 5):
            name, parent = PARENT + "/x" * depth, PARENT + "/x" * (depth - 1)
            rows.a_task(connection, name, parent_id=parent, status="completed", revision=REVISION)
    page = text(signed_in().get(small_fleet.task()))
    assert page.count('<tr class="branch">') == 3
    assert "At least 1 more branch is neither shown here nor counted in the cost" in page


def test_what_a_branch_waits_for_is_told_as_the_branchs(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        left = f"{PARENT}/left"
        wait = {"wait_kind": "held", "wait_step_task": left, "wait_step_index": 0, "wait_hold": "no_key_no_status"}
        connection.execute(
            f"UPDATE agent_task SET status = 'waiting', {', '.join(f'{name} = ?' for name in wait)} WHERE task_id = ?",
            (*wait.values(), PARENT),
        )
        rows.a_task(
            connection, left, parent_id=PARENT, status="waiting",
            revision=REVISION, **wait,
        )  # fmt: skip
        held: dict[str, Any] = {
            "status": "pending",
            "output_json": None,
            "committed_boot": None,
            "hold_reason": "no_key_no_status",
        }
        rows.a_step(connection, left, 0, revision=REVISION, **held)
        connection.execute("UPDATE agent_task SET revision = ? WHERE task_id = ?", (REVISION, PARENT))
    fleet.reread(small_fleet.triage)
    page = text(signed_in().get(small_fleet.task()))
    assert "Step 0 of its branch report/42?/left needs your decision." in page
    assert "held at step 0 of a branch: outcome unknown" in text(signed_in().get("/tasks/?text=42"))
    left = text(signed_in().get(small_fleet.task(f"{PARENT}/left")))
    assert "Step 0 needs your decision." in left
    assert "of a branch" not in left


def test_a_task_that_only_fans_out_shows_its_branches(tmp_path, settings, db):
    settings.STEPKEEPER_JOURNALS = ()

    @tool(effect="read_only")
    def look(n: int) -> int:
        return n

    with Journal(tmp_path / "family.db", agent="family", tools=[look]) as journal, journal.task("parent") as task:
        for name in ("alpha", "beta"):
            with task.branch(name) as branch:
                branch.run(look, n=1)
    fleet.watched(tmp_path, settings)
    fleet.swept()
    page = text(signed_in().get(reverse("task", args=[fleet.journal_file(tmp_path / "family.db").pk, "parent"])))
    for name in ("alpha", "beta"):
        assert f"<bdi>parent/{name}</bdi>" in page
    assert "It ended before its first step" not in page
