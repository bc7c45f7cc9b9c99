"""The disk page's bar: every byte of a volume's journals is drawn as used."""

from __future__ import annotations

import re

import pytest

from agents.models import JournalFile, Volume
from journal import clock
from tests.dashboard.ladder import signed_in, text

pytestmark = pytest.mark.django_db
BLOCK = re.compile(r'<rect class="(?:other|hue-\d)"[^>]* width="([\d.]+)%"[^>]*><title>([^<]+)</title>')


@pytest.mark.parametrize(
    ("journals", "last"), [(6, "agent-5: 1.0 GiB"), (7, "1 more journal: "), (9, "3 more journals: ")]
)
def test_journals_that_are_not_drawn_by_themselves_share_a_block(db, still_clock, journals, last):
    for number in range(journals):
        path, times = f"/data/{number}.db", {"found_at": still_clock, "seen_at": still_clock}
        JournalFile.objects.create(path=path, agent=f"agent-{number}", volume="/data", file_bytes=2**30, **times)
    Volume.objects.create(mount="/data", free_bytes=50 * 2**30, total_bytes=100 * 2**30, sampled_at=clock.wall())
    blocks = BLOCK.findall(text(signed_in().get("/disk/")))
    assert len(blocks) == 1 + min(journals, 7)
    assert blocks[-1][1].startswith(last)
    assert sum(float(width) for width, _ in blocks) == pytest.approx(50)


def test_an_agent_whose_name_turns_text_around_is_told_apart_in_the_bar_too(small_fleet):
    JournalFile.objects.update(agent="triage\u202e<b>", volume="/data", file_bytes=2**30)
    Volume.objects.create(mount="/data", free_bytes=50 * 2**30, total_bytes=100 * 2**30, sampled_at=clock.wall())
    assert "<title>triageU+202E&lt;b&gt;: " in text(signed_in().get("/disk/"))
