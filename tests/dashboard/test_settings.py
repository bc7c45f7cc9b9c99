"""Settings: one table, documented, and a wrong value stops the start."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from dashboard import environment, secret_key

CHECKOUT = environment.CHECKOUT


def manage(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEPKEEPER_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), *arguments],
        env=clean | environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("PORT", "eighty", "1 to 65535"),
        ("PORT", "0", "1 to 65535"),
        ("STEPKEEPER_HOSTS", "*", "without *"),
        ("STEPKEEPER_HOSTS", ".example.org", "exact host"),
        ("STEPKEEPER_HOSTS", "localhost:8000", "without port"),
        ("STEPKEEPER_HOSTS", " , ", "at least one"),
        ("STEPKEEPER_DECISION_TTL", "15m", "10 to 86400"),
        ("STEPKEEPER_SIGN_IN_TTL", "-1", "10 to 604800"),
        ("STEPKEEPER_TIME_ZONE", "Mars/Olympus", "Europe/Berlin"),
        ("STEPKEEPER_TIME_ZONE", "../../etc/passwd", "Europe/Berlin"),
        ("STEPKEEPER_DISK_WARN", "80%", "1 to 99"),
        ("STEPKEEPER_DISK_CRITICAL", "101", "2 to 100"),
        ("STEPKEEPER_DEMO", "maybe", "yes"),
        ("STEPKEEPER_DEBUG", "2", "true"),
        ("STEPKEEPER_DATA", __file__, "a folder"),
    ],
)
def test_a_bad_value_is_refused_with_the_accepted_ones(name, value, accepted):
    setting = next(setting for setting in environment.SETTINGS if setting.name == name)
    with pytest.raises(ImproperlyConfigured, match=name) as refused:
        setting.read({name: value})
    assert accepted in str(refused.value)


@pytest.mark.parametrize("setting", environment.SETTINGS, ids=lambda setting: setting.name)
def test_every_default_is_accepted_and_an_empty_value_is_the_default(setting):
    assert setting.read({}) == setting.parse(setting.default)
    assert setting.read({setting.name: " "}) == setting.read({})


def test_every_setting_has_its_heading_and_its_default_in_the_docs():
    text = (CHECKOUT / "docs/reference/settings.md").read_text(encoding="utf-8")
    for setting in environment.SETTINGS:
        _, _, section = text.partition(f"### `{setting.name}`\n")
        assert section, f"{setting.name} has no heading in docs/reference/settings.md"
        if setting is not environment.DATA and setting.default:
            assert section.strip().startswith(f"Default: `{setting.default}`."), setting.name


def test_relative_journal_patterns_count_from_where_the_dashboard_was_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert environment.JOURNALS.read({"STEPKEEPER_JOURNALS": "a/*.db:/srv/b.db:"}) == (
        str(tmp_path / "a/*.db"),
        "/srv/b.db",
    )


def test_a_bad_value_stops_the_start_in_one_line(tmp_path):
    result = manage("check", STEPKEEPER_DATA=str(tmp_path), STEPKEEPER_DISK_WARN="lots")
    assert result.returncode == 2
    assert result.stderr.startswith("Cannot start: STEPKEEPER_DISK_WARN is 'lots'")
    assert result.stderr.count("\n") == 1


def test_a_warning_above_the_critical_mark_stops_the_start(tmp_path):
    result = manage("check", STEPKEEPER_DATA=str(tmp_path), STEPKEEPER_DISK_WARN="95")
    assert result.returncode == 2
    assert "below the critical mark" in result.stderr


def test_the_secret_key_is_made_once_and_only_its_owner_can_read_it(tmp_path):
    folder = secret_key.make_data_folder(tmp_path / "new" / "data")
    first = secret_key.load_secret_key(folder)
    assert secret_key.load_secret_key(folder) == first
    assert len(first) >= 64
    assert stat.S_IMODE((folder / "secret-key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == ["secret-key"]


def test_processes_that_start_together_agree_on_one_secret_key(tmp_path):
    program = (
        "import sys, pathlib; from dashboard.secret_key import load_secret_key; "
        "print(load_secret_key(pathlib.Path(sys.argv[1])))"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    keys = {process.communicate(timeout=60)[0] for process in running}
    assert len(keys) == 1
    assert len(keys.pop().strip()) >= 64


def test_a_secret_key_others_can_read_is_refused(tmp_path):
    secret_key.load_secret_key(tmp_path)
    (tmp_path / "secret-key").chmod(0o644)
    with pytest.raises(ImproperlyConfigured, match="0644"):
        secret_key.load_secret_key(tmp_path)


def test_an_empty_secret_key_file_is_refused(tmp_path):
    Path(tmp_path / "secret-key").touch(mode=0o600)
    with pytest.raises(ImproperlyConfigured, match="holds no key"):
        secret_key.load_secret_key(tmp_path)


def test_jobs_are_fetched_only_when_they_can_start_and_run_at_most_once_by_themselves():
    cluster = settings.Q_CLUSTER
    assert cluster["queue_limit"] == cluster["workers"]
    assert cluster["bulk"] == 1
    assert (cluster["max_attempts"], cluster["ack_failures"], cluster["save_limit"]) == (1, True, -1)
    assert type(cluster["timeout"]) is int
    assert type(cluster["retry"]) is int
    assert cluster["retry"] >= 4 * cluster["timeout"]
    assert cluster["scheduler"] is False


def test_hosts_are_exact_and_static_files_are_for_this_origin_only():
    assert not [host for host in settings.ALLOWED_HOSTS if "*" in host or host.startswith(".")]
    assert settings.WHITENOISE_ALLOW_ALL_ORIGINS is False
    assert settings.SESSION_COOKIE_SAMESITE == "Strict"
