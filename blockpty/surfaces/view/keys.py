"""Keys: the table that the page has too, as bindings of Textual; and key events as the bytes of a terminal. Pure."""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from textual.binding import Binding

from blockpty.engine.keys import KeyModes, encode_keys
from blockpty.errors import BadRequest

TABLE: Final = Path(__file__).parents[1] / "keys.json"


class BoundKey(NamedTuple):
    """One entry of the table.

    Attributes:
        id: what it does, in camelCase.
        keys: how it is pressed.
        words: what it does, in words; `short` for the last line, "" where it is not shown there.
        where: `everywhere`, or the part of the program in which it applies.
        only: the one program that has it, "" for both.
    """

    id: str
    keys: tuple[str, ...]
    words: str
    where: str
    short: str = ""
    only: str = ""

    @property
    def action(self) -> str:
        """The name of its action in Textual."""
        return re.sub("[A-Z]", lambda found: f"_{found.group().lower()}", self.id)


@functools.cache
def table() -> tuple[BoundKey, ...]:
    """Return the keys of the terminal program."""
    entries = (BoundKey(**{**entry, "keys": tuple(entry["keys"])}) for entry in json.loads(TABLE.read_text()))
    return tuple(entry for entry in entries if entry.only != "page" and entry.where != "replay")


@functools.cache
def replay_table() -> tuple[BoundKey, ...]:
    """Return the keys of a replay, which is a screen of its own."""
    entries = (BoundKey(**{**entry, "keys": tuple(entry["keys"])}) for entry in json.loads(TABLE.read_text()))
    return tuple(entry for entry in entries if entry.where == "replay" and entry.only != "page")


def replay_bindings() -> list[Binding]:
    """Return the bindings of a replay."""
    return [Binding(",".join(map(textual_key, one.keys)), one.action, one.words) for one in replay_table()]


def bindings() -> list[Binding]:
    """Return the bindings of the program."""
    return [
        Binding(
            ",".join(map(textual_key, one.keys)), one.action, one.short or one.words, show=bool(one.short),
            key_display=one.keys[0].replace("Ctrl+", "^"),
        )
        for one in table()
    ]  # fmt: skip


# Textual's names of characters are those of Unicode, but for these.
_RENAMED: Final = {
    "solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus",
    "plus_sign": "plus", "low_line": "underscore",
}  # fmt: skip
_ARROWS: Final = {"arrowleft": "left", "arrowright": "right"}
_UNICODE_NAMES: Final = {short: name for name, short in _RENAMED.items()}


def textual_key(written: str) -> str:
    """Return how Textual names a key of the table, such as `Ctrl+]`."""
    *modifiers, key = written.split("+") if len(written) > 1 else [written]
    if len(key) == 1 and not key.isalnum():
        name = unicodedata.name(key).lower().replace("-", "_").replace(" ", "_")
        key = _RENAMED.get(name, name)
    elif len(key) > 1:
        key = _ARROWS.get(key.lower(), key.lower())
    return "+".join([*(modifier.lower() for modifier in modifiers), key])


_MODIFIERS: Final = {"ctrl": "C-", "alt": "M-", "shift": "S-"}


def encoded(key: str, character: str | None, modes: KeyModes) -> bytes:
    """Return what a terminal sends for a key event of Textual; nothing for one that it has nothing for."""
    *modifiers, name = key.split("+")
    if character is not None and character.isprintable() and not modifiers:
        return character.encode("utf-8", "replace")
    name = _character(name) or {"at": "SPACE"}.get(name, name)
    notation = "".join(_MODIFIERS.get(modifier, "") for modifier in modifiers)
    try:
        return encode_keys(f"[{notation}{name}]", modes)
    except BadRequest:
        # Without Shift most combinations exist, and what a terminal would send is then the same.
        try:
            return encode_keys(f"[{notation.replace('S-', '')}{name}]", modes)
        except BadRequest:
            return character.encode("utf-8", "replace") if character is not None else b""


def encoded_mouse(name: str, x: int, y: int, modes: KeyModes) -> bytes:
    """Return what a terminal sends for the mouse at a cell, from 0; nothing where the program does not listen.

    `name`: CLICK, MCLICK, RCLICK, SCROLLUP or SCROLLDOWN.
    """
    if modes.mouse == "off":
        return b""
    with suppress(BadRequest):
        return encode_keys(f"[{name} {x},{y}]", modes)
    return b""


def _character(name: str) -> str:
    """Return the character that Textual names so; "" for a key such as `up`."""
    if len(name) == 1:
        return name
    name = _UNICODE_NAMES.get(name, name)
    for written in (name.replace("_", " "), name.replace("_", "-")):
        with suppress(KeyError):
            # Unicode knows Tab and Delete as well, as what they send.
            found = unicodedata.lookup(written)
            return found if found.isprintable() else ""
    return ""
