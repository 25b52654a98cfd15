"""What of the typed bytes goes to the program, and what is a command, however they are cut."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.surfaces.cli.prefix_keys import Command, PrefixKeys, control_key

PREFIX = b"\x1d"


def taken(pieces: Iterable[bytes]) -> tuple[bytes, list[str]]:
    """Return what went to the program, and the commands."""
    keys, program, commands = PrefixKeys(PREFIX), b"", []
    for piece in pieces:
        for found in keys.take(piece):
            if isinstance(found, Command):
                commands.append(found.command)
            else:
                program += found
    return program, commands


@pytest.mark.parametrize(
    ("typed", "program", "commands"),
    [
        (b"ls\r", b"ls\r", []),
        (b"\x1dd", b"", ["", "d"]),
        (b"a\x1dtb", b"ab", ["", "t"]),
        (b"a\x1d\x1db", b"a\x1db", [""]),
        (b"\x1d\x1b[A", b"[A", ["", "\x1b"]),
        (b"\x1d", b"", [""]),
        (b"\x1b[200~x\x1ddy\x1b[201~\x1dd", b"\x1b[200~x\x1ddy\x1b[201~", ["", "d"]),
        (b"\x1b[201~\x1dd", b"\x1b[201~", ["", "d"]),
        (b"\xff\x00\x1d\xff", b"\xff\x00", ["", "\xff"]),
    ],
)
def test_keys_are_recognised_in_every_cut(typed: bytes, program: bytes, commands: list[str]) -> None:
    assert taken([typed]) == (program, commands)
    assert taken(typed[at : at + 1] for at in range(len(typed))) == (program, commands)
    for cut in range(len(typed)):
        assert taken([typed[:cut], typed[cut:]]) == (program, commands)


@given(st.lists(st.binary(max_size=8)))
def test_cuts_never_matter(pieces: list[bytes]) -> None:
    assert taken(pieces) == taken([b"".join(pieces)])


@given(st.binary().filter(lambda data: PREFIX not in data))
def test_without_the_prefix_key_everything_goes_to_the_program(data: bytes) -> None:
    assert taken([data]) == (data, [])


@pytest.mark.parametrize(
    ("name", "key"),
    [("^]", b"\x1d"), ("^a", b"\x01"), ("^A", b"\x01"), ("^@", b"\x00"), ("^_", b"\x1f"), ("^[", b"\x1b"),
     ("^\\", b"\x1c"), ("a", None), ("^", None), ("^?", None), ("^1", None), ("^ab", None), ("^é", None), ("", None)],
)  # fmt: skip
def test_names_of_control_keys(name: str, key: bytes | None) -> None:
    assert control_key(name) == key
