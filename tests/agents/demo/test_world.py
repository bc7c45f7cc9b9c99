"""What the demo's agents act on: servers that come back as they were, and a repository with a gate."""

from __future__ import annotations

import socket
import stat
import subprocess
import time

from agents.demo import repository
from agents.demo.paths import AGENTS, COMMITS, MESSAGES, PULLS, Paths
from agents.demo.world import World
from journal.providers import load


def test_a_world_started_again_has_its_old_addresses_and_secrets(tmp_path):
    paths = Paths(tmp_path / "demo")
    with World(paths) as world:
        before = [world.environment(agent) for agent in AGENTS]
        numbers = [world.next_report(), world.next_report()]
    with World(paths) as world:
        assert [world.environment(agent) for agent in AGENTS] == before
        assert world.next_report() > max(numbers) > min(numbers)
    assert stat.S_IMODE(paths.world.stat().st_mode) == 0o600


def test_a_world_takes_another_port_where_its_old_one_is_in_use(tmp_path):
    paths = Paths(tmp_path / "demo")
    with World(paths) as world:
        port = world.forge.port
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with World(paths) as world:
            assert world.forge.port != port


def test_a_secret_goes_only_to_the_agent_that_uses_it(tmp_path):
    with World(Paths(tmp_path / "demo")) as world:
        told = {agent: "\n".join(world.environment(agent).values()) for agent in AGENTS}
        assert [agent for agent in AGENTS if world.forge.secret in told[agent]] == [PULLS]
        assert [agent for agent in AGENTS if world.hook.secret in told[agent]] == [MESSAGES]


def test_the_forge_is_described_by_a_profile_the_loader_takes(tmp_path):
    paths = Paths(tmp_path / "demo")
    with World(paths) as world:
        forge = load.load_profiles(paths.providers)["forge"]
        assert forge.keyed
        assert forge.status is not None
        assert forge.status.url == f"{world.forge.url}/operations/{{key}}"
        assert world.arguments(PULLS) == [str(paths.journal(PULLS)), str(paths.providers)]


def test_a_demo_that_made_as_much_as_it_may_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr("agents.demo.paths.FULL", 1000)
    paths = Paths(tmp_path)
    (tmp_path / "journals").mkdir()
    (tmp_path / "journals" / "a.db").write_bytes(b"x" * 1000)
    assert not paths.is_full()
    (tmp_path / "ledger.db").write_bytes(b"x")
    assert paths.is_full()


def test_a_closed_gate_keeps_a_made_commit_from_being_reported(tmp_path):
    paths = Paths(tmp_path)
    repository.make(paths.repository, gate=paths.commit_gate)
    paths.commit_gate.touch()
    with subprocess.Popen(_arguments(paths)) as process:
        deadline = time.monotonic() + 10
        while not repository.commits_of(paths.repository, "k1"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert process.poll() is None
        paths.commit_gate.unlink()
        assert process.wait(10) == 0
    assert len(repository.commits_of(paths.repository, "k1")) == 1
    assert repository.commits_of(paths.repository, "k") == []


def test_a_lock_that_a_killed_git_left_does_not_stop_the_next_commit(tmp_path):
    paths = Paths(tmp_path)
    repository.make(paths.repository, gate=paths.commit_gate)
    (paths.repository / ".git" / "index.lock").touch()
    assert subprocess.run(_arguments(paths), capture_output=True).returncode != 0
    repository.unlock(paths.repository)
    assert subprocess.run(_arguments(paths)).returncode == 0


def test_an_agent_of_the_demo_has_its_journal_where_the_pages_look(tmp_path):
    assert str(Paths(tmp_path).journal(COMMITS)) == f"{tmp_path}/journals/commits.db"


def _arguments(paths):
    message = f"Write it down\n\n{repository.TRAILER}: k1"
    identity = ["-c", "user.name=Test", "-c", "user.email=test@demo.invalid"]
    return ["git", "-C", str(paths.repository), *identity, "commit", "-q", "--allow-empty", f"--message={message}"]
