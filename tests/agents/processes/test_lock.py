"""One dashboard and one watch loop a data folder."""

from __future__ import annotations

import os

import pytest

from agents.processes.lock import AlreadyRunning, hold_folder


def test_a_second_watch_on_one_data_folder_is_refused_with_the_first_ones_pid(tmp_path):
    first = hold_folder(tmp_path, "watch loop")
    with pytest.raises(AlreadyRunning, match=f"its watch loop runs as pid {os.getpid()}"):
        hold_folder(tmp_path, "watch loop")
    os.close(first)
    os.close(hold_folder(tmp_path, "watch loop"))
