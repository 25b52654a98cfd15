"""The prefix key of `attach`: what of the typed bytes goes to the program, and what is a command to us. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

_PASTE_BEGIN, _PASTE_END = b"\x1b[200~", b"\x1b[201~"


class Command(Struct, frozen=True):
    """A key after the prefix key; "" when only the prefix key has been pressed yet."""

    command: str


class PrefixKeys:
    """Tells the keys for the program from those for us, however the bytes are cut.

    Inside a bracketed paste nothing is a command: who pastes presses no key.

    Args:
        prefix: the byte of the prefix key.
    """

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._pressed = False
        # The last bytes for the program, in which the beginning or the end of a paste may be cut.
        self._last = b""
        self._pasting = False

    def take(self, data: bytes) -> Iterator[bytes | Command]:
        """Cut typed bytes into bytes for the program and commands, in their order."""
        start = 0
        for at in range(len(data)):
            one = data[at : at + 1]
            if self._pressed:
                self._pressed, start = False, at + 1
                yield one if one == self._prefix else Command(one.decode("latin-1"))
            elif one == self._prefix and not self._pasting:
                if at > start:
                    yield data[start:at]
                self._pressed, start = True, at + 1
                yield Command("")
            else:
                self._last = (self._last + one)[-len(_PASTE_BEGIN) :]
                if self._last == (_PASTE_END if self._pasting else _PASTE_BEGIN):
                    self._pasting = not self._pasting
        if start < len(data):
            yield data[start:]


def control_key(name: str) -> bytes | None:
    """Return the byte of a key that is written as `^]`; None for what is none."""
    if len(name) != 2 or name[0] != "^" or not name[1].isascii():
        return None
    code = ord(name[1].upper()) ^ 0x40
    return bytes([code]) if code < 0x20 else None
