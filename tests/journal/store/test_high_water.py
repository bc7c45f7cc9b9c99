"""A restored or copied journal is noticed when it is opened, and sends nothing until a person accepts it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from journal import Journal, StepHeld, clock
from journal.cli import main
from journal.inbox import mailbox
from journal.reader import inspect
from journal.settle.visit import reconcile_file
from journal.store.high_water import HighWater, find_doubt, read_mark
from tests.journal.agent import World, opened, rows, steps_of
from tests.journal.operator import decide

MARK = HighWater(uuid="u", file="1.5", revision=50, synced=40, os_boot_id="os")
HERE = {"uuid": "u", "file": "1.5", "known_as": "1.5", "revision": 50, "os_boot_id": "os"}


def send(path: Path, world: World, until: int, task_id: str = "t") -> None:
    """An agent's start: it recovers, and its handler wants the mails 0 to `until`."""
    with opened(path, world) as journal:
        journal.recover()
        with journal.task(task_id) as task:
            for number in range(until):
                task.run(world.blind, str(number))


def held(path: Path, world: World, until: int) -> str:
    with pytest.raises(StepHeld) as caught:
        send(path, world, until)
    return caught.value.reason


def accept(path: Path, **other: Any) -> str:
    state = inspect(path)
    body = {
        "kind": "decision",
        "decision": "accept_journal",
        "uuid": state.uuid,
        "boot": state.doubt_boot,
        "actor": "ann",
        "reason": "compared with the mail server",
        "expires_at": clock.text(clock.wall() + timedelta(minutes=15)),
    }
    return mailbox.post_message(path, {**body, **other})


def outcomes(path: Path) -> list[str]:
    sql = "SELECT outcome, outcome_detail FROM agent_decision WHERE kind = 'accept_journal' ORDER BY applied_at"
    return [": ".join(filter(None, row.values())) for row in rows(path, sql)]


def replaced_by_cp(path: Path, backup: Path) -> None:
    shutil.copyfile(backup, path)


def replaced_by_another_file(path: Path, backup: Path) -> None:
    path.unlink()
    shutil.copyfile(backup, path)


def replaced_by_mv(path: Path, backup: Path) -> None:
    shutil.copyfile(backup, path.with_name("copy"))
    path.with_name("copy").rename(path)


def restored_by_sqlite(path: Path, backup: Path) -> None:
    with closing(sqlite3.connect(backup)) as old, closing(sqlite3.connect(path)) as new:
        old.backup(new)


def restored_with_its_folder(path: Path, backup: Path) -> None:
    """Nothing beside the file is left either, and the file system may give the same inode again."""
    content = backup.read_bytes()
    backup.unlink()
    for beside in list(path.parent.iterdir()):
        beside.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(
    "restore",
    [replaced_by_cp, replaced_by_another_file, replaced_by_mv, restored_by_sqlite, restored_with_its_folder],
)
@pytest.mark.parametrize("how", ["cp", "VACUUM INTO"])
def test_a_restored_journal_repeats_nothing_until_it_is_accepted(path, how, restore):
    world, backup = World(), path.with_name("backup")
    send(path, world, 5)
    if how == "cp":
        shutil.copyfile(path, backup)
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("VACUUM INTO ?", (str(backup),))
    send(path, world, 9)
    restore(path, backup)
    assert held(path, world, 9) == "restored_copy"
    assert held(path, world, 9) == "restored_copy"
    assert len(world.calls) == 9
    assert [row["status"] for row in steps_of(path, "t")] == ["committed"] * 5 + ["pending"]
    accept(path)
    send(path, world, 9)
    assert ([name for _, name in world.calls[9:]], outcomes(path)) == (["5", "6", "7", "8"], ["applied"])
    send(path, world, 10)
    assert world.calls[-1] == ("blind", "9")


def test_a_copy_of_a_live_journal_under_another_path_sends_nothing_and_the_original_goes_on(path):
    world, copy = World(), path.with_name("copy.db")
    with opened(path, world) as journal, journal.task("t") as task:
        task.run(world.blind, "0")
        shutil.copyfile(path, copy)
        assert held(copy, world, 9) == "restored_copy"
        task.run(world.blind, "1")
    assert (len(world.calls), inspect(copy).doubt, inspect(path).doubt) == (2, "copied", "")
    send(path, world, 3)


def test_a_copied_folder_sends_nothing(path, tmp_path):
    world = World()
    send(path, world, 2)
    (tmp_path / "restored").mkdir()
    for beside in ("j.db", "j.db.mark"):
        shutil.copy2(tmp_path / beside, tmp_path / "restored" / beside)
    assert held(tmp_path / "restored" / "j.db", world, 3) == "restored_copy"


@pytest.mark.parametrize("with_mark", [True, False])
def test_a_journal_that_was_moved_is_the_same_journal(path, with_mark):
    world, moved = World(), path.with_name("moved.db")
    send(path, world, 2)
    path.rename(moved)
    if with_mark:
        path.with_name("j.db.mark").rename(path.with_name("moved.db.mark"))
    send(moved, world, 3)
    assert len(world.calls) == 3


def test_a_journal_begun_anew_where_another_stood_sends_nothing(path):
    world = World()
    send(path, world, 2)
    path.unlink()
    assert (held(path, world, 2), inspect(path).doubt, len(world.calls)) == ("restored_copy", "replaced", 2)


def test_a_visitor_notices_a_copy_too(path):
    world = World(fail=SystemExit())
    with opened(path, world) as journal, pytest.raises(SystemExit), journal.task("t") as task:
        task.run(world.write, "a")
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    report = reconcile_file(copy, role="cli")
    assert (report.held, inspect(copy).doubt) == (1, "copied")
    assert steps_of(copy, "t")[0]["hold_reason"] == "restored_copy"


def test_reads_go_on_and_what_one_person_approved_is_sent(path):
    world, copy = World(), path.with_name("copy.db")
    send(path, world, 1)
    shutil.copyfile(path, copy)
    with opened(copy, world) as journal, pytest.raises(StepHeld), journal.task("new") as task:
        task.run(world.blind, "a")
    with opened(copy, world) as journal, journal.task("reads") as task:
        assert task.run(world.read, 1)["number"] == 1
    decide(copy, "replay", "new", dispatches=0)
    with opened(copy, world) as journal:
        journal.recover()
        with journal.task("new") as task:
            assert task.run(world.blind, "a") == "a"
            with pytest.raises(StepHeld):
                task.run(world.blind, "b")
    assert world.names() == ["blind", "read", "blind"]


@pytest.mark.parametrize(
    ("other", "outcome"),
    [
        ({"boot": 1}, "refused: the journal is not in the state that was shown"),
        ({"uuid": "another"}, "refused: the journal is not in the state that was shown"),
        (
            {"expires_at": "2026-01-01T00:00:00.000000Z"},
            "expired: its time was over before the journal's writer took it in",
        ),
    ],
)
def test_an_acceptance_of_another_state_is_refused(path, other, outcome):
    world, copy = World(), path.with_name("copy.db")
    send(path, world, 1)
    shutil.copyfile(path, copy)
    held(copy, world, 2)
    accept(copy, **other)
    assert (held(copy, world, 2), outcomes(copy)) == ("restored_copy", [outcome])


def test_an_acceptance_is_used_once_and_a_further_copy_is_noticed(path):
    world, copy = World(), path.with_name("copy.db")
    send(path, world, 1)
    shutil.copyfile(path, copy)
    held(copy, world, 2)
    state = inspect(copy)
    accept(copy)
    accept(copy, uuid=state.uuid, boot=state.doubt_boot)
    send(copy, world, 2)
    assert outcomes(copy) == ["applied", "refused: nothing about this journal is in doubt"]
    shutil.copyfile(copy, path.with_name("third.db"))
    assert held(path.with_name("third.db"), world, 3) == "restored_copy"


def test_accept_on_the_command_line_frees_the_journal(path, capsys):
    world, copy = World(), path.with_name("copy.db")
    send(path, world, 1)
    shutil.copyfile(path, copy)
    assert main(["accept", str(path), "--reason", "why"]) == 2
    held(copy, world, 2)
    assert main(["accept", str(copy), "--reason", "the original is gone"]) == 0
    assert "It is a copy of the file that its last writer wrote" in capsys.readouterr().out
    send(copy, world, 2)
    assert rows(copy, "SELECT reason FROM agent_decision")[0]["reason"] == "the original is gone"


def test_a_revision_given_out_for_no_row_is_no_high_water(path):
    world = World()
    with opened(path, world) as journal:
        with journal.task("t") as task:
            task.run(world.blind, "0")
        for _ in range(3):
            journal.store.write(
                lambda tx: tx.execute("UPDATE agent_task SET revision = ? WHERE task_id = ''", (tx.revision(),)),
                sync=True,
            )
        highest = journal.store.read(lambda tx: tx.highest_revision())
        mark = read_mark(path)
    assert mark is not None
    assert mark.revision == highest
    send(path, world, 2)


def test_a_new_journal_says_whose_copy_its_copy_is_before_its_log_was_taken_up(path):
    with Journal(path, agent="a"):
        shutil.copyfile(path, path.with_name("copy.db"))
        with Journal(path.with_name("copy.db"), agent="a"):
            assert inspect(path.with_name("copy.db")).doubt == "copied"


@pytest.mark.parametrize(
    ("mark", "found", "doubt"),
    [
        (MARK, {}, None),
        # A kill between a commit and its mark leaves the mark behind.
        (MARK, {"revision": 60}, None),
        (MARK, {"revision": 49}, "older"),
        # A power cut takes back what was not synced, and only that.
        (MARK, {"revision": 40, "os_boot_id": "next"}, None),
        (MARK, {"revision": 39, "os_boot_id": "next"}, "older"),
        (HighWater("u", "1.5", 50, 40, ""), {"revision": 45, "os_boot_id": ""}, None),
        (MARK, {"file": "1.6"}, "copied"),
        (MARK, {"file": "1.6", "known_as": "1.6", "revision": 90}, "copied"),
        (MARK, {"uuid": "v"}, "replaced"),
        (None, {"file": "2.1"}, "copied"),
        (None, {}, None),
        (None, {"known_as": ""}, None),
    ],
)
def test_what_a_mark_proves(mark, found, doubt):
    assert find_doubt(mark, **{**HERE, **found}) == doubt
