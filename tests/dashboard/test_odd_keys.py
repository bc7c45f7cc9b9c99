"""Foreign journals with keys no runtime would write: each row is listed, every link opens, nothing hides the rest."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from django.urls import reverse

from journal.cli import main
from journal.reader import Reader
from tests.builders import fleet
from tests.dashboard.ladder import signed_in, text
from tests.journal.rows import hash_only_table, insert, writer

pytestmark = pytest.mark.django_db

BLOB, BROKEN, LONG = "\ufffdA\ufffd", "\ufffdB", "long" * 1500


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "foreign.db"


@pytest.fixture
def maker(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(writer(path, mode="delete")) as connection:
        hash_only_table(connection)
        yield connection


def put(connection: sqlite3.Connection, task_id: object, index: object, **cells: object) -> None:
    row: dict[str, object] = {
        "tool_name": "send", "args_hash": "abc", "status": "committed", "output": '"sent"',
        "created_at": "2026-11-01 10:00:00",
    }  # fmt: skip
    insert(connection, "agent_step_journal", task_id=task_id, step_index=index, **{**row, **cells})


def every_odd_key(connection: sqlite3.Connection) -> None:
    put(connection, b"\xff\x41\xff", 0)
    put(connection, b"\xff\x41\xff", 1, status="pending")
    put(connection, None, 0, status="pending")
    put(connection, "no index", None, status="pending")
    put(connection, "no index", "six")
    put(connection, "no index", 3)
    put(connection, "below", -5)
    put(connection, "lowest", -(2**63))
    put(connection, "beyond", 1e300)
    put(connection, LONG, 0, status="pending")
    put(connection, "broken", 0)
    connection.execute("UPDATE agent_step_journal SET task_id = CAST(x'ff42' AS TEXT) WHERE task_id = 'broken'")


def test_every_page_of_every_odd_key_opens(path, maker, tmp_path, settings):
    every_odd_key(maker)
    fleet.watched(tmp_path, settings)
    fleet.swept()
    client, seen, wanted = signed_in("payload_viewer"), dict[str, int](), ["/", "/tasks/", "/pending/"]
    while wanted:
        address = wanted.pop()
        response = client.get(address)
        seen[address] = response.status_code
        links = (
            re.findall(r'href="(/(?:tasks|steps|pending)/[^"]*)"', text(response)) if "/bytes/" not in address else []
        )
        wanted += [link for link in map(unescape, links) if link not in seen and link not in wanted]
    assert {address: status for address, status in seen.items() if status != 200} == {}
    assert len([address for address in seen if re.fullmatch(r"/tasks/\d+/.+/", address)]) == 8
    assert len([address for address in seen if re.fullmatch(r"/steps/\d+/[^/]+/-?\d+/", address)]) == 10


@pytest.mark.parametrize(("stored", "shown"), [(b"\xff\x41\xff", BLOB), (b"7", "7"), (None, "")])
def test_a_task_whose_id_is_no_text_has_its_timeline_and_its_payloads(path, maker, stored, shown):
    put(maker, stored, 0)
    put(maker, "other", 0)
    reader = Reader(path)
    task, step = reader.task(shown), reader.step(shown, 0)
    assert task is not None
    assert (task.task_id, task.steps, task.odd) == (shown, 1, ("task_id",))
    assert step is not None
    assert (step.task_id, step.output_json, step.odd) == (shown, '"sent"', ("task_id",))
    assert [one.step_index for one in reader.steps(shown)] == [0]
    assert reader.task("neither") is None


def test_broken_text_is_found_and_never_mistaken_for_sound_text_that_looks_alike(path, maker):
    put(maker, "broken", 0)
    maker.execute("UPDATE agent_step_journal SET task_id = CAST(x'ff42' AS TEXT)")
    assert [step.odd for step in Reader(path).steps(BROKEN)] == [("task_id",)]
    put(maker, BROKEN, 4)
    assert [(step.step_index, step.odd) for step in Reader(path).steps(BROKEN)] == [(4, ())]


def test_a_very_long_id_is_cut_told_apart_by_its_hash_and_found(path, maker):
    put(maker, LONG, 0)
    put(maker, LONG + "er", 0)
    reader = Reader(path)
    one, other = (task.task_id for task in reader.tasks().items)
    assert one != other
    assert max(len(one), len(other)) < 200
    assert [step.task_id for step in reader.steps(one)] == [one]
    assert reader.step(other, 0) is not None


def test_of_rows_without_a_whole_index_the_first_has_the_page_and_the_others_say_why_they_have_none(
    path, maker, tmp_path, settings
):
    put(maker, "t", None, tool_name="first")
    put(maker, "t", "six", tool_name="second")
    put(maker, "t", 0, tool_name="third")
    fleet.watched(tmp_path, settings)
    fleet.swept()
    client, pk = signed_in("payload_viewer"), fleet.journal_file(path).pk
    timeline = text(client.get(reverse("task", args=[pk, "t"])))
    assert timeline.count("unreadable: step_index") == 2
    assert timeline.count("no page of its own") == 1
    first = text(client.get(reverse("step", args=[pk, "t", -1])))
    assert "Step -1" in first
    assert "first" in first
    assert "this page shows the first of them" in first
    assert "&quot;sent&quot;" in first


def test_show_json_tells_every_row_of_an_odd_task(path, maker, capsys):
    every_odd_key(maker)
    assert main(["show", str(path), "--json"]) == 0
    tasks = {task["task_id"]: task for task in json.loads(capsys.readouterr().out)["tasks"]}
    assert len(tasks) == 8
    assert [step["step_index"] for step in tasks[BLOB]["steps"]] == [0, 1]
    assert sorted(step["step_index"] for step in tasks["no index"]["steps"]) == [-1, -1, 3]
    assert [step["step_index"] for step in tasks["below"]["steps"]] == [-5]
    assert main(["show", str(path), BLOB, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"][0]["odd"] == ["task_id"]
