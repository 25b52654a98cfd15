"""Words that were taken for text: which are reported, and which are none of our business."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.engine.keys import encode_keys
from blockpty.runtime.taken_for_text import in_keys, in_match, in_typed
from tests.support.async_tests import async_test


@pytest.mark.parametrize(
    ("match", "hint"),
    [
        ("PROMPT", 'PROMPT was taken as a text; the token is written {"token": "PROMPT"}'),
        (["ready", "EOF"], 'EOF was taken as a text; the token is written {"token": "EOF"}'),
        ('{"token": "PROMPT"}', "a condition that is given as a string was taken as a text; give the object itself: "
         '{"token": "PROMPT"}'),
        ("{bad json", "a match that begins with { was taken as a text, because it is not valid JSON: '{bad json'"),
    ],
)  # fmt: skip
def test_what_is_no_text_to_wait_for(match: Any, hint: str) -> None:
    assert in_match(match, None) == in_match("ready", match) == hint


@pytest.mark.parametrize("match", ["ready", "prompt", {"token": "PROMPT"}, ["a", {"regex": "{"}], '{"a": 1}', "x{"])
def test_what_is_a_text_to_wait_for(match: Any) -> None:
    assert in_match(match) is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("^C", "^C"), ("C-c", "^C"), ("<C-c>", "^C"), ("ctrl+c", "^C"), ("[CTRL+D]", "^D"), ("[ENTER]", "[ENTER]"),
        ("yes[ENTER]", "[ENTER]"), ("<Enter>", "[Enter]"), ("<CR>", "[ENTER]"), ("M-x", "[M-x]"), ("[F10]", "[F10]"),
    ],
)  # fmt: skip
def test_keys_that_were_typed(text: str, key: str) -> None:
    assert str(in_typed(text)).endswith(f"was typed as text; send_keys {key!r} presses the key")
    assert in_typed(text + "\r") == in_typed(text)


def test_an_escape_that_was_typed() -> None:
    assert in_typed(r"yes\n") == r"\n was typed as two characters; send_line types a text and Enter"


@pytest.mark.parametrize(
    "text",
    [
        "yes\r", "x^2", "a [b] c", "echo C-c", "arr[0]", "<html>", "", "s-expression", "\x03", "^", "C-",
        "print('\\n')", "C\\\\n",
    ],
)  # fmt: skip
def test_text_that_was_typed(text: str) -> None:
    assert in_typed(text) is None


def test_keys_as_other_programs_write_them() -> None:
    assert in_keys("C-c") == "C-c was typed as text; the key is written ^C"
    assert in_keys("<Esc>") == "<Esc> was typed as text; the key is written [Esc]"
    assert in_keys("Escape") == "Escape was typed as text; the key is written [Escape]"
    assert in_keys("F5") == "F5 was typed as text; the key is written [F5]"
    for name in ("Enter", "Esc", "Tab", "PageUp", "Down"):
        assert str(in_keys(name)).endswith(f"is written [{name}]") and encode_keys(f"[{name}]")
    for keys in ("^C", "[C-c]", "abc", "[ENTER]", "up", "enter", "Enter the name", "F"):
        assert in_keys(keys) is None


@async_test
async def test_it_is_said_once(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        first = await conversation.wait_for("PROMPT", timeout_ms=0)
        again = await conversation.wait_for("PROMPT", timeout_ms=0)
        assert str(first.hint).startswith("PROMPT was taken as a text") and again.hint is None
        await conversation.exec_interactive("cat")
        typed = await conversation.send("C-c")
        assert typed.hint == "C-c was typed as text; send_keys '^C' presses the key"
        assert (await conversation.send("C-c")).hint is None
        found = await conversation.send_line("EOF", match="EOF")
        assert found.matched and found.hint is None
        pressed = await conversation.send_keys(["^C"], match={"token": "PROMPT"})
        assert pressed.matched
