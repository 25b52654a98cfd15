"""What waits for a person, as it is shown: nothing in a text can pass for our own words."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.surfaces.approvals import BAR, body, commands, heading, quoted, seconds_left

ASKED: dict[str, Any] = {
    "approval_id": "a1", "conversation_id": "work", "principal": "agent", "operation": "exec_block",
    "sentence": "It deletes files.", "text": "rm -rf x", "cwd": "/srv", "rule": "recursive delete",
    "block_id": None, "digest": "0f" * 4, "expires_ts": 61_000,
}  # fmt: skip


def test_who_asks_for_what() -> None:
    assert heading(ASKED) == "a1 in work: agent asks for exec-block"
    assert list(body(ASKED)) == [
        "  It deletes files.", BAR + "rm -rf x", "  directory  /srv", "  rule       recursive delete",
    ]  # fmt: skip


def test_a_secret_is_not_shown() -> None:
    lines = list(body({**ASKED, "text": None, "block_id": "b3", "cwd": None}))
    assert lines[1] == "  What would be typed is a secret, and is not shown."
    assert lines[2] == "  input to   the program of block b3"


@pytest.mark.parametrize(
    "text",
    ["ok\n  rule       harmless", "\x1b[2J\x1b[Hx", "a\rb", "x\u202ey", "a\tb", "\x1b]0;t\x07"],
)
def test_every_line_of_a_text_stands_behind_a_bar(text: str) -> None:
    lines = list(quoted(text, width=40))
    assert all(line.startswith(BAR) for line in lines)
    assert not any(ord(c) < 0x20 or c == "\u202e" for line in lines for c in line)


def test_a_text_that_is_wider_than_the_screen_is_divided() -> None:
    lines = list(quoted("\u4e2d" * 30 + "end", width=30))
    assert len(lines) > 2 and all(line.startswith(BAR) for line in lines)
    assert "".join(line.removeprefix(BAR) for line in lines) == "\u4e2d" * 30 + "end"


def test_time_and_commands() -> None:
    assert (seconds_left(ASKED, 1_500), seconds_left(ASKED, 99_000)) == (59, 0)
    assert commands({**ASKED, "conversation_id": "a b"}) == (
        "blockpty approve 'a b' a1 0f0f0f0f", "blockpty deny 'a b' a1 0f0f0f0f",
    )  # fmt: skip
