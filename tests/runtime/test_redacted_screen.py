"""What an emulator holds is covered, cell by cell, and everything else stays."""

from __future__ import annotations

from pathlib import Path

from blockpty.runtime.redacted_screen import redact_emulator
from blockpty.runtime.redactor import Redactor
from blockpty.screen import Emulator
from blockpty.screen.redraw import redraw
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader

TOKEN = b"ghp_" + b"Ab1" * 12


def covered(data: bytes, tmp_path: Path, *, redact: bool = True) -> Emulator:
    (tmp_path / "stream").mkdir(exist_ok=True)
    (tmp_path / "stream" / f"{0:020d}").write_bytes(data)
    emulator = Emulator(40, 4)
    emulator.feed(data)
    stream = StreamReader(tmp_path / "stream")
    try:
        redact_emulator(emulator, Redactor(Mask(), redact), stream, len(data))
    finally:
        stream.close()
    return emulator


def test_secrets_are_redacted_wherever_they_are(tmp_path: Path) -> None:
    places = (
        b"key %s\r\n\r\n\r\n\r\n\r\n\r\n", b"on \xe6\xbc\xa2 %s\r\n", b"%s\x1b[?1049hx", b"\x1b[?1049h%s\r\n",
        b"\x1b]2;%s\x07", b"\x1b]1;%s\x07", b"\x1b]2;%s\x07\x1b[22;2t", b"\x1b]2;un %s", b"\x1b]7;file://h/%s\x07",
        b"\x1b]8;;http://h/?k=%s\x07link\x1b]8;;\x07", b"\x1b]8;;http://h/?k=%s\x07\x1b7",
    )  # fmt: skip
    for place in places:
        data = place % TOKEN
        assert TOKEN[4:30] in redraw(covered(data, tmp_path, redact=False)).replace(b"\r\n", b""), place
        drawn = redraw(covered(data, tmp_path)).replace(b"\r\n", b"")
        assert TOKEN[4:16] not in drawn and b"******" in drawn, place


def test_what_is_no_secret_stays(tmp_path: Path) -> None:
    data = b"\x1b[31mred \xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81 \x1b]8;;http://h/\x07link\x1b]8;;\x07\r\n\x1b[?1049hfull"
    whole = Emulator(40, 4)
    whole.feed(data)
    assert redraw(covered(data, tmp_path)) == redraw(whole)
