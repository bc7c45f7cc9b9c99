"""The lock that makes one process a journal's only writer.

`flock` on `<journal>.lock`: no clock decides a takeover, and a killed holder's lock is free at once. The lock file
is never unlinked, renamed or replaced; its text (pid, role) is a courtesy for messages, the lock is the truth.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
import weakref
from pathlib import Path

from journal.errors import JournalBusy, JournalUnreadable, UsageError
from journal.models import Writer

WAIT_SECONDS = 10.0
_POLL = 0.05
_LONGEST_TEXT = 4096
_held: weakref.WeakSet[Lock] = weakref.WeakSet()


def lock_path(journal: Path) -> Path:
    """The path of the journal's lock file."""
    # Through links: two names of one journal have one lock.
    real = Path(os.path.realpath(journal))
    return real.with_name(real.name + ".lock")


class Lock:
    """The writer's lock of one journal."""

    def __init__(self, journal: Path, *, role: str) -> None:
        self.path = lock_path(journal)
        self.journal = journal
        self.role = role
        self._descriptor: int | None = None

    def acquire(self, *, wait: float = WAIT_SECONDS) -> None:
        """Take the lock, once. Waits up to `wait` seconds for a holder that is no agent, not at all for an agent.

        Raises JournalBusy with the holder's pid and role.
        """
        # Not inheritable: a child process that outlives us must not keep the journal locked.
        # A link in the lock file's place is refused: it could lead to a file of somebody else.
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        # From now on a forked child closes its copy, or it would keep the lock that we may get later.
        self._descriptor = descriptor
        _held.add(self)
        try:
            self._lock(descriptor, time.monotonic() + wait)
        except BaseException:
            self.release()
            raise
        with contextlib.suppress(OSError):  # a full disk: the lock holds without its text
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "role": self.role}).encode(), 0)

    def _lock(self, descriptor: int, deadline: float) -> None:
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                written = _written(self.path)
                # A dead agent's text may stand there for a moment while the next holder writes its own.
                agent = written is not None and written.role == "agent" and written.alive
                if agent or time.monotonic() >= deadline:
                    raise _busy(self.journal, self.path, written) from None
                time.sleep(_POLL)

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            _held.discard(self)
            os.close(descriptor)

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def _forget(self) -> None:
        # In a forked child: close the copy, never LOCK_UN, which would unlock the parent too.
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def refuse_special(journal: Path) -> None:
    """Raise UsageError for what other libraries read as more than a path; here it would be a file of that name."""
    text = str(journal)
    if journal.name == ":memory:" or journal.name.startswith("file:") or "file:" in journal.parts:
        raise UsageError(
            f"Journal {text!r}: a journal is a file on disk.",
            hint="Name a plain path; in tests one below tempfile.mkdtemp().",
        )
    if any(part.startswith("~") for part in journal.parts) and not journal.parent.exists():
        raise UsageError(f"Journal {text!r}: `~` is not expanded.", hint="Use Path(…).expanduser().")


def take_lock(journal: Path, *, role: str, wait: float) -> Lock:
    """The journal's lock, taken. Raises JournalBusy, and JournalUnreadable where its file cannot be opened."""
    refuse_special(journal)
    if journal.is_dir():
        # Before its lock: the file would be left beside somebody's folder.
        raise JournalUnreadable(
            f"Journal {journal.name}: it is a folder.",
            kind="folder",
            hint="Name a file inside it, for example agent.db.",
        )
    lock = Lock(journal, role=role)
    try:
        lock.acquire(wait=wait)
    except OSError as error:
        raise JournalUnreadable(
            f"Journal {journal}: its lock file cannot be opened: {error.strerror}.",
            kind="unreadable",
            hint="The journal's folder must exist, and this user must be allowed to write in it.",
        ) from error
    return lock


def _forget_all() -> None:
    for lock in list(_held):
        lock._forget()


os.register_at_fork(after_in_child=_forget_all)


def find_holder(journal: Path) -> Writer | None:
    """The process that writes this journal now, or None. It only looks and never takes the lock."""
    path = lock_path(journal)
    try:
        stat = path.stat()
    except OSError:
        return None
    pid = _kernel_holder(stat.st_dev, stat.st_ino)
    if pid is None:
        return None
    written = _written(path)
    if pid > 0 and _is_alive(pid):
        # Another's text: this holder has not written its own yet, or could not.
        return written if written is not None and written.pid == pid else Writer(pid=pid, role="unknown")
    if written is not None and written.alive:
        return written
    # The writer is gone; a process that inherited its lock still holds it.
    inherited = _openers(path)
    if inherited:
        return Writer(pid=inherited[0], role="unknown" if written is None else written.role)
    return written or Writer(pid=pid, role="unknown", alive=False)


def _kernel_holder(device: int, inode: int) -> int | None:
    """The process id that /proc/locks names for an flock on this file. A lock without one is still a lock."""
    wanted = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            for line in file:
                parts = line.split()
                if len(parts) >= 6 and parts[1] == "FLOCK" and parts[5] == wanted:
                    return int(parts[4])
    except OSError:
        return None
    return None


def _written(path: Path) -> Writer | None:
    try:
        # Never through a link, and never waiting for a named pipe's other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            value = json.loads(file.read(_LONGEST_TEXT) or b"")
        return Writer(pid=int(value["pid"]), role=str(value["role"]), alive=_is_alive(int(value["pid"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _busy(journal: Path, path: Path, written: Writer | None) -> JournalBusy:
    if written is not None and written.pid == os.getpid():
        return JournalBusy(
            f"Journal {journal.name}: this process (pid {written.pid}, {written.role}) has it open already.",
            pid=written.pid,
            role=written.role,
            hint="Use the Journal that is open, or close it first.",
        )
    if written is not None and written.alive:
        return JournalBusy(
            f"Journal {journal.name}: held by pid {written.pid} ({written.role}).",
            pid=written.pid,
            role=written.role,
            hint="Stop that process, or post messages to it instead of opening the journal.",
        )
    holders = _openers(path)
    names = ", ".join(str(pid) for pid in holders) or "a process that cannot be seen from here"
    return JournalBusy(
        f"Journal {journal.name}: held by pid {names}, which inherited the lock of a writer that is gone.",
        pid=holders[0] if holders else None,
        role=written.role if written else None,
        hint="End that process; see docs/reference/known-limits.md on forking past Python's hooks.",
    )


def _openers(path: Path) -> list[int]:
    """Processes other than this one that have the lock file open."""
    found = []
    target = str(path.resolve())
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for descriptor in (entry / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(descriptor) == target:
                        found.append(int(entry.name))
                        break
    return found


# Locks and shared memory of a WAL journal do not reach across these; some damage the file without an error.
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "glusterfs", "lustre"})
_NETWORK_PREFIXES = ("fuse.",)
_OCTAL = re.compile(rb"\\([0-7]{3})")


def find_filesystem(path: str, *, mountinfo: bytes | None = None) -> str:
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


def is_network_filesystem(kind: str) -> bool:
    """Whether this type of file system is a network's, a hypervisor's share or a FUSE program's."""
    return kind in _NETWORK or kind.startswith(_NETWORK_PREFIXES)
