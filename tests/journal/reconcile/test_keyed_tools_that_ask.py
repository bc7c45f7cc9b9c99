"""A tool that has both a key and a status query gets at least as far as one that has the key alone."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest

from journal import Journal, http_tool
from journal.request import Request
from tests.journal.agent import python, rows, steps_of
from tests.journal.raw_server import answer, json_answer
from tests.journal.raw_server import serving as listening

# The first call raises. The process is killed while its status is asked, and the next start may come late.
KILLED_WHILE_ASKING = """
    import os, sys
    from datetime import timedelta
    from journal import Journal, tool

    path, more = sys.argv[1], sys.argv[2] == "asks"

    def status(call):
        if not os.path.exists(path + ".killed"):
            open(path + ".killed", "w").close()
            os.kill(os.getpid(), 9)

    def pay(call, n: int) -> dict:
        with open(path + ".keys", "a") as file:
            print(call.key, file=file)
        if len(open(path + ".keys").readlines()) == 1:
            if not more:
                os.kill(os.getpid(), 9)
            raise ConnectionRefusedError("refused")
        return {"id": 1}

    asking = {"status": status} if more else {}
    with Journal(path, agent="a", tools=[tool(effect="mutating", keyed=timedelta(hours=24), **asking)(pay)]) as journal:
        journal.recover()
        with journal.task("t") as task:
            print(task.run(journal.tools["pay"], n=1))
"""
PROFILE = {
    "key": {"placement": "header", "name": "K"},
    "retention": {"for": "24h", "kind": "at_least"},
    "status": {
        "request": "GET /status/{key}",
        "absence": "authoritative",
        "interpret": [
            {"status": 200, "is": "exists"},
            {"status": 102, "is": "in_progress"},
            {"status": 404, "is": "absent"},
        ],
    },
}


@pytest.mark.parametrize("asks", ["asks", "key alone"])
@pytest.mark.parametrize("pause", [timedelta(0), timedelta(minutes=20), timedelta(hours=20)])
def test_a_call_that_raised_is_replayed_while_the_key_is_kept_however_long_the_process_was_down(
    path, clock_at, pause, asks
):
    clock_at(0)
    assert python(KILLED_WHILE_ASKING, path, asks).returncode == -signal.SIGKILL
    clock_at(pause.total_seconds())
    again = python(KILLED_WHILE_ASKING, path, asks)
    assert again.stdout == "{'id': 1}\n", again.stderr
    keys = path.with_name("j.db.keys").read_text().split()
    assert keys == [steps_of(path, "t")[0]["idempotency_key"]] * 2


def test_an_accepted_request_is_asked_for_until_it_is_done_and_never_sent_again(path):
    asked = [404, 200]

    def script(connection, request):
        if request.startswith(b"POST"):
            answer(202)(connection, request)
        else:
            json_answer(asked.pop(0), b'{"id": 7}')(connection, request)

    with listening(script) as server:

        @http_tool(effect="mutating", provider="p")
        def post(number: int) -> Request:
            return Request("POST", f"{server.url}/orders", json={"number": number})

        with Journal(path, agent="a", tools=[post], providers={"p": PROFILE}) as journal, journal.task("t") as task:
            assert task.run(post, 1) == {"id": 7}
    assert [request.split(b" ")[0] for request in server.received] == [b"POST", b"GET", b"GET"]


def test_the_journal_says_whether_the_first_byte_of_a_request_was_due(path):
    with listening(json_answer(200, b"{}")) as server:
        url = server.url

        @http_tool(effect="mutating", provider="p")
        def post(number: int) -> Request:
            return Request("POST", url, json={"number": number})

        with Journal(path, agent="a", tools=[post], providers={"p": PROFILE}, max_wait=0) as journal:
            with journal.task("sent") as task:
                task.run(post, 1)
            server.close()
            with pytest.raises(BaseException, match="is due again"), journal.task("refused") as task:
                task.run(post, 1)
    found = rows(path, "SELECT task_id, sent_at IS NOT NULL AS sent, verdict FROM agent_step_attempt ORDER BY task_id")
    assert [tuple(row.values()) for row in found] == [("refused", 0, "not_sent"), ("sent", 1, "applied")]
