"""A damaged row with an id too long for an address: it is listed, and every page around it opens."""

from __future__ import annotations

import pytest

from dashboard.decisions.binding import make_binding, seal_binding
from dashboard.ui.forms import ReasonForm
from dashboard.ui.url_converters import decode_task_id, encode_task_id
from tests.builders import fleet
from tests.builders.fleet import rows
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db
LONG = "long" * 750  # a runtime's id has 512 characters at most


@pytest.fixture
def damaged(small_fleet):
    with fleet.writing(small_fleet.folder / "triage.db") as connection:
        rows.a_task(connection, LONG, status="waiting", wait_kind="held", revision=rows.BOOT * 2 + 1)
        rows.a_step(connection, LONG, 0, status="pending", hold_reason="no_key_no_status", output_json=None,
                    boot=2, revision=rows.BOOT * 2 + 2)  # fmt: skip
        rows.a_task(connection, "child", parent_id=LONG, revision=rows.BOOT * 2 + 3)
    fleet.reread(small_fleet.triage)
    return small_fleet


@pytest.mark.parametrize("url", ["/", "/tasks/", "/pending/"])
def test_lists_hold_a_task_whose_id_is_too_long_for_an_address(damaged, url):
    response = signed_in().get(url)
    assert response.status_code == 200
    assert "longlonglong" in text(response)


def test_a_task_whose_parent_has_too_long_an_id_opens_and_the_parent_is_a_404(damaged):
    client = signed_in()
    assert client.get(damaged.task("child")).status_code == 200
    assert client.get(damaged.task(LONG)).status_code == 404
    assert client.get(damaged.step(0, LONG)).status_code == 404


def test_the_longest_id_of_the_runtime_has_an_address_of_its_own():
    longest = "\U0001f600" * 512
    assert decode_task_id(encode_task_id(longest)) == longest
    with pytest.raises(ValueError, match="Not a task's address"):
        decode_task_id(encode_task_id(LONG))


def test_a_task_with_the_longest_id_can_be_decided():
    made = make_binding(
        journal_id=1,
        task_id="\U0001f600" * 512,
        step_index=0,
        kind="mark_not_applied",
        key="k" * 200,
        payload_sha256="0" * 64,
        dispatches=1,
        user_id=1,
    )
    assert ReasonForm({"binding": seal_binding(made), "reason": "x"}).is_valid()
