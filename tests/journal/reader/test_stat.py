"""The file system a path lies on, and the advice where a network lies under it."""

from __future__ import annotations

from pathlib import Path

import pytest

from journal import writer_lock
from journal.reader import inspect
from tests.journal.rows import a_journal

MOUNTS = rb"""22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /srv/agents rw,relatime shared:1 - nfs4 host:/agents rw
31 30 8:2 / /srv/agents/local rw - xfs /dev/sdb rw
32 22 0:41 / /mnt/my\040share rw - cifs //host/share rw
33 22 0:42 / /home rw - ext4 /dev/sdc rw
34 33 0:43 / /home rw - fuse.sshfs host: rw
35 22 0:44 / /vm rw - virtiofs vm rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind", "network"),
    [
        ("/var/j.db", "ext4", False),
        ("/srv/agents/j.db", "nfs4", True),
        ("/srv/agents2/j.db", "ext4", False),
        ("/srv/agents/local/j.db", "xfs", False),
        ("/mnt/my share/j.db", "cifs", True),
        ("/home/me/j.db", "fuse.sshfs", True),
        ("/vm", "virtiofs", True),
    ],
)
def test_the_file_system_of_a_path_is_its_longest_mount(path: str, kind: str, network: bool):
    found = writer_lock.find_filesystem(path, mountinfo=MOUNTS)
    assert (found, writer_lock.is_network_filesystem(found)) == (kind, network)


def test_a_journal_on_a_network_file_system_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = a_journal(tmp_path / "j.db")
    monkeypatch.setattr("journal.reader.stat._filesystem", lambda folder, device: "nfs4")
    state = inspect(path)
    assert state.kind == "network_fs"
    assert "VACUUM INTO" in state.hint
