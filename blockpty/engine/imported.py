"""Blocks of a recording that was made elsewhere: its file says where they are, no shell has marked them.

Rules of this file: a note opens or closes a block at its place, whatever the shell's state; bytes decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blockpty.engine.ledger import Ledger
from blockpty.engine.records import exit_number, word
from blockpty.model.entries import Entry


def imported(ledger: Ledger, entry: Entry, note: Mapping[str, Any]) -> None:
    """Take a note of type `imported`; the bytes before its offset have been classified."""
    state = ledger.state
    ledger.close(entry.offset, status=exit_number(note), state="ended")
    cmd = word(note, "cmd")
    if cmd is not None:
        state.submission = {"kind": "user", "cmd": cmd, "ts": entry.ts, "author": "user"}
        ledger.open(entry.offset)
