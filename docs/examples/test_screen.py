"""A test of a full-screen program: wait for what it shows, press keys, compare the screen with a kept one."""

import pytest

import blockpty


@pytest.mark.terminal(cols=40, rows=6)
def test_less_searches(terminal_sync, terminal_snapshot):
    terminal_sync.exec_interactive("seq 1 99 | less")
    terminal_sync.expect(blockpty.Screen(r"^1$"))
    terminal_sync.send_keys("/42[ENTER]")
    terminal_sync.expect(blockpty.Screen(r"^42$"))
    terminal_snapshot(terminal_sync.screen())
    terminal_sync.send_keys("q")
    terminal_sync.expect(blockpty.PROMPT)
