"""Which of several files with one id is the journal: the whole table."""

from __future__ import annotations

from itertools import permutations

import pytest

from agents.catalog.identity import Claim, choose_original

OWN, BACKUP = "own.db", "backup.db"


@pytest.mark.parametrize(
    ("own", "backup"),
    [
        pytest.param({"indexed": True}, {"revision": 9}, id="indexed before newer"),
        pytest.param({"indexed": True}, {"changed_ns": -1}, id="indexed before changed earlier"),
        pytest.param(
            {"indexed": True, "revision": 9}, {"held": True}, id="indexed before one that lacks what was read"
        ),
        pytest.param({"held": True}, {"indexed": True}, id="written by an agent, with all that was read"),
        pytest.param({"held": True, "revision": 9}, {"indexed": True}, id="written on by an agent"),
        pytest.param(
            {"indexed": True, "held": True}, {"held": True, "revision": 9}, id="indexed where both are written"
        ),
        pytest.param({"held": True}, {"revision": 9}, id="written before newer"),
        pytest.param({"revision": 9}, {"changed_ns": -1}, id="newer before changed earlier"),
        pytest.param({"changed_ns": 1}, {"changed_ns": 2}, id="changed first"),
    ],
)
def test_the_journal_is_told_from_its_copy(own, backup):
    claims = (Claim(OWN, **own), Claim(BACKUP, **backup))
    assert {choose_original(order).path for order in permutations(claims)} == {OWN}


def test_of_files_nothing_tells_apart_the_path_decides_in_whatever_order_they_are_found():
    claims = (Claim("a.db"), Claim("b.db"), Claim("c.db"))
    assert {choose_original(order).path for order in permutations(claims)} == {"a.db"}
