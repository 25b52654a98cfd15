"""The table of keys that page and terminal program share, and what keys send."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

from blockpty.engine.keys import KeyModes
from blockpty.surfaces.view.app import ViewProgram
from blockpty.surfaces.view.keys import TABLE, bindings, encoded, table, textual_key

TOP = Path(__file__).resolve().parents[3]
PAGE = TOP / "blockpty" / "surfaces" / "web" / "src" / "keys.json"


def test_the_page_has_the_same_table() -> None:
    assert PAGE.resolve() == TABLE.resolve()
    assert json.loads(PAGE.read_text()) == json.loads(TABLE.read_text())


def test_no_key_has_two_meanings() -> None:
    """Blocks, an approval and what is everywhere are there at the same time; while one types, all else is away."""
    for program in ("page", "terminal"):
        entries = [key for key in table() if key.only in ("", program)]
        assert len({key.id for key in entries}) == len(entries)
        for one, other in combinations(entries, 2):
            if "screen" not in (one.where, other.where):
                assert not set(one.keys) & set(other.keys), (one.id, other.id)


def test_every_entry_has_an_action_and_a_place() -> None:
    for key in table():
        assert hasattr(ViewProgram, f"action_{key.action}"), key.id
        assert key.where in ("conversation", "screen", "approval", "everywhere")
        assert key.words and key.only in ("", "page", "terminal")
    assert len({binding.key for binding in bindings()}) == len(table())


@pytest.mark.parametrize(
    ("written", "named"),
    [("j", "j"), ("G", "G"), ("[", "left_square_bracket"), ("Ctrl+]", "ctrl+right_square_bracket"), ("/", "slash"),
     ("?", "question_mark"), ("Ctrl+Shift+.", "ctrl+shift+full_stop"), ("Escape", "escape"), ("0", "0")],
)  # fmt: skip
def test_keys_have_the_names_of_textual(written: str, named: str) -> None:
    assert textual_key(written) == named


@pytest.mark.parametrize(
    ("key", "character", "sent"),
    [
        ("a", "a", b"a"), ("A", "A", b"A"), ("left_square_bracket", "[", b"["), ("circumflex_accent", "^", b"^"),
        ("space", " ", b" "), ("enter", "\r", b"\r"), ("tab", "\t", b"\t"), ("backspace", "\x7f", b"\x7f"),
        ("escape", "\x1b", b"\x1b"), ("delete", None, b"\x1b[3~"), ("up", None, b"\x1b[A"), ("f5", None, b"\x1b[15~"),
        ("ctrl+c", "\x03", b"\x03"), ("ctrl+backslash", "\x1c", b"\x1c"), ("ctrl+at", "\0", b"\0"),
        ("ctrl+underscore", "\x1f", b"\x1f"), ("ctrl+up", None, b"\x1b[1;5A"), ("shift+tab", None, b"\x1b[Z"),
        ("ctrl+shift+left", None, b"\x1b[1;6D"), ("alt+x", None, b"\x1bx"), ("alt+full_stop", None, b"\x1b."),
        ("é", "é", "é".encode()), ("no_such_key", None, b""),
    ],
)  # fmt: skip
def test_a_key_sends_what_a_terminal_sends(key: str, character: str | None, sent: bytes) -> None:
    assert encoded(key, character, KeyModes()) == sent


def test_a_program_gets_the_keys_that_it_has_asked_for() -> None:
    assert encoded("up", None, KeyModes(application_cursor=True)) == b"\x1bOA"
    assert encoded("escape", "\x1b", KeyModes(keyboard=1)) == b"\x1b[27u"
