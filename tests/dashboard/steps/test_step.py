"""One step's page, and who sees how much of it."""

from __future__ import annotations

import hashlib
import re

import pytest

from agents.models import AuditEvent
from journal.reader import payloads
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.conftest import HOSTILE
from tests.dashboard.ladder import assert_closed, assert_page, assert_unchanged_is_204, part_of, signed_in, text, words

pytestmark = pytest.mark.django_db


def test_the_step_is_a_page_and_a_part(small_fleet):
    page = assert_page(small_fleet.step(2), part="step-now", role="operator")
    assert "journal says" in page
    assert "provider says" in page
    assert page.count("checksum matches") == 2  # the key, and the payload


def test_payload_and_output_stand_with_their_length_and_their_own_hash(small_fleet):
    page = text(signed_in("operator").get(small_fleet.step(2)))
    shown = [
        (words(length), whole, short)
        for length, whole, short in re.findall(
            r'as stored: (.*?)</span>.*?sha256 .*?<code title="(\w+)">(\w+)<', page, re.DOTALL
        )
    ]
    stored = (b'{"number": 2}', b'{"ok": true}')
    hashes = [hashlib.sha256(each).hexdigest() for each in stored]
    assert shown == [(f"{len(each)} bytes", sha, sha[:8]) for each, sha in zip(stored, hashes, strict=True)]


def test_each_attempt_says_its_verdict_and_why(small_fleet):
    page = text(signed_in().get(small_fleet.step(2)))
    assert "sent, no answer recorded" in page
    assert "the process ended in between" in page
    assert "The tool returned." in page  # a Python tool: no provider is known


def test_a_viewer_sees_sizes_hashes_and_equality_and_no_content(small_fleet):
    for url in (small_fleet.step(2), small_fleet.step(0, HOSTILE)):
        page = text(signed_in("viewer").get(url))
        assert "checksum matches" in page
        assert re.search(r"\d+ bytes", page)
        assert "&quot;number&quot;" not in page
        assert '<pre class="bytes"' not in page
        assert "Approve replay" not in page


def test_a_payload_viewer_sees_bytes_and_decides_nothing(small_fleet):
    page = text(signed_in("payload_viewer").get(small_fleet.step(0, HOSTILE)))
    assert '<pre class="bytes"' in page
    assert "Approve replay" not in page


def test_a_tampered_payload_is_told(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        connection.execute(
            "UPDATE agent_step_journal SET arguments_json = '{\"number\": 3}' WHERE tool_name = 'open_issue'"
        )
    page = text(signed_in("operator").get(small_fleet.step(2)))
    assert page.count("checksum DIFFERS") == 2


def test_an_effect_that_may_exist_twice_is_told_on_the_step_and_its_timeline(small_fleet):
    assert "may exist twice" not in text(signed_in().get(small_fleet.step(2)))
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        alarm = "The provider did not mark this answer as a replay: the effect may exist twice."
        connection.execute("UPDATE agent_step_journal SET alarm = ? WHERE step_index = 2", (alarm,))
    for url in (small_fleet.step(2), small_fleet.task()):
        page = text(signed_in().get(url))
        assert page.count("the effect may exist twice") == 1


def test_a_pending_step_polls_and_a_settled_one_does_not(small_fleet):
    assert "hx-trigger" not in part_of(small_fleet.step(2), "step-now")
    url = small_fleet.step(0, HOSTILE)
    assert_unchanged_is_204(url, part="step-now", page=text(signed_in().get(url)))


@pytest.mark.parametrize("index", [7, 2**63 - 1, -1])
def test_an_unknown_step_is_a_404(small_fleet, index):
    assert signed_in().get(small_fleet.step(index)).status_code == 404


@pytest.mark.parametrize("part", ["9223372036854775808", "01", "abc", "1.5", "--1", "9" * 30])
def test_a_step_that_is_no_index_is_a_404(small_fleet, part):
    url = small_fleet.step(2).removesuffix("2/") + f"{part}/"
    assert signed_in().get(url).status_code == 404


def test_a_long_payload_is_cut_and_shown_whole_on_request(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_step(connection, "report/42?", 3, arguments={"text": "x" * 20_000}, revision=rows.BOOT * 2 + 1)
    client = signed_in("operator")
    cut = text(client.get(small_fleet.step(3)))
    assert "Show all 20,012 bytes" in cut
    assert "x" * 10_000 not in cut
    whole = text(client.get(small_fleet.step(3) + "?all=arguments"))
    assert "x" * 20_000 in whole


def test_a_download_is_an_attachment_of_the_exact_bytes_and_audited(small_fleet):
    url = small_fleet.step(0, HOSTILE, name="step") + "bytes/arguments/"
    response = signed_in("payload_viewer").get(url)
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert b'<div hx-post=\\"/approve/1\\"' in response.content
    assert AuditEvent.objects.get(action="payload.download").actor_name == "payload_viewer"
    assert signed_in("viewer").get(url).status_code == 403
    refused = AuditEvent.objects.get(allowed=False)
    assert (refused.actor_name, refused.action) == ("viewer", "open")
    assert url in refused.detail
    assert_closed(url, method="get")
    assert signed_in("viewer").get(url).status_code == 403
    assert signed_in("operator").get(url.replace("arguments", "output")).status_code == 404
    assert signed_in("operator").get(url.replace("arguments", "nonsense")).status_code == 404
    assert signed_in("operator").post(url).status_code == 405


def test_a_download_is_the_whole_payload_however_long(small_fleet):
    text_of = {name: f'{{"{name}": "{"ä" * 700_000}"}}'.encode() for name in ("arguments", "output", "body")}
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_step(connection, "report/42?", 3, output_ref="abc", revision=rows.BOOT * 2 + 1)
        connection.execute(
            "UPDATE agent_step_journal SET arguments_json = ? WHERE step_index = 3", (text_of["arguments"].decode(),)
        )
        rows.insert(connection, "agent_body", sha256="abc", body=text_of["output"].decode())
        request = {"method": "POST", "url": "http://h/", "headers_json": "[]", "refs_json": "[]", "sha256": "x"}
        place = {"task_id": "report/42?", "step_index": 3, "key_generation": 0, "created_at": rows.WHEN}
        rows.insert(connection, "agent_request", **place, **request, body=text_of["body"])
    client = signed_in("operator")
    for name, whole in text_of.items():
        assert client.get(small_fleet.step(3) + f"bytes/{name}/").content == whole
    assert "download 1,400,017 bytes" in text(client.get(small_fleet.step(3)))


def test_a_download_of_broken_text_is_the_broken_bytes(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        connection.execute(
            "UPDATE agent_step_journal SET arguments_json = CAST(X'22FF22' AS TEXT) WHERE tool_name = 'open_issue'"
        )
    assert signed_in("operator").get(small_fleet.step(2) + "bytes/arguments/").content == b'"\xff"'


def test_a_payload_too_long_to_hand_out_is_refused_in_words_and_never_cut(small_fleet, monkeypatch):
    monkeypatch.setattr(payloads, "MOST_HANDED_OUT", 20)
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_step(connection, "report/42?", 3, arguments={"text": "x" * 20}, revision=rows.BOOT * 2 + 1)
    response = signed_in("operator").get(small_fleet.step(3) + "bytes/arguments/")
    assert response.status_code == 503
    assert "arguments: longer than 20 bytes, the most that is handed out at once." in text(response)
    assert "<h1>This is too long to hand out here</h1>" in text(response)
    page = text(signed_in("operator").get(small_fleet.step(3)))
    assert "too long to hand out here: copy the journal with VACUUM INTO" in page
    assert "bytes/arguments/" not in page
    assert "bytes/output/" in page
    assert not AuditEvent.objects.filter(action="payload.download").exists()


def test_a_hash_only_journal_shows_its_step_and_says_it_cannot_be_replayed(tmp_path, settings, db):
    path = tmp_path / "foreign.db"
    with rows.writer(path, mode="delete") as connection:
        rows.hash_only_table(connection)
        rows.insert(
            connection,
            "agent_step_journal",
            task_id="old#1",
            step_index=0,
            tool_name="send",
            args_hash="ab" * 32,
            status="pending",
            output="asked",
            created_at="2026-11-01 10:00:00",
        )
    connection.close()
    fleet.watched(tmp_path, settings)
    fleet.swept()
    pk = fleet.journal_file(path).pk
    client = signed_in("operator")
    assert "send" in text(client.get(f"/tasks/{pk}/b2xkIzE/"))
    page = text(client.get(f"/steps/{pk}/b2xkIzE/0/"))
    assert "can never be replayed" in page
    assert "Approve replay" not in page
    assert client.get(f"/steps/{pk}/b2xkIzE/0/bytes/output/").content == b"asked"
    assert client.get(f"/steps/{pk}/b2xkIzE/0/bytes/arguments/").status_code == 404
    assert "never replayable" in text(client.get("/journals/"))
