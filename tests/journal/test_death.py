"""How a process ended, in words."""

from __future__ import annotations

import pytest

from journal.supervise import exit_status


@pytest.mark.parametrize(
    ("returncode", "kills", "words"),
    [
        (0, 0, "clean"),
        (1, 0, "exit 1"),
        (137, 1, "exit 137"),
        (-9, 0, "SIGKILL"),
        (-9, 1, "out of memory"),
        (-15, 1, "SIGTERM"),
        (-11, 0, "SIGSEGV"),
        (-40, 0, "signal 40"),
    ],
)
def test_a_return_code_says_how_the_process_ended(returncode, kills, words):
    assert exit_status.describe_exit(returncode, oom_kills=kills) == words


def test_the_count_of_out_of_memory_kills_is_read_from_either_cgroup_version():
    assert exit_status.count_oom_kills("low 0\nhigh 3\noom 2\noom_kill 2\noom_group_kill 0\n") == 2
    assert exit_status.count_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n") == 5
    assert exit_status.count_oom_kills("") == 0


@pytest.mark.parametrize(
    ("cgroup", "path"),
    [
        ("0::/system.slice/agent.service\n", "/sys/fs/cgroup/system.slice/agent.service/memory.events"),
        ("0::/\n", "/sys/fs/cgroup/memory.events"),
        ("7:cpu:/a\n5:memory:/b\n", "/sys/fs/cgroup/memory/b/memory.oom_control"),
        ("7:cpu:/a\n", None),
    ],
)
def test_the_file_that_counts_them_stands_in_the_own_cgroup(cgroup, path):
    assert exit_status.find_memory_events(cgroup) == path
