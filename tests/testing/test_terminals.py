"""Terminals of the plugin: what a report and a snapshot show of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.plugin_runs import run_tests

pytestmark = pytest.mark.needs("bash")


def test_a_report_of_a_shell_that_is_gone_says_so_and_no_more(tmp_path: Path) -> None:
    found = run_tests(
        tmp_path,
        """
        def test_fails(terminal_sync):
            terminal_sync.close()
            terminal_sync._owner.close()
            assert 1 == 2
        """,
    )
    assert found.returncode == 1 and "assert 1 == 2" in found.stdout
    assert "not available: this engine or client is closed" in found.stdout


def test_a_snapshot_needs_a_name_and_something_to_show(tmp_path: Path) -> None:
    found = run_tests(
        tmp_path,
        """
        import pytest

        def test_twice(terminal_snapshot):
            terminal_snapshot("text")
            with pytest.raises(ValueError, match="give each snapshot a name"):
                terminal_snapshot("text")
            with pytest.raises(TypeError, match="not of int"):
                terminal_snapshot(5, "number")
        """,
        "--terminal-update",
    )
    assert found.returncode == 0, found.stdout
