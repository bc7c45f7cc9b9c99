"""A call whose usage is in doubt: its step, its task, the list and the spend say the same of it."""

from __future__ import annotations

import re

import pytest

from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.ladder import cells, signed_in, text

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("doubt", [{"state": "partial"}, {"state": "open"}, {"in_cache_read": 10**9}])
def test_a_call_whose_usage_is_in_doubt_is_unpriced_on_every_page(small_fleet, doubt):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_task(connection, "doubtful", revision=rows.BOOT * 2 + 1)
        rows.a_step(connection, "doubtful", 0, tool_name="call_model", effect="model", revision=rows.BOOT * 2 + 2)
        fleet.a_model_call(connection, "doubtful", 0, revision=rows.BOOT * 2 + 3, **doubt)
    fleet.reread(small_fleet.triage)
    client = signed_in()
    timeline, step = text(client.get(small_fleet.task("doubtful"))), text(client.get(small_fleet.step(0, "doubtful")))
    assert (cells(timeline, "cost"), cells(step, "cost")) == (["unpriced"], ["unpriced"])
    listed = text(client.get("/tasks/?text=doubtful"))
    assert cells(listed, "cost") == ["unpriced"]
    assert cells(listed, "tokens") == cells(timeline, "tokens")
    assert re.search(r"unpriced", text(client.get("/spend/")))
