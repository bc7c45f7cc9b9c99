"""Which file system a path stands on, and whether SQLite's locks can be trusted there."""

from __future__ import annotations

import os
import re

# Locks and shared memory of a WAL journal do not reach across these; some damage the file without an error.
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "glusterfs", "lustre"})
_NETWORK_PREFIXES = ("fuse.",)
_OCTAL = re.compile(rb"\\([0-7]{3})")


def filesystem(path: str, *, mountinfo: bytes | None = None) -> str:
    """The type of the file system that holds `path`: the mount with the longest matching prefix.

    `path` is absolute and free of symbolic links. `mountinfo` stands in for /proc/self/mountinfo. Empty where unknown.
    """
    if mountinfo is None:
        try:
            with open("/proc/self/mountinfo", "rb") as file:
                mountinfo = file.read()
        except OSError:
            return ""
    wanted = os.fsencode(path)
    best, found = -1, ""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(b" - ")
        words, kinds = fields.split(), rest.split()
        if len(words) < 5 or not kinds:
            continue
        point = _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), words[4]).rstrip(b"/")
        # A later line of the same mount point lies on top of the earlier one.
        if len(point) >= best and (wanted == point or wanted.startswith(point + b"/")):
            best, found = len(point), kinds[0].decode("ascii", "replace")
    return found


def is_network(kind: str) -> bool:
    """Whether this type of file system is a network's, a hypervisor's share or a FUSE program's."""
    return kind in _NETWORK or kind.startswith(_NETWORK_PREFIXES)
